"""Date spans that no detector returns: dates in MIMIC brackets, weekdays next to a date, and bare years.

Detectors skip the masks of an earlier de-identification, but a date in one must be shifted with the other dates of its
patient, or the order of events is lost. A weekday that is kept while its date is shifted discloses the offset modulo 7.
The law allows a bare year; if dates are shifted, it discloses the true year and contradicts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from clinveil.core.spans import Span
from clinveil.phi.treatment.surrogates.dates import DATE_BRACKET, WEEKDAY

DETECTOR, BRACKETS = "bare years", "date brackets"
_REACH = 14  # characters: the longest weekday with its signs
_BEFORE = re.compile(rf"(?<![^\W_]){WEEKDAY},?\s+(?:the\s+)?$", re.I)
_AFTER = re.compile(rf",?\s+(?:\({WEEKDAY}\)|{WEEKDAY}(?![^\W_]))", re.I)
_YEAR = re.compile(
    r"(?:19|20)(?<=[\s-]\d\d)\d{2}"  # digits first, so that a run of digits is the anchor
    r"(?![\w/.-]*\d|\s*(?:mg|ml|mcg|cc|g|kg|units?|iu|cal|kcal|hours?|hrs?|h|%|ft|steps|m[lg])\b)",
    re.I,
)
_TO_YEAR = re.compile(
    r"\b(?:in|since|during|until|till|before|after|circa|year|from|early|late|mid|around|by|of)[\s-]{1,2}\Z", re.I
)
_LONGEST_TO_YEAR = 8


def dated(text: str, spans: Sequence[Span], *, years: bool) -> list[Span]:
    """Return the spans and those of bracketed dates, each date extended over its weekday; with `years`, bare years too.

    Args:
        spans: sorted, without overlaps.
    """
    if "[**" in text:
        spans = sorted([*spans, *_bracketed(text, spans)])
    extended = list(_with_weekdays(text, spans))
    return sorted([*extended, *_bare_years(text, extended)]) if years else extended


def _bracketed(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    for match in DATE_BRACKET.finditer(text):
        start, end = match.span()
        if not any(span.start < end and start < span.end for span in spans):
            yield Span(start, end, "DATE", BRACKETS, 1.0, "date in a bracket of an earlier de-identification")


def _with_weekdays(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    reach = 0
    for index, span in enumerate(spans):
        ahead = spans[index + 1].start if index + 1 < len(spans) else len(text)
        if span.label == "DATE":
            before = _BEFORE.search(text, max(reach, span.start - _REACH), span.start)
            after = _AFTER.match(text, span.end, min(ahead, span.end + _REACH))
            start, end = before.start() if before else span.start, after.end() if after else span.end
            span = span if (start, end) == (span.start, span.end) else span.over(start, end)
        reach = span.end
        yield span


def _bare_years(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    for match in _YEAR.finditer(text):
        start, end = match.span()
        cue = _TO_YEAR.search(text, max(0, start - _LONGEST_TO_YEAR), start)
        if cue and not any(span.start < end and start < span.end for span in spans):
            yield Span(start, end, "DATE", DETECTOR, 0.7, "year after a word of time")
