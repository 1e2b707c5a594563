"""Draw the two bars of the first page as inline SVG, without a chart library; colours come from the page's CSS."""

from __future__ import annotations

from markupsafe import Markup

from clinveil.report.cells import Row
from clinveil.report.numerals import Number

WIDTH, HEIGHT = 120, 12
_SVG = '<svg class="bar" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">{shapes}</svg>'
_TRACK = '<rect class="track" x="0" y="3" width="{w}" height="6"/>'
_FILL = '<rect class="{kind}" x="0" y="3" width="{x:.1f}" height="6"/>'
_RANGE = '<path class="range" d="M{low:.1f} 6H{high:.1f}"/>'
_TICK = '<path class="limit" d="M{x:.1f} 0V12"/>'


def gap_bar(share: Number, ends: tuple[Number, Number] | None) -> Markup:
    """Return a bar from floor (0) to ceiling (1) filled to the share; empty where there is none."""
    if share.value is None:
        return Markup("")
    shapes = [Markup(_TRACK).format(w=WIDTH), Markup(_FILL).format(kind="share", x=_at(share.value, 1))]
    shapes += _range(ends, 1)
    return _drawn(f"{share.text} of the way from floor to ceiling", shapes)


def risk_bar(shown: Row, threshold: float, above: bool) -> Markup:
    """Return a bar of a risk with its interval and the threshold; empty where the number is hidden."""
    if shown.hidden or shown.value.value is None:
        return Markup("")
    high = shown.ends[1].value if shown.ends else None
    top = min(1.0, max(2 * threshold, 1.1 * float(high if high is not None else shown.value.value), 0.01))
    fill = Markup(_FILL).format(kind="over" if above else "under", x=_at(shown.value.value, top))
    limit = Markup(_TICK).format(x=_at(threshold, top))
    shapes = [Markup(_TRACK).format(w=WIDTH), fill, *_range(shown.ends, top), limit]
    return _drawn(f"{shown.value.text}; the line marks the threshold", shapes)


def _at(value: float, top: float) -> float:
    return WIDTH * min(max(value / top, 0.0), 1.0)


def _range(ends: tuple[Number, Number] | None, top: float) -> list[Markup]:
    if ends is None or ends[0].value is None or ends[1].value is None:
        return []
    return [Markup(_RANGE).format(low=_at(ends[0].value, top), high=_at(ends[1].value, top))]


def _drawn(label: str, shapes: list[Markup]) -> Markup:
    return Markup(_SVG).format(w=WIDTH, h=HEIGHT, label=label, shapes=Markup("").join(shapes))
