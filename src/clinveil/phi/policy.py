"""From what several detectors found to spans that do not overlap, and what becomes of each kind in each mode.

Spans that share a character become one that covers them all, so that no tail of an identifier is left; its label is
that of the longest, then of the surest. A name that ends inside a word or before a hyphened part takes the rest too.
Every label of `spans.LABELS` has a treatment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import Literal

from clinveil.core.errors import UsageError
from clinveil.core.spans import LABELS, Span

Mode = Literal["remove", "replace", "tag"]
# There is no surrogate for what only hints at a picture or a finger: it is tagged.
_TAGGED = frozenset({"BIOMETRIC", "PHOTO"})


def resolve(text: str, spans: Iterable[Span]) -> list[Span]:
    """Sorted spans without overlaps that cover every character of the given ones.

    The order in which spans are given changes nothing.
    """
    return united(_to_word_edges(text, span) if span.label == "NAME" else span for span in spans)


def united(spans: Iterable[Span]) -> list[Span]:
    """Sorted spans in which those that overlap have become one; the order in which they are given changes nothing."""
    return [_union(cluster) for cluster in _clusters(sorted(spans))]


def _clusters(spans: list[Span]) -> Iterator[list[Span]]:
    """Runs of sorted spans in which each overlaps one before it."""
    reach = number = 0

    def cluster(span: Span) -> int:
        nonlocal reach, number
        if span.start >= reach:
            number += 1
        reach = max(reach, span.end)
        return number

    for _, run in groupby(spans, key=cluster):
        yield list(run)


def _union(spans: list[Span]) -> Span:
    winner = max(spans, key=lambda s: (s.end - s.start, s.score, s.label, s.detector))
    return replace(winner, start=min(s.start for s in spans), end=max(s.end for s in spans))


def _to_word_edges(text: str, span: Span) -> Span:
    """Grow a name to the edges of its words, hyphened parts included; a possessive ending stays outside."""
    start, end = span.start, span.end
    while start > 0 and text[start - 1].isalpha() and text[start].isalpha():
        start -= 1
    while end < len(text) and _goes_on(text, end):
        end += 1
    return span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end)


def _goes_on(text: str, end: int) -> bool:
    """Whether the character at `end` belongs to the word before it."""
    if text[end].isalpha():
        return text[end - 1].isalpha() or text[end - 1] == "-"
    return text[end] == "-" and text[end - 1].isalpha() and text[end + 1 : end + 2].isalpha()


class Treatment(Enum):
    """What stands in the place of an identifier."""

    NOTHING = "nothing"
    TAG = "tag"
    SURROGATE = "surrogate"


def treatment(label: str, mode: Mode) -> Treatment:
    """The treatment of a label in a mode. Raises UsageError for a label or mode that is not known: nothing is kept."""
    if label not in LABELS:
        raise UsageError(f"unknown PHI label {label!r}")
    if mode == "remove":
        return Treatment.NOTHING
    if mode == "tag":
        return Treatment.TAG
    if mode == "replace":
        return Treatment.TAG if label in _TAGGED else Treatment.SURROGATE
    raise UsageError(f"unknown mode {mode!r}", remedy="remove, replace or tag")


def tag(label: str) -> str:
    """The typed tag of a label: `[NAME]`."""
    return f"[{label}]"
