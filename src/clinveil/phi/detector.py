"""The `Detector` protocol, and the detector that most kinds of identifier need: a list of rules.

To add a kind of identifier: write one file with a `detector()` function, and add it to `catalogue.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from clinveil.phi.note import NoteView
from clinveil.spans import Span


class Detector(Protocol):
    """Finds one kind of identifier. It has no state: the same note gives the same spans."""

    @property
    def name(self) -> str:
        """The name that its spans carry."""
        ...

    @property
    def labels(self) -> frozenset[str]:
        """The labels that its spans may carry."""
        ...

    def find(self, note: NoteView) -> Iterable[Span]:
        """Spans in code points of `note.text`, in any order; they may overlap."""
        ...


# The anchor that most rules for long numbers share, so that a note is searched for it once.
FOUR_DIGITS = re.compile(r"\d\d\d\d")
Check = Callable[[re.Match[str], NoteView], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern on the plain copy, and when it counts.

    Most rules find nothing in most notes, so a rule says where it is worth looking: near an anchor, or near a word.

    Attributes:
        label: the label of what it finds.
        pattern: its group `phi`, or where it has none the whole match, is the identifier.
        score: what it claims, in (0, 1].
        needs: words (as they are, or in lower case for any case); the pattern is tried only near one of them.
        anchor: a quick pattern; where given, the rule's own is tried only near what it finds.
        reach: how many characters before and after count as near.
        check: a last look at a match; False drops it.
    """

    label: str
    pattern: re.Pattern[str]
    score: float = 0.9
    needs: frozenset[str] = frozenset()
    anchor: re.Pattern[str] | None = None
    reach: int = 80
    check: Check | None = None

    def places(self, note: NoteView) -> Iterator[tuple[int, int]]:
        """The places in the plain copy that the rule names."""
        group = "phi" if "phi" in self.pattern.groupindex else 0
        for start, end in self._windows(note):
            for match in self.pattern.finditer(note.plain, start, end):
                if match.end(group) > match.start(group) and (self.check is None or self.check(match, note)):
                    yield match.span(group)

    def _windows(self, note: NoteView) -> list[tuple[int, int]]:
        """The stretches of the note where the rule is tried."""
        if self.needs and note.positions.keys().isdisjoint(self.needs):
            return []
        key = (self.anchor or self.needs, self.reach)
        if (known := note.windows.get(key)) is None:
            known = note.windows[key] = list(_merged(self._places_to_look(note), self.reach, len(note.plain)))
        return known

    def _places_to_look(self, note: NoteView) -> Iterable[tuple[int, int]]:
        if self.anchor is not None:
            return (match.span() for match in self.anchor.finditer(note.plain))
        if not self.needs:
            return [(0, len(note.plain))]
        found = (note.positions[word] for word in note.positions.keys() & self.needs)
        return ((start, start) for start in sorted(set(chain.from_iterable(found))))


def _merged(places: Iterable[tuple[int, int]], reach: int, length: int) -> Iterator[tuple[int, int]]:
    """Sorted places grown by `reach` on both sides, those that touch made one."""
    start = end = -1
    for first, last in places:
        if first - reach > end:
            if end >= 0:
                yield start, end
            start = max(0, first - reach)
        end = max(end, min(last + reach, length))
    if end >= 0:
        yield start, end


def words(text: str) -> frozenset[str]:
    """The words of a text as a rule's `needs`."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class RuleDetector:
    """A detector made of rules."""

    name: str
    rules: tuple[Rule, ...]

    @property
    def labels(self) -> frozenset[str]:
        """The labels of its rules."""
        return frozenset(rule.label for rule in self.rules)

    def find(self, note: NoteView) -> Iterator[Span]:
        """What each rule finds, rule by rule."""
        for rule in self.rules:
            for start, end in rule.places(note):
                yield note.span(start, end, rule.label, self.name, rule.score)


def before(match: re.Match[str], note: NoteView, width: int) -> str:
    """The lower-cased text of up to `width` characters before the identifier of a match."""
    start = match.start("phi" if "phi" in match.re.groupindex else 0)
    return note.plain[max(0, start - width) : start].lower()


def after(match: re.Match[str], note: NoteView, width: int) -> str:
    """The lower-cased text of up to `width` characters after the identifier of a match."""
    end = match.end("phi" if "phi" in match.re.groupindex else 0)
    return note.plain[end : end + width].lower()
