"""Spans of dates that no detector returns: dates in brackets, weekdays and years."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from clinveil.core import Span

if TYPE_CHECKING:
    pass
from clinveil.phi.treatment.dates import DATE_BRACKET, WEEKDAY, WEEKDAY_ALONE

_DAY = re.compile("[dD][aA][yY]")


_LONGEST_WEEKDAY = 14  # characters, with its signs
_WEEKDAY_BEFORE = re.compile(rf"(?<![^\W_]){WEEKDAY},?\s+(?:the\s+)?$", re.I)
_WEEKDAY_AFTER = re.compile(rf",?\s+(?:\({WEEKDAY}\)|{WEEKDAY}(?![^\W_]))", re.I)
_BARE_YEAR = re.compile(
    r"(?:19|20)(?<=[\s(/,-]\d\d)\d{2}"  # digits first, so that a run of digits is the anchor
    r"(?![\w/.-]*\d|\s*(?:mg|ml|mcg|cc|g|kg|units?|iu|cal|kcal|hours?|hrs?|h|%|ft|steps|m[lg])\b)",
    re.I,
)
_TO_YEAR = re.compile(
    r"\b(?:in|since|during|until|till|before|after|circa|year|from|early|late|mid|around|by"
    r"|of)[\s-]{1,2}\Z",
    re.I,
)
_LIST_SIGNS = frozenset({", ", " and ", ", and ", " or ", ", or ", " & ", "/", "-", " to ", ","})
_LONGEST_SIGN = 6  # characters
_MARKED_YEAR = re.compile(r"(?:\(|[A-Za-z]{2}\s|[A-Za-z],\s)\Z")
_LATEST_MARKED_YEAR = "2039"
# A number after one of these is an amount or a time of day.
_AMOUNT = re.compile(
    r"\b(?:than|count|at|expenditure|level|calories|total|of|volume|output|intake)\s\Z", re.I
)
_LONGEST_AMOUNT = 13  # characters
_AFTER_YEAR = re.compile(r"[.,;:)]?(?:\s|$)|[)]")
_REACH = 8  # characters: the longest word of time with its sign


def date_spans(text: str, spans: Sequence[Span], *, shifting: bool) -> list[Span]:
    """Return the spans with the date spans that no detector returns.

    These are dates in the brackets of an earlier de-identification, and the weekday next to a date.
    With `shifting`, years alone are spans too, and in notes with a date all weekdays.

    Args:
        spans: sorted, without overlaps.
    """
    if "[**" in text:
        why = "date in a bracket of an earlier de-identification"
        spans = _with_free(spans, DATE_BRACKET.finditer(text), "date brackets", 1.0, why)
    spans = list(_with_weekdays(text, spans))
    if not shifting:
        return spans
    if any(span.label == "DATE" for span in spans):
        spans = _with_free(spans, _weekdays(text), "weekdays", 0.7, "weekday in a note with dates")
    return _with_free(spans, _years(text), "bare years", 0.7, "year after a word of time")


def _years(text: str) -> Iterator[re.Match[str]]:
    """Yield the years after a word of time, in brackets or after a comma, and those that follow in
    a list.
    """
    end = -1
    for match in _BARE_YEAR.finditer(text):
        start = match.start()
        lead = text[max(0, start - _REACH) : start]
        listed = 0 < end >= start - _LONGEST_SIGN and text[end:start].lower() in _LIST_SIGNS
        marked = _MARKED_YEAR.search(lead) and not _AMOUNT.search(
            text, max(0, start - _LONGEST_AMOUNT), start
        )
        marked = (
            marked
            and match[0] <= _LATEST_MARKED_YEAR
            and bool(_AFTER_YEAR.match(text, match.end()))
        )
        if listed or marked or _TO_YEAR.search(lead):
            end = match.end()
            yield match


def _weekdays(text: str) -> Iterator[re.Match[str]]:
    """Yield the weekdays; `day` is searched for first, which is 15 times as fast."""
    for hit in _DAY.finditer(text):
        if match := WEEKDAY_ALONE.search(text, max(0, hit.start() - 6), hit.end() + 2):
            yield match


def _with_free(
    spans: Sequence[Span], matches: Iterable[re.Match[str]], detector: str, score: float, why: str
) -> list[Span]:
    """Return the spans and those of matches that overlap none of them."""
    starts = [span.start for span in spans]
    added = []
    for match in matches:
        before = bisect_left(starts, match.end())
        if not before or spans[before - 1].end <= match.start():
            added.append(Span(*match.span(), "DATE", detector, score, why))
    return sorted([*spans, *added])


def _with_weekdays(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans, each date extended over its weekday."""
    reach = 0
    for index, span in enumerate(spans):
        ahead = spans[index + 1].start if index + 1 < len(spans) else len(text)
        if span.label == "DATE":
            before = _WEEKDAY_BEFORE.search(
                text, max(reach, span.start - _LONGEST_WEEKDAY), span.start
            )
            after = _WEEKDAY_AFTER.match(text, span.end, min(ahead, span.end + _LONGEST_WEEKDAY))
            start = before.start() if before else span.start
            end = after.end() if after else span.end
            span = span if (start, end) == (span.start, span.end) else span.with_range(start, end)
        reach = span.end
        yield span
