"""Typed rows to charts: Altair specifications, made SVG by vl-convert, that take their colours from the page's CSS.

Text stays text, fonts are the page's own, nothing is fetched. Each figure says in words what it shows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree

from clinveil.report.cells import Row
from clinveil.report.numerals import share
from clinveil.report.record import TokenRow

Glyph = Literal[
    "dot", "line", "tick", "ring", "diamond", "dash",
    "square-1", "square-2", "square-3", "square-4", "point-1", "point-2", "point-3", "point-4",
]  # fmt: skip
Legend = tuple[tuple[Glyph, str], ...]
DASH: Legend = (("dash", "chance"),)
POINTS: tuple[Glyph, ...] = ("point-1", "point-2", "point-3", "point-4")
SHAPES = ("circle", "diamond", "square", "triangle-up")
INK, MUTE, GRID = "var(--fig-ink)", "var(--fig-mute)", "var(--fig-grid)"
SERIES = ("var(--fig-1)", "var(--fig-2)", "var(--fig-3)", "var(--fig-4)")
PLOT, LINE_HEIGHT = 360, 56
PADDING = {"left": 24, "right": 56, "top": 6, "bottom": 6}  # room for pages whose font is wider than ours
FATES = ("replaced", "masked", "kept", "dropped")
_DROP = ("font-family", "class", "role", "aria-roledescription", "aria-hidden", "pointer-events", "aria-label")


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as SVG, its caption, its legend (glyph and words) and the sentence that says what it shows."""

    ident: str
    caption: str
    says: str
    legend: Legend
    svg: str


def forest(rows: Sequence[Row]) -> Figure | None:
    """One line for each attack: value, interval, chance and its control of either kind; None without rows."""
    import altair as alt

    if not rows:
        return None
    data = [_forest_datum(row) for row in rows]
    base = _base(data)
    y = _names(alt, [d["name"] for d in data])
    x = alt.X("value:Q", title="success of the attack: lower is safer", scale=_scale(alt, data))
    x = x.axis(format="~%", tickCount=6)
    layers = [
        base.mark_rule(strokeWidth=2.5, color=SERIES[0]).encode(x=alt.X("low:Q"), x2="high:Q", y=y),
        base.mark_tick(thickness=2.5, size=24, color=MUTE).encode(x="chance:Q", y=y),
        base.mark_point(size=90, color=MUTE, strokeWidth=2).encode(x="control:Q", y=y),
        base.mark_point(size=100, shape="diamond", filled=True, color=SERIES[1], opacity=1).encode(x="positive:Q", y=y),
        base.mark_point(size=110, filled=True, color=SERIES[0], opacity=1).encode(x=x, y=y),
        base.mark_text(align="left", color=INK, fontSize=13).encode(x=alt.value(PLOT + 14), y=y, text="said:N"),
    ]
    legend: list[tuple[Glyph, str]] = [("dot", "this release"), ("line", "interval"), ("tick", "chance")]
    legend += [("ring", _ring(rows))] * any(d["control"] is not None for d in data)
    legend += [("diamond", "positive control: it must find something")] * any(d["positive"] is not None for d in data)
    told = [(d["name"].replace("\n", ", "), d["said"], share(d["chance"])) for d in data]
    says = "; ".join(f"{name}: {said}, chance {chance}" for name, said, chance in told)
    svg = page_svg(_finished(alt.layer(*layers), len(data)), "fig-forest", "Attacks on the release", says)
    return Figure("fig-forest", "Attacks, each beside its own chance level", says, tuple(legend), svg)


def _ring(rows: Sequence[Row]) -> str:
    """What the rings are: controls of which nobody says that nothing is to be found are just controls."""
    kinds = {r.finding.control_kind for r in rows if r.finding.control is not None and not r.hidden} - {"positive"}
    return "control: nothing to find" if kinds == {"negative"} else "control (each table says which)"


def repeats(rows: Sequence[Row]) -> Figure | None:
    """Recovery against the number of places, one line for each setting; None with fewer than two numbers."""
    import altair as alt

    data = [point for row in rows if not row.hidden and row.finding.value is not None for point in _points(row)]
    places = sorted({int(d["m"]) for d in data})
    if len(places) < 2:
        return None
    names = list(dict.fromkeys(str(d["series"]) for d in data))[: len(SERIES)]
    color = alt.Color("series:N", legend=None).scale(domain=names, range=list(SERIES[: len(names)]))
    shape = alt.Shape("series:N", legend=None).scale(domain=names, range=list(SHAPES[: len(names)]))
    x = alt.X("m:Q", title="places of one word that the attacker knows to belong together")
    y = alt.Y("value:Q", title="recovered: lower is safer").axis(format="~%", tickCount=5).scale(domain=[0, 1])
    base = _base([d for d in data if d["series"] in names])
    base = base.encode(x=x.axis(values=places, format="d", grid=False), y=y, color=color)
    layers = [base.mark_line(strokeWidth=2.5), base.mark_point(filled=True, size=110, opacity=1).encode(shape=shape)]
    chances = [row.finding.chance for row in rows if row.finding.chance is not None]
    if chances:
        rule = _base([{"value": max(chances)}]).mark_rule(strokeDash=[5, 4], color=MUTE, strokeWidth=2)
        layers.append(rule.encode(y="value:Q"))
    says = "; ".join(f"{d['series']}, {d['m']} draw{'s'[: d['m'] != 1]}: {share(float(d['value']))}" for d in data)
    svg = page_svg(_styled(alt.layer(*layers).properties(width=560, height=250)), "fig-repeats", "Repeated words", says)
    legend: Legend = (*zip(POINTS, names, strict=False), *DASH[: len(chances)])
    return Figure("fig-repeats", "What repeating a word gives away", says, legend, svg)


def _points(row: Row) -> list[dict[str, Any]]:
    detail, value = row.finding.detail, row.finding.value
    m = detail.get("repeats")
    if not isinstance(m, int):
        return []
    who = "all words" if detail.get("stratum", "all") == "all" else f"words seen {detail['stratum']} times"
    memo = "fresh draws" if detail.get("memo", "occurrence") == "occurrence" else f"memo {detail['memo']}"
    return [{"m": m, "value": value, "series": f"{who}, {memo}"}]


def utility(pairs: Sequence[tuple[str, Row, Row]]) -> Figure | None:
    """Original against released score for each label column, with intervals and chance; None without pairs."""
    import altair as alt

    if not pairs:
        return None
    data = [_side(name, row, shift) for name, *sides in pairs for row, shift in zip(sides, (-8, 8), strict=True)]
    links = [{"name": n, "from": o.finding.value, "to": r.finding.value} for n, o, r in pairs]
    y = _names(alt, [name for name, *_ in pairs])
    x = alt.X("value:Q", title="macro-F1: higher is more useful").scale(domain=[0, 1]).axis(tickCount=6)
    layers = [
        _base(links).mark_rule(strokeWidth=1, strokeDash=[2, 3], color=MUTE).encode(x=alt.X("from:Q"), x2="to:Q", y=y),
        _base(data).mark_tick(thickness=2.5, size=24, color=MUTE).encode(x="chance:Q", y=y),
    ]
    for side, (shift, color, filled) in {"original": (-8, INK, False), "released": (8, SERIES[0], True)}.items():
        base = _base([d for d in data if d["shift"] == shift])
        layers.append(base.mark_rule(strokeWidth=2.5, color=color, yOffset=shift).encode(x="low:Q", x2="high:Q", y=y))
        dot = base.mark_point(filled=filled, size=110, color=color, opacity=1, strokeWidth=2, yOffset=shift)
        layers.append(dot.encode(x=x, y=y, description=alt.value(side)))
    kept = _base([{"name": n, "said": f"{o.value.text} → {r.value.text}"} for n, o, r in pairs])
    said = kept.mark_text(align="left", color=INK, fontSize=13)
    layers.append(said.encode(x=alt.value(PLOT + 14), y=y, text="said:N"))
    says = "; ".join(f"{n}: {o.value.text} before, {r.value.text} after" for n, o, r in pairs)
    svg = page_svg(_finished(alt.layer(*layers), len(pairs)), "fig-utility", "Use before and after", says)
    legend: Legend = (("ring", "original notes"), ("dot", "released notes"), ("line", "interval"), ("tick", "chance"))
    return Figure("fig-utility", "What a classifier can still learn, before and after", says, legend, svg)


def accounting(rows: Sequence[TokenRow]) -> Figure | None:
    """Stacked bars: what became of the tokens of each class; None where no token was seen."""
    import altair as alt

    fates = ((row, order, fate) for row in rows for order, fate in enumerate(FATES) if getattr(row, fate))
    data = [{"name": r.kind, "fate": fate, "order": order, "tokens": getattr(r, fate)} for r, order, fate in fates]
    if not data:
        return None
    shown = [fate for fate in FATES if any(d["fate"] == fate for d in data)]
    colors = dict(zip(FATES, (SERIES[0], SERIES[2], SERIES[1], SERIES[3]), strict=True))
    color = alt.Color("fate:N", legend=None).scale(domain=shown, range=[colors[f] for f in shown])
    ticks = "datum.value ? format(datum.value, '~s') : '0'"
    x = alt.X("tokens:Q", title="source tokens").axis(tickCount=6, labelExpr=ticks)
    bars = _base(data).mark_bar(size=22, stroke="var(--paper)", strokeWidth=1.5)
    chart = bars.encode(x=x, y=_names(alt, [row.kind for row in rows]), color=color, order="order:Q")
    chart = chart.properties(width=PLOT + 140, height=34 * len(rows))
    says = "; ".join(f"{d['name']}: {d['tokens']:,} {d['fate']}" for d in data)
    squares: dict[str, Glyph] = dict(zip(FATES, ("square-1", "square-3", "square-2", "square-4"), strict=True))
    svg = page_svg(_styled(chart), "fig-accounting", "Token accounting", says)
    legend = tuple((squares[f], f) for f in shown)
    return Figure("fig-accounting", "Source tokens by class, and what became of them", says, legend, svg)


def _forest_datum(row: Row) -> dict[str, Any]:
    found = row.finding
    control = None if row.hidden else row.control.value
    positive = found.control_kind == "positive"
    said = row.value.text + (f"  ({row.ends[0].text} to {row.ends[1].text})" if row.ends else "")
    # A hidden count is drawn as the stretch in which it may lie, without a dot.
    span = (0.0, min(1.0, 10 / max(found.n, 1))) if row.hidden else (found.low, found.high)
    name = "\n".join([row.short, *textwrap.wrap(row.label if row.label != "all" else "", 30)[:2]])
    datum = {"name": name, "value": None if row.hidden else found.value, "low": span[0], "high": span[1]}
    datum |= {"chance": found.chance, "control": None if positive else control}
    return datum | {"positive": control if positive else None, "said": said}


def _scale(alt: Any, data: Sequence[dict[str, Any]]) -> Any:
    ends = [d[k] for d in data for k in ("value", "high", "chance", "control", "positive") if d[k] is not None]
    return alt.Scale(domain=[0, min(1.0, max(0.05, 1.1 * max(ends)))], nice=True)


def _side(name: str, row: Row, shift: int) -> dict[str, Any]:
    found = row.finding
    ends = {"low": found.low, "high": found.high}
    return {"name": name, "value": found.value, "chance": found.chance, "shift": shift, **ends}


def _base(data: Sequence[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Chart(alt.Data(values=list(data)))


def _names(alt: Any, order: Sequence[str]) -> Any:
    axis = alt.Axis(labelExpr="split(datum.label, '\\n')", labelLimit=260, domain=False, ticks=False, labelPadding=12)
    return alt.Y("name:N", sort=list(dict.fromkeys(order)), title=None, axis=axis)


def _finished(chart: Any, lines: int) -> dict[str, Any]:
    return _styled(chart.properties(width=PLOT, height=LINE_HEIGHT * lines))


def _styled(chart: Any) -> dict[str, Any]:
    """The specification with the page's look: thin grid, no frame, no colours but the CSS's."""
    axis = {"labelColor": INK, "titleColor": MUTE, "gridColor": GRID, "domainColor": MUTE, "tickColor": GRID}
    sizes = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "titlePadding": 12}
    styled = chart.configure(aria=False, background="transparent", padding=PADDING).configure_view(stroke=None)
    spec: dict[str, Any] = styled.configure_axis(**axis, **sizes).to_dict()
    return spec


def page_svg(spec: dict[str, Any], ident: str, title: str, says: str) -> str:
    """The chart as `<svg>` with a title and a description for those who do not see it.

    Ids get the figure's name in front (several charts share a page); fonts come from the page's CSS.
    """
    import vl_convert

    source = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    root = ElementTree.fromstring(source)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        _clean(element, ident)
    _prune(root)
    root.attrib |= {"role": "img", "aria-labelledby": f"{ident}-title {ident}-says"}
    for position, (tag, words) in enumerate((("title", title), ("desc", says))):
        label = ElementTree.Element(tag, id=f"{ident}-{'says' if tag == 'desc' else 'title'}")
        label.text = words
        root.insert(position, label)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, ident: str) -> None:
    for name in list(element.attrib):
        if name in _DROP or "}" in name:
            del element.attrib[name]
        elif name == "id":
            element.set("id", f"{ident}-{element.attrib[name]}")
        elif "url(#" in element.attrib[name]:
            element.set(name, element.attrib[name].replace("url(#", f"url(#{ident}-"))


def _prune(parent: ElementTree.Element) -> None:
    """Take out the empty and invisible shapes that Vega leaves behind."""
    for child in list(parent):
        _prune(child)
        hidden = child.get("display") == "none" or child.get("d") == "M0,0h0v0h0Z"
        if hidden or (child.tag == "g" and len(child) == 0):
            parent.remove(child)
