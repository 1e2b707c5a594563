"""What somebody who knows all identifiers would say of each place: for tests and for the coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence

from clinveil.core.spans import Span
from clinveil.phi.validation.places import Place, open_parts


def identifiers_in(text: str, place: Place, others: Sequence[Place], gold: Sequence[Span]) -> int:
    """How many gold spans have a letter or digit in a place; 0 or 1 but in a passage."""
    parts = open_parts(text, place, others)
    hit = sum(any(_shares(text, span, part) for part in parts) for span in gold)
    return hit if place.stratum in ("cued", "rest") else min(hit, 1)


def _shares(text: str, span: Span, part: tuple[int, int]) -> bool:
    return any(c.isalnum() for c in text[max(span.start, part[0]) : min(span.end, part[1])])
