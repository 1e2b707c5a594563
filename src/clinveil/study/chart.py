"""Draw line charts with intervals as SVG, for the figures of the papers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

Glyph = Literal["point-1", "point-2", "point-3", "point-4", "dash"]
Legend = tuple[tuple[Glyph, str], ...]
POINTS: tuple[Glyph, ...] = ("point-1", "point-2", "point-3", "point-4")
# Outlines of the four markers around (0, 0): circle, diamond, square, triangle.
MARKERS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "M0-6L6 0 0 6-6 0z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6L5.5 4.5h-11z",
)
INK, MUTE, GRID = "var(--fig-ink)", "var(--fig-mute)", "var(--fig-grid)"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 340, 64, 16, 10, 48
# Colors for a separate file; inside a page the style sheet sets them.
LIGHT = "svg{--fig-ink:#17202a;--fig-mute:#5d6a77;--fig-grid:#e3e8ec;--fig-1:#0a6a94;--fig-2:#c2500f;--fig-3:#7a5aa6;"
LIGHT += "--fig-4:#7f8b97;font-family:system-ui,sans-serif;background:#fff}"
KINDS = {"ours": "", "reference": " (broken line)", "chance": " (chance)"}
DASHES = {"chance": ("2 3", 1.0), "reference": ("6 4", 1.5), "ours": ("none", 2.5)}  # drawn in this order


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as SVG, its caption, its legend (glyph and label) and a description for screen readers."""

    ident: str
    caption: str
    says: str
    legend: Legend
    svg: str


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
    """Return a figure of the first four series, or None without measured points.

    Args:
        dash: what broken lines are, for the legend.
    """
    names = list(dict.fromkeys(point.series for point in points))[: len(POINTS)]
    points = [point for point in points if point.series in names and point.value is not None]
    if not any(point.kind == "ours" for point in points):
        return None
    text = "; ".join(f"{p.series}, {axes.each}{p.at}{KINDS[p.kind]}: {p.value:.3g}" for p in points)
    broken: Legend = (("dash", dash),) if any(point.kind != "ours" for point in points) else ()
    legend: Legend = (*zip(POINTS, names, strict=False), *broken)
    return Figure(ident, caption, text, legend, _svg(ident, caption, text, points, names, axes))


def standalone(figure: Figure) -> str:
    """Return the SVG for a separate file."""
    return figure.svg.replace(">", f"><style>{LIGHT}</style>", 1) + "\n"


def text(words: str, x: float, y: float, anchor: str, fill: str = "currentColor") -> Markup:
    """Return a line of text at a position; `anchor` as in SVG: start, middle or end."""
    shape = Markup('<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{words}</text>')
    return shape.format(x=x, y=y, anchor=anchor, fill=fill, words=words)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers (1, 2 or 5 times a power of ten) that cover low to high."""
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * m for m in (1, 2, 5, 10) if span / (power * m) <= about)
    return [i * step for i in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


@dataclass(frozen=True)
class _Scale:
    """Positions in pixels: settings at equal distances, or numbers on a linear or logarithmic axis."""

    points: Sequence[Point]
    axes: Axes

    def across(self, at: str | int) -> float:
        """The x position of a setting or number."""
        inner = WIDTH - LEFT - RIGHT
        if self.axes.order:
            return LEFT + inner * (self.axes.order.index(str(at)) + 0.5) / len(self.axes.order)
        numbers = [self._number(point.at) for point in self.points]
        low, high = min(numbers), max(numbers)
        share = (self._number(at) - low) / (high - low) if high > low else 0.5
        return LEFT + inner * (0.03 + 0.94 * share)

    def _number(self, at: str | int) -> float:
        return math.log10(float(at)) if self.axes.log else float(at)

    def levels(self) -> list[float]:
        """The numbers at which the y axis has a line."""
        ends = [v for p in self.points for v in (p.value, p.low, p.high) if v is not None]
        return ticks(min(ends) if self.axes.order else min(0.0, *ends), max(ends))

    def up(self, value: float) -> float:
        """The y position of a value."""
        levels = self.levels()
        share = (value - levels[0]) / ((levels[-1] - levels[0]) or 1.0)
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _svg(ident: str, title: str, description: str, points: Sequence[Point], names: list[str], axes: Axes) -> str:
    scale = _Scale(points, axes)
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'font-size="13" aria-labelledby="{i}-title {i}-desc"><title id="{i}-title">{t}</title>'
        '<desc id="{i}-desc">{d}</desc>'
    ).format(w=WIDTH, h=HEIGHT, i=ident, t=title, d=description)
    series = (part for number, name in enumerate(names) for part in _series(number, name, scale))
    return str(Markup("").join([head, *_frame(scale), *series, Markup("</svg>")]))


def _frame(scale: _Scale) -> Iterator[Markup]:
    """Grid, ticks and titles of both axes."""
    line = Markup('<path d="M{a:.1f} {b:.1f}{to}" stroke="{s}" fill="none"/>')
    axes, bottom, levels = scale.axes, HEIGHT - BOTTOM, scale.levels()
    decimals = max(0, -math.floor(math.log10(levels[1] - levels[0]) + 1e-9) - (2 if axes.share else 0))
    for level in levels:
        yield line.format(a=LEFT, b=scale.up(level), to=f"H{WIDTH - RIGHT}", s=GRID)
        label = f"{level:.{decimals}%}" if axes.share else f"{level:.{decimals}f}"
        yield text(label, LEFT - 8, scale.up(level) + 4, "end", INK)
    yield line.format(a=LEFT, b=bottom, to=f"H{WIDTH - RIGHT}", s=MUTE)
    for at in axes.order or sorted({int(point.at) for point in scale.points}):
        yield text(f"{at:,}" if isinstance(at, int) else at, scale.across(at), bottom + 18, "middle", INK)
    yield text(axes.x, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle", MUTE)
    turned = Markup('<g transform="translate(14 {y:.0f}) rotate(-90)">{words}</g>')
    yield turned.format(y=(TOP + bottom) / 2, words=text(axes.y, 0, 0, "middle", MUTE))


def _series(number: int, name: str, scale: _Scale) -> Iterator[Markup]:
    """The lines of one series (chance, reference, ours), its intervals and its markers."""
    color = f"var(--fig-{number + 1})"
    order = {setting: place for place, setting in enumerate(scale.axes.order)}
    own = sorted(
        (point for point in scale.points if point.series == name),
        key=lambda point: order.get(str(point.at), 0) if order else float(point.at),
    )
    path = Markup('<path d="{d}" stroke="{c}" stroke-width="{w}" stroke-dasharray="{s}" fill="none"/>')
    for kind, (dashes, width) in DASHES.items():
        found = [(scale.across(p.at), scale.up(p.value)) for p in own if p.kind == kind and p.value is not None]
        if found:
            yield path.format(d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in found), c=color, w=width, s=dashes)
    for point in own:
        if point.kind != "ours" or point.value is None:
            continue
        x = scale.across(point.at)
        if point.low is not None and point.high is not None:
            d = f"M{x:.1f} {scale.up(point.low):.1f}V{scale.up(point.high):.1f}"
            yield path.format(d=d, c=color, w=1.5, s="none")
        marker = Markup('<path d="{d}" transform="translate({x:.1f} {y:.1f})" fill="{c}"/>')
        yield marker.format(d=MARKERS[number], x=x, y=scale.up(point.value), c=color)
