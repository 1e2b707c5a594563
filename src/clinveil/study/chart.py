"""Lines over a few named settings, with intervals: the one kind of figure that papers A and C need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clinveil.report.draw import GRID, INK, MUTE, POINTS, SERIES, SHAPES, Figure, Legend
from clinveil.report.svg import page_svg

WIDTH, HEIGHT, MOST = 560, 280, 4


@dataclass(frozen=True)
class Point:
    """One value of a series at a setting; `dashed` ones are references."""

    series: str
    at: str
    value: float
    low: float | None = None
    high: float | None = None
    dashed: bool = False


def lines(
    ident: str, caption: str, points: Sequence[Point], order: Sequence[str], y: str, *, x: str = "N"
) -> Figure | None:
    """A figure of at most four series (others are left to the table); None without points.

    Args:
        order: the settings from left to right. y, x: titles of the axes.
    """
    names = list(dict.fromkeys(point.series for point in points))[:MOST]
    points = [point for point in points if point.series in names]
    if not points:
        return None
    says = "; ".join(f"{p.series}{' (broken line)' if p.dashed else ''}, {p.at}: {p.value:.3g}" for p in points)
    legend: Legend = tuple(zip(POINTS, names, strict=False))
    if any(point.dashed for point in points):
        legend = (*legend, ("dash", "broken line"))
    return Figure(ident, caption, says, legend, page_svg(_spec(points, names, order, x, y), ident, caption, says))


def _spec(points: Sequence[Point], names: Sequence[str], order: Sequence[str], x: str, y: str) -> dict[str, Any]:
    import altair as alt

    at = alt.X("at:N", title=x, sort=list(order), axis=alt.Axis(grid=False, labelAngle=0))
    color = alt.Color("series:N", legend=None).scale(domain=list(names), range=list(SERIES[: len(names)]))
    shape = alt.Shape("series:N", legend=None).scale(domain=list(names), range=list(SHAPES[: len(names)]))
    up = alt.Y("value:Q", title=y).axis(tickCount=5).scale(zero=False)

    def base(dashed: bool) -> Any:
        rows = [vars(point) for point in points if point.dashed == dashed]
        return alt.Chart(alt.Data(values=rows)).encode(x=at, y=up, color=color)

    ranged = [vars(point) for point in points if point.low is not None and not point.dashed]
    layers = [
        base(True).mark_line(strokeWidth=1.5, strokeDash=[6, 4]),
        alt.Chart(alt.Data(values=ranged)).mark_rule(strokeWidth=1.5).encode(x=at, y="low:Q", y2="high:Q", color=color),
        base(False).mark_line(strokeWidth=2.5),
        base(False).mark_point(filled=True, size=90, opacity=1).encode(shape=shape),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    look = {"labelColor": INK, "titleColor": MUTE, "gridColor": GRID, "domainColor": MUTE, "tickColor": GRID}
    chart = chart.configure(aria=False, background="transparent").configure_view(stroke=None)
    spec: dict[str, Any] = chart.configure_axis(
        **look, labelFontSize=13, titleFontSize=13, titleFontWeight="normal"
    ).to_dict()
    return spec
