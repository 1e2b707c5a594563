"""Where in a note patterns can match, so that they are tried nowhere else; the matches are those of `finditer`.

Strings that a pattern must hold are looked up word by word: what a word holds is found once and kept, as most words of
a note have been seen before. Runs of characters are searched for, one look for all patterns that ask for the same.
From such a spot a match can reach as far as characters go that the pattern can consume; the stretch is cut where none
of its assertions reads on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from clinveil.phi.anchors import EDGE, MANY, NEAR, Literal, Reach, Run, Strings
from clinveil.phi.note import NoteView
from clinveil.phi.required import required

# The letters other than ASCII ones that match an ASCII letter where case is ignored (a test looks at all characters).
_ASCII_OF = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
_NO_LETTER = re.compile(r"[^A-Za-z]")
_MOST_WORDS = 1 << 16
# A word edge and the end of a line read this far past a match.
_READ_ON = 2


Spot = tuple[int, int, int, int]
"""What a match must hold: it begins in [first, last], in a word or run at [start, end)."""


class _Words(dict[str, tuple[tuple[int, int, int], ...]]):
    """Word -> (number of a pattern, first and last place in the word) of the strings that it holds.

    One table for all patterns of all detectors, so that each word of a note is looked up once. It is emptied when it
    gets large, or when a pattern is added: detectors add all of theirs before a note is read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[re.Pattern[str], int] = {}
        self.wanted: dict[Literal, list[int]] = {}
        self.lengths: list[int] = []

    def number(self, pattern: re.Pattern[str], literals: Iterable[Literal]) -> int:
        """The number of a pattern, which is added where it is new."""
        if pattern not in self.numbers:
            self.numbers[pattern] = len(self.numbers)
            for literal in literals:
                self.wanted.setdefault(literal, []).append(self.numbers[pattern])
            self.lengths = sorted({len(literal.text) for literal in self.wanted})
            self.clear()
        return self.numbers[pattern]

    def __missing__(self, word: str) -> tuple[tuple[int, int, int], ...]:
        if len(self) >= _MOST_WORDS:
            self.clear()
        places: dict[int, list[int]] = {}
        for literal, place in self._strings_of(word):
            for number in self.wanted.get(literal, ()):
                places.setdefault(number, []).append(place)
        self[word] = tuple((number, min(found), max(found)) for number, found in places.items())
        return self[word]

    def _strings_of(self, word: str) -> Iterator[tuple[Literal, int]]:
        """The strings of the word, its edges marked, and where their first letter stands."""
        for any_case in (False, True):
            text = EDGE + _NO_LETTER.sub(EDGE, word.translate(_ASCII_OF) if any_case else word) + EDGE
            text = text.lower() if any_case else text
            for length in self.lengths:
                for start in range(len(text) - length + 1):
                    string = text[start : start + length]
                    yield Literal(string, any_case), start - (string[0] != EDGE)


_words = _Words()


def _spots(note: NoteView) -> dict[int, list[Spot]]:
    """Where the strings of all patterns stand in a note, by the pattern's number."""
    patterns = len(_words.numbers)
    if patterns not in note.spots:
        found: dict[int, list[Spot]] = {}
        for start, word in zip(note.words.starts, note.words.written, strict=True):
            for number, first, last in _words[word]:
                found.setdefault(number, []).append((start + first, start + last, start, start + len(word)))
        note.spots[patterns] = found
    return note.spots[patterns]


def _runs(note: NoteView, run: Run) -> list[Spot]:
    """Where a run of characters stands; several patterns share a look."""
    if (known := note.runs.get(run.items)) is None:
        known = note.runs[run.items] = list(_look_for(run, note))
    return known


def _look_for(run: Run, note: NoteView) -> Iterator[Spot]:
    if least := run.digits:
        return ((start, end - 1, start, end) for start, end in note.numbers if end - start >= least)
    if signs := run.signs:
        return ((at, at, at, at + 1) for sign in signs for at in _places_of(sign, note.plain))
    found = (match.span() for match in _compiled(run.items).finditer(note.plain))
    return ((start, end - 1, start, end) for start, end in found)


def _places_of(sign: str, text: str) -> Iterator[int]:
    at = text.find(sign)
    while at >= 0:
        yield at
        at = text.find(sign, at + 1)


@cache
def _compiled(items: tuple[Reach, ...]) -> re.Pattern[str]:
    return re.compile("".join(item.source() for item in items))


@dataclass(frozen=True)
class Places:
    """Where a pattern can match.

    Attributes:
        pattern: the pattern.
        number: in the table of words, where it must hold strings.
        run: of characters that it must hold, where that is rarer.
        lead: how many characters before them it may begin, where these are few.
        stretch: how far it goes from them, where they are not.
    """

    pattern: re.Pattern[str]
    number: int | None
    run: Run | None
    lead: int
    stretch: _Stretch | None

    def matches(self, note: NoteView) -> Iterator[re.Match[str]]:
        """All matches of the pattern, from left to right: those of `finditer` on the whole note."""
        if self.run is not None:
            spots = _runs(note, self.run)
        elif self.number is not None:
            spots = _spots(note).get(self.number, [])
        else:
            return self.pattern.finditer(note.plain)
        if not spots:
            return iter(())
        if self.stretch is None:
            return _from_starts(self.pattern, note.plain, spots, self.lead)
        return _in_stretches(self.pattern, note, spots, self.stretch)


@cache
def places(pattern: re.Pattern[str]) -> Places:
    """Where a pattern can match, from what it must hold."""
    anchor, whole, ahead = required(pattern)
    if anchor is None:
        return Places(pattern, None, None, 0, None)
    number = _words.number(pattern, anchor.literals) if isinstance(anchor, Strings) else None
    run = None if isinstance(anchor, Strings) else anchor
    before = anchor.before
    if before.high <= NEAR:
        return Places(pattern, number, run, before.high, None)
    stretch = _Stretch(_run_of(before.chars), before.high, _run_of(whole.chars), whole.high, ahead + _READ_ON)
    return Places(pattern, number, run, 0, stretch)


class _Stretch(NamedTuple):
    """How far a pattern can go from a spot: over which characters, and over how many."""

    behind: re.Pattern[str]
    most_behind: int
    ahead: re.Pattern[str]
    most_ahead: int
    reads_on: int

    def around(self, text: str, backwards: str, spots: Iterable[Spot]) -> Iterator[tuple[int, int]]:
        """The places in the text that hold every match with such a spot, and all that it reads.

        The spots are those of one pattern, from left to right: they do not overlap. What was read for one of them is
        not read again for the next, or a text full of them would take the square of its length.
        """
        begun = read = 0  # from `begun` to `read` stand characters that a match can have before its spot
        ahead = -1
        for _, _, start, end in spots:
            back = _length(self.behind, backwards, len(text) - start, len(text) - read)
            begun, read = (begun if back == start - read else start - back), start
            if ahead < end:
                ahead = end + _length(self.ahead, text, end, len(text))
            on = min(self.most_ahead, ahead - end)
            yield max(begun, start - self.most_behind), min(len(text), end + on + self.reads_on)


@cache
def _run_of(chars: int) -> re.Pattern[str]:
    return re.compile(Reach(chars, 0, MANY).source())


def _length(run: re.Pattern[str], text: str, start: int, end: int) -> int:
    match = run.match(text, start, end)
    return match.end() - start if match else 0


def _from_starts(pattern: re.Pattern[str], text: str, spots: Iterable[Spot], lead: int) -> Iterator[re.Match[str]]:
    """Matches that begin at a spot, or as many characters before it."""
    done = 0
    for first, last, _, _ in sorted(spots):
        for start in range(max(first - lead, done), last + 1):
            if start >= done:
                match = pattern.match(text, start)
                done = match.end() if match else start + 1
                if match:
                    yield match


def _in_stretches(
    pattern: re.Pattern[str], note: NoteView, spots: Iterable[Spot], stretch: _Stretch
) -> Iterator[re.Match[str]]:
    """Matches about a spot: stretches that touch are one, so that none is cut."""
    for start, end in _merged(stretch.around(note.plain, note.backwards, sorted(spots))):
        yield from pattern.finditer(note.plain, start, end)


def _merged(stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start = end = -1
    for first, last in stretches:
        if first > end:
            if end >= 0:
                yield start, end
            start = first
        end = max(end, last)
    if end >= 0:
        yield start, end
