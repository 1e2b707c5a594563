"""Number of gold identifiers in a location: simulated annotations for tests and for the coverage of intervals."""

from __future__ import annotations

from collections.abc import Sequence

from clinveil.core.spans import Span
from clinveil.phi.validation.locations import Location, open_parts


def identifiers_in(text: str, location: Location, others: Sequence[Location], gold: Sequence[Span]) -> int:
    """Return how many gold spans have a letter or digit in a location; at most 1 except for passages."""
    parts = open_parts(text, location, others)
    hit = sum(any(_shares(text, span, part) for part in parts) for span in gold)
    return hit if location.stratum in ("cued", "rest") else min(hit, 1)


def _shares(text: str, span: Span, part: tuple[int, int]) -> bool:
    return any(c.isalnum() for c in text[max(span.start, part[0]) : min(span.end, part[1])])
