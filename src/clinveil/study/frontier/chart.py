"""The frontier as a chart: what is read on one axis, what is kept on the other, one mark a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clinveil.report.draw import GRID, INK, MUTE, POINTS, SERIES, SHAPES, Figure, page_svg

WIDTH, HEIGHT = 620, 420
KINDS = ("no other one betters it", "a paper's setting", "other settings")
IDENT, CAPTION = "fig-frontier", "What is kept against what the strongest attacker reads: up and to the left is better"


@dataclass(frozen=True)
class Spot:
    """A setting: what is read and kept, whether no other one betters it, and whether a paper used it."""

    name: str
    read: float
    kept: float
    best: bool
    paper: bool

    @property
    def kind(self) -> str:
        """What its mark says."""
        return KINDS[1 if self.paper else 0 if self.best else 2]


def spots(found: Sequence[Spot]) -> Figure | None:
    """The chart; None without a setting."""
    if not found:
        return None
    says = "; ".join(f"{one.name}: {one.kept:.0%} kept, {one.read:.0%} read" for one in found)
    legend = tuple(zip(POINTS, KINDS, strict=False))
    return Figure(IDENT, CAPTION, says, legend, page_svg(_spec(found), IDENT, CAPTION, says))


def _spec(found: Sequence[Spot]) -> dict[str, Any]:
    import altair as alt

    rows = [{"name": one.name, "read": one.read, "kept": one.kept, "kind": one.kind} for one in found]
    color = alt.Color("kind:N", legend=None).scale(domain=list(KINDS), range=list(SERIES[: len(KINDS)]))
    shape = alt.Shape("kind:N", legend=None).scale(domain=list(KINDS), range=list(SHAPES[: len(KINDS)]))
    x = alt.X("read:Q", title="words that the strongest attacker reads").axis(format="~%").scale(domain=[0, 1])
    y = alt.Y("kept:Q", title="macro-F1 that is kept").axis(format="~%").scale(zero=False, padding=16)
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(color=color, shape=shape)
    names = base.mark_text(align="left", dx=8, fontSize=11, color=INK).encode(text="name:N")
    chart = alt.layer(marks, names).properties(width=WIDTH, height=HEIGHT)
    look = {"labelColor": INK, "titleColor": MUTE, "gridColor": GRID, "domainColor": MUTE, "tickColor": GRID}
    chart = chart.configure(aria=False, background="transparent").configure_view(stroke=None)
    made: dict[str, Any] = chart.configure_axis(**look, labelFontSize=13, titleFontSize=13).to_dict()
    return made
