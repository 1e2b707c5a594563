"""Figures 3, 5, 6 and 7: ours as lines with intervals, the paper's numbers as broken lines, chance as fine ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clinveil.report.draw import GRID, INK, MUTE, POINTS, SERIES, SHAPES, Figure, Legend
from clinveil.report.svg import page_svg
from clinveil.study.jmir_2020 import paper
from clinveil.study.jmir_2020.grid import NAMES
from clinveil.study.jmir_2020.results import Results
from clinveil.study.jmir_2020.tables import Table

WIDTH, HEIGHT = 560, 260
Datum = dict[str, Any]
# What the page's style says of colours, for a figure that stands alone.
LIGHT = "svg{--fig-ink:#17202a;--fig-mute:#5d6a77;--fig-grid:#e3e8ec;--fig-1:#0a6a94;--fig-2:#c2500f;--fig-3:#7a5aa6;"
LIGHT += "--fig-4:#7f8b97;font-family:system-ui,sans-serif;background:#fff}"


def figures(results: Results, made: Sequence[Table]) -> tuple[Figure, ...]:
    """The figures that have numbers, in the paper's order."""
    by_ident = {table.ident: table for table in made}
    drawn = [
        _curve(results),
        _by_window("fig-5", "Figure 5: name pairs found", by_ident["table-1"], paper.TABLE_1, "found", share=True),
        _by_window("fig-6", "Figure 6: in-group minus out-group", by_ident["table-2"], paper.TABLE_2, "difference"),
        _by_window(
            "fig-7", "Figure 7: significant patients", by_ident["table-3"], paper.TABLE_3, "patients", share=True
        ),
    ]
    return tuple(figure for figure in drawn if figure)


def standalone(figure: Figure) -> str:
    """The SVG as a file of its own."""
    head, _, rest = figure.svg.partition(">")
    if "xmlns=" not in head:
        head += ' xmlns="http://www.w3.org/2000/svg"'
    return f"{head}><style>{LIGHT}</style>{rest}\n"


def _by_window(
    ident: str,
    title: str,
    table: Table,
    printed: Mapping[str, paper.Column],
    what: str,
    *,
    share: bool = False,
) -> Figure | None:
    """One line an algorithm over the windows."""
    data = list(_points(table, printed, share=share))
    if not any(datum["who"] == "ours" for datum in data):
        return None
    names = [name for name in NAMES.values() if any(datum["name"] == name for datum in data)]
    says = "; ".join(f"{d['name']}, window {d['x']}, {d['who']}: {d['value']:.3g}" for d in data)
    spec = _lines(data, names, "context window", what, share=share)
    legend: Legend = (*zip(POINTS, names, strict=False), ("dash", "the paper's numbers (fine line: our chance)"))
    return Figure(ident, title, says, legend, page_svg(spec, ident, title, says))


def _points(table: Table, printed: Mapping[str, paper.Column], *, share: bool) -> Iterator[Datum]:
    for (window, name), cell in table.cells.items():
        found = cell.finding
        if found is not None:
            datum = {"x": window, "name": name, "value": found.value, "low": found.low, "high": found.high}
            yield {**datum, "who": "ours"}
            yield {"x": window, "name": name, "value": found.chance, "who": "chance"}
    for algorithm, column in printed.items():
        for window, said in column.items():
            value = paper.number(said) / (100 if share else 1)
            yield {"x": window, "name": NAMES[algorithm], "value": value, "who": "paper"}


def _curve(results: Results) -> Figure | None:
    """Figure 3: in - out of the names below each frequency threshold, all names left in the notes."""
    found = [f for f in results.figure_3 if f.value is not None and isinstance(f.detail.get("below"), int)]
    if not found:
        return None
    data: list[Datum] = []
    for finding in found:
        datum = {"x": finding.detail["below"], "name": "GloVe", "value": finding.value}
        data.append({**datum, "low": finding.low, "high": finding.high, "who": "ours"})
        data.append({**datum, "value": finding.chance, "who": "chance"})
    title = "Figure 3: in-group minus out-group by name frequency"
    says = "; ".join(f"names seen under {d['x']} times, {d['who']}: {d['value']:.3g}" for d in data)
    spec = _lines(data, ["GloVe"], "names seen fewer times than", "difference", log=True)
    legend: Legend = ((POINTS[0], "GloVe, one vector a word, window 10"), ("dash", "chance"))
    return Figure("fig-3", title, says, legend, page_svg(spec, "fig-3", title, says))


def _lines(
    data: Sequence[Datum], names: Sequence[str], x_title: str, y_title: str, *, share: bool = False, log: bool = False
) -> Datum:
    """The specification: ours solid with intervals, the paper's broken, chance fine."""
    import altair as alt

    color = alt.Color("name:N", legend=None).scale(domain=list(names), range=list(SERIES[: len(names)]))
    shape = alt.Shape("name:N", legend=None).scale(domain=list(names), range=list(SHAPES[: len(names)]))
    axis = alt.Axis(grid=False, format="~s" if log else "d", **({} if log else {"values": _windows(data)}))
    x = alt.X("x:Q", title=x_title, axis=axis)
    x = x.scale(type="log") if log else x.scale(zero=False, padding=12)
    y = alt.Y("value:Q", title=y_title).axis(tickCount=5, **({"format": "~%"} if share else {}))

    def base(who: str) -> Any:
        chosen = [datum for datum in data if datum["who"] == who and datum["value"] is not None]
        return alt.Chart(alt.Data(values=chosen)).encode(x=x, y=y, color=color)

    layers = [
        base("chance").mark_line(strokeWidth=1, strokeDash=[2, 3]),
        base("paper").mark_line(strokeWidth=1.5, strokeDash=[6, 4]),
        base("ours").mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base("ours").mark_line(strokeWidth=2.5),
        base("ours").mark_point(filled=True, size=90, opacity=1).encode(shape=shape),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    look = {"labelColor": INK, "titleColor": MUTE, "gridColor": GRID, "domainColor": MUTE, "tickColor": GRID}
    chart = chart.configure(aria=False, background="transparent").configure_view(stroke=None)
    spec: Datum = chart.configure_axis(**look, labelFontSize=13, titleFontSize=13, titleFontWeight="normal").to_dict()
    return spec


def _windows(data: Sequence[Datum]) -> list[int]:
    return sorted({int(datum["x"]) for datum in data})
