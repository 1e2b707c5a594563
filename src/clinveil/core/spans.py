"""`Span`, a labelled range of one note, and the list of PHI labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from clinveil.core.errors import InputError

# Span labels for the identifiers of 45 CFR 164.514(b)(2) that occur in running text.
LABELS: dict[str, str] = {
    "NAME": "names of patients, relatives, clinicians (A)",
    "ADDRESS": "street addresses (B)",
    "CITY": "cities, towns and other places smaller than a state (B)",
    "ZIP": "postal codes (B)",
    "HOSPITAL": "hospitals, clinics, employers, schools and other organisations (B, R)",
    "DATE": "dates, all elements but the year (C)",
    "AGE": "ages over 89 (C)",
    "PHONE": "telephone numbers (D)",
    "FAX": "fax numbers (E)",
    "EMAIL": "e-mail addresses (F)",
    "SSN": "social security numbers (G)",
    "MRN": "medical record numbers (H)",
    "HEALTH_PLAN": "health-plan beneficiary numbers (I)",
    "ACCOUNT": "account numbers (J)",
    "LICENSE": "certificate and licence numbers (K)",
    "VEHICLE": "vehicle identifiers and plates (L)",
    "DEVICE": "device identifiers and serial numbers (M)",
    "URL": "web addresses (N)",
    "IP": "internet addresses (O)",
    "BIOMETRIC": "biometric identifiers (P)",
    "PHOTO": "references to full-face photographs (Q)",
    "ID": "any other unique number or code (R)",
}

# around a placeholder of an identifier
OPEN = "\ue003"
CLOSE = "\ue004"
NO_MARKS = str.maketrans({OPEN: " ", CLOSE: " "})  # applied to source text
PLACEHOLDER = re.compile(rf" ?{OPEN}(?P<inner>[A-Za-z_-]+ \d(?: [^{OPEN}{CLOSE}]+)?){CLOSE}")


class _Fields(NamedTuple):
    start: int
    end: int
    label: str
    detector: str = "gold"
    score: float = 1.0
    why: str = ""


class Span(
    _Fields
):  # a tuple for speed: a note has dozens, which are sorted and sent between processes
    """A half-open range [start, end) of one note, in Unicode code points.

    Attributes:
        label: one of `LABELS`.
        detector: the name of the detector ("gold" for annotations).
        score: in (0, 1]; the detector's own confidence, not a measured precision.
        why: the rule that matched, in one or two words (never text of the note); may be empty.

    Raises:
        InputError: an empty or negative span, or an unknown label.
    """

    __slots__ = ()

    def __new__(
        cls,
        start: int,
        end: int,
        label: str,
        detector: str = "gold",
        score: float = 1.0,
        why: str = "",
    ) -> Self:
        """Check and create a span. Raises InputError as above."""
        if not 0 <= start < end:
            raise InputError(f"a span needs 0 <= start < end, got [{start}, {end})")
        if label not in LABELS:
            raise InputError(f"unknown PHI label {label!r}", hint="use one of " + ", ".join(LABELS))
        return tuple.__new__(cls, (start, end, label, detector, score, why))

    def with_range(self, start: int, end: int) -> Span:
        """Return a copy with another start and end."""
        return Span(start, end, self.label, self.detector, self.score, self.why)

    def overlaps(self, other: Span) -> bool:
        """Return whether the two spans share a code point."""
        return self.start < other.end and other.start < self.end


def splice(text: str, spans: Sequence[Span], replacements: Iterable[str]) -> str:
    """Return the text with each span replaced; spans must be sorted and must not overlap.

    Raises:
        InputError: spans that overlap, are out of order, or reach beyond the text.
    """
    pieces: list[str] = []
    position = 0
    for span, replacement in zip(spans, replacements, strict=True):
        if span.start < position or span.end > len(text):
            raise InputError(
                f"the span [{span.start}, {span.end}) overlaps the previous one or exceeds the text"
            )
        pieces += (text[position : span.start], replacement)
        position = span.end
    return "".join([*pieces, text[position:]])
