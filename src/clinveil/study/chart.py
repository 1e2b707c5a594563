"""Line charts with intervals over settings or numbers, for the figures of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from clinveil.report.draw import GRID, INK, MUTE, POINTS, SERIES, SHAPES, Figure, Legend, page_svg

WIDTH, HEIGHT, MOST = 560, 280, 4
# Colors of the page's style, for figures in separate files.
LIGHT = "svg{--fig-ink:#17202a;--fig-mute:#5d6a77;--fig-grid:#e3e8ec;--fig-1:#0a6a94;--fig-2:#c2500f;--fig-3:#7a5aa6;"
LIGHT += "--fig-4:#7f8b97;font-family:system-ui,sans-serif;background:#fff}"
KINDS = {"ours": "", "reference": " (broken line)", "chance": " (chance)"}


@dataclass(frozen=True)
class Point:
    """One value of a series: measured here, a reference (such as the paper's number), or the chance level."""

    series: str
    at: str | int
    value: float | None
    low: float | None = None
    high: float | None = None
    kind: Literal["ours", "reference", "chance"] = "ours"


@dataclass(frozen=True)
class Axes:
    """Both axes.

    Attributes:
        x, y: titles. order: settings from left to right; empty for numbers, on a log scale if `log`.
        share: y is in percent. each: prefix of x values in the text description.
    """

    x: str
    y: str
    order: tuple[str, ...] = ()
    log: bool = False
    share: bool = False
    each: str = ""


def lines(ident: str, caption: str, points: Sequence[Point], axes: Axes, dash: str = "broken line") -> Figure | None:
    """Return a figure of at most four series (the table has all); None without measured points.

    Args:
        dash: meaning of broken lines, for the legend.
    """
    names = list(dict.fromkeys(point.series for point in points))[:MOST]
    points = [point for point in points if point.series in names and point.value is not None]
    if not any(point.kind == "ours" for point in points):
        return None
    summary = "; ".join(f"{p.series}, {axes.each}{p.at}{KINDS[p.kind]}: {p.value:.3g}" for p in points)
    broken: Legend = (("dash", dash),) if any(point.kind != "ours" for point in points) else ()
    legend: Legend = (*zip(POINTS, names, strict=False), *broken)
    return Figure(ident, caption, summary, legend, page_svg(_spec(points, names, axes), ident, caption, summary))


def _spec(points: Sequence[Point], names: Sequence[str], axes: Axes) -> dict[str, Any]:
    color = alt.Color("series:N", legend=None).scale(domain=list(names), range=list(SERIES[: len(names)]))
    shape = alt.Shape("series:N", legend=None).scale(domain=list(names), range=list(SHAPES[: len(names)]))
    up = alt.Y("value:Q", title=axes.y).axis(tickCount=5, **({"format": "~%"} if axes.share else {}))
    at = _across(points, axes)

    def base(kind: str) -> Any:
        rows = [vars(point) for point in points if point.kind == kind]
        return alt.Chart(alt.Data(values=rows)).encode(x=at, y=up.scale(zero=not axes.order), color=color)

    ranged = [vars(point) for point in points if point.low is not None and point.kind == "ours"]
    rule = alt.Chart(alt.Data(values=ranged)).mark_rule(strokeWidth=1.5)
    layers = [
        base("chance").mark_line(strokeWidth=1, strokeDash=[2, 3]),
        base("reference").mark_line(strokeWidth=1.5, strokeDash=[6, 4]),
        rule.encode(x=at, y="low:Q", y2="high:Q", color=color),
        base("ours").mark_line(strokeWidth=2.5),
        base("ours").mark_point(filled=True, size=90, opacity=1).encode(shape=shape),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    colors = {"labelColor": INK, "titleColor": MUTE, "gridColor": GRID, "domainColor": MUTE, "tickColor": GRID}
    sizes = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal"}
    chart = chart.configure(aria=False, background="transparent").configure_view(stroke=None)
    spec: dict[str, Any] = chart.configure_axis(**colors, **sizes).to_dict()
    return spec


def _across(points: Sequence[Point], axes: Axes) -> Any:
    """Return the x axis of settings or of numbers."""
    if axes.order:
        return alt.X("at:N", title=axes.x, sort=list(axes.order), axis=alt.Axis(grid=False, labelAngle=0))
    values = {} if axes.log else {"values": sorted({int(point.at) for point in points})}
    x = alt.X("at:Q", title=axes.x, axis=alt.Axis(grid=False, format="~s" if axes.log else "d", **values))
    return x.scale(type="log") if axes.log else x.scale(zero=False, padding=12)


def standalone(figure: Figure) -> str:
    """Return the SVG for a separate file."""
    head, _, rest = figure.svg.partition(">")
    if "xmlns=" not in head:
        head += ' xmlns="http://www.w3.org/2000/svg"'
    return f"{head}><style>{LIGHT}</style>{rest}\n"
