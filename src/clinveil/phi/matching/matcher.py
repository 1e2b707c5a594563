"""Pattern matching restricted to the offsets at which a match can begin, with the same matches as `finditer`.

The anchors of all patterns (`anchors.py`) are searched for in one pass over a note. Strings are looked up per word; the
strings in a word are computed once and cached, as most words of a note have occurred before. From the anchors follow
the offsets at which each pattern is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clinveil.phi.matching.anchors import EDGE, MANY, Anchor, Required, required
from clinveil.phi.matching.wordtable import Column, codes

if TYPE_CHECKING:
    from clinveil.phi.detection.note import NoteView

Ints = NDArray[np.int32]
LONGEST_RUN = 64
"""A match begins within the first digits of a run of digits, this many, and at most `FARTHEST` before its anchor."""
FARTHEST = 96
_CLASSES = 129  # one per ASCII character, and one for all others
_OTHER = _CLASSES - 1
# Non-ASCII letters that match an ASCII letter if case is ignored (a test checks all characters).
_ASCII_OF = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
_HEAD = 3  # characters by which strings are looked up; strings of two characters have a key of two
_NO_LETTER = re.compile(r"[^A-Za-z]")


class _Anchors:
    """Anchors of the patterns of all detectors, so that each word of a note is looked up once for all of them."""

    def __init__(self) -> None:
        self.numbers: dict[re.Pattern[str], int] = {}
        self._required: list[Required] = []
        self._tables: Tables | None = None
        self._lock = Lock()

    def number(self, pattern: re.Pattern[str]) -> int | None:
        """Return the number of a pattern, adding it if it is new; None if it has no anchor."""
        needs = required(pattern)
        if needs.anchor is None:
            return None
        with self._lock:
            if pattern not in self.numbers:
                self.numbers[pattern] = len(self.numbers)
                self._required.append(needs)
                self._tables = None
        return self.numbers[pattern]

    def tables(self) -> Tables:
        """Return the tables of all patterns so far."""
        tables = self._tables
        if tables is None:
            with self._lock:
                tables = self._tables = Tables(self._required)
        return tables


class _InWord:
    """Finds the strings of anchors in a word.

    Args:
        anchors: by pattern number.
    """

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        numbers: dict[str, list[int]] = {}
        for number, anchor in enumerate(anchors):
            for text in anchor.strings:
                numbers.setdefault(text, []).append(number)
        self._by_start: dict[str, list[tuple[str, list[int]]]] = {}
        for text in sorted(numbers):
            self._by_start.setdefault(text[:_HEAD], []).append((text, numbers[text]))

    def __call__(self, word: str) -> tuple[tuple[int, int, int], ...]:
        """Return (pattern number, first offset, last offset) of the anchors in a word."""
        written = EDGE + _NO_LETTER.sub(EDGE, word.translate(_ASCII_OF)) + EDGE
        offsets: dict[int, list[int]] = {}
        for text in {written, written.lower()}:
            for start, string, numbers in self._beginning_in(text):
                if text.startswith(string, start):
                    for number in numbers:
                        offsets.setdefault(number, []).append(start - (string[0] != EDGE))
        return tuple((number, min(found), max(found)) for number, found in offsets.items())

    def _beginning_in(self, text: str) -> Iterator[tuple[int, str, list[int]]]:
        """Yield the offsets at which the head of a string occurs, with the string and its patterns."""
        known = self._by_start
        for start in range(len(text) - 1):
            for head in (text[start : start + 2], text[start : start + _HEAD]):
                if head in known:
                    for string, numbers in known[head]:
                        yield start, string, numbers


class Tables:
    """Arrays for all patterns known at one time."""

    def __init__(self, needs: Sequence[Required]) -> None:
        anchors = [need.anchor for need in needs if need.anchor is not None]
        self._column = Column(_InWord(anchors))
        self._heads = _member_table(need.first for need in needs)
        self._preceding = _member_table(need.before for need in needs)
        self._signs = _member_table(anchor.signs for anchor in anchors)
        self._any_sign = np.logical_or.reduce(self._signs, axis=0)
        self._digits = np.array([anchor.digits or MANY for anchor in anchors], np.int32)
        self._most = np.array([min(anchor.before.high, FARTHEST) for anchor in anchors], np.int32)

    def starts(self, note: NoteView) -> dict[int, list[int]]:
        """Return pattern number -> offsets at which a match can begin, in order."""
        text = _classes_of(note.plain)
        hits = [self._in_words(note), self._of_signs(text), self._of_digits(text)]
        patterns, firsts, lasts = np.concatenate(hits, axis=1)
        order = np.argsort(patterns * np.int64(text.size) + firsts, kind="stable")
        patterns, firsts, lasts = patterns[order], firsts[order], lasts[order]
        lows = np.maximum(firsts - self._most[patterns], 0)
        tried = np.where(patterns[1:] == patterns[:-1], lasts[:-1] + 1, 0)
        lows[1:] = np.maximum(lows[1:], tried)
        owners, offsets = _ranges(lows, lasts + 1)
        owners = patterns[owners]
        fits = self._heads[owners, text[offsets]]
        owners, offsets = owners[fits], offsets[fits]
        fits = self._preceding[owners, text[offsets - 1]] | (offsets == 0) | (text[offsets] == _OTHER)
        starts: dict[int, list[int]] = {}
        for number, offset in zip(owners[fits].tolist(), offsets[fits].tolist(), strict=True):
            starts.setdefault(number, []).append(offset)
        return starts

    def _in_words(self, note: NoteView) -> Ints:
        """Return the strings in words: pattern, first offset and last offset of each."""
        anchors = note.words.column(self._column).tolist()
        flat = [
            (number, start + first, start + last)
            for start, in_word in zip(note.words.starts, anchors, strict=True)
            if in_word
            for number, first, last in in_word
        ]
        return np.array(flat, np.int32).reshape(-1, 3).T

    def _of_signs(self, text: NDArray[np.uint8]) -> Ints:
        """Return the same for signs."""
        offsets = np.flatnonzero(self._any_sign[text])
        patterns, places = np.nonzero(self._signs[:, text[offsets]])
        return np.array((patterns, offsets[places], offsets[places]), np.int32)

    def _of_digits(self, text: NDArray[np.uint8]) -> Ints:
        """Return the same for runs of digits; non-ASCII characters count as digits."""
        numeric = np.zeros(text.size + 2, np.bool_)
        numeric[1:-1] = ((text >= ord("0")) & (text <= ord("9"))) | (text == _OTHER)
        edges = np.flatnonzero(numeric[1:] != numeric[:-1])
        begins, ends = edges[::2], edges[1::2]
        runs, patterns = np.nonzero((ends - begins)[:, None] >= self._digits)
        lasts = np.minimum(ends, begins + LONGEST_RUN) - 1
        return np.array((patterns, begins[runs], lasts[runs]), np.int32)


def _member_table(masks: Iterable[int]) -> NDArray[np.bool_]:
    """Return a row of character classes per mask."""
    return np.array([[chars >> code & 1 for code in range(_CLASSES)] for chars in masks], np.bool_).reshape(
        -1, _CLASSES
    )


def _ranges(lows: Ints, ends: Ints) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index of the range and the number, for all numbers in some ranges."""
    sizes = np.maximum(ends - lows, 0)
    owners = np.repeat(np.arange(sizes.size), sizes)
    offsets = np.arange(owners.size) - np.repeat(np.cumsum(sizes) - sizes - lows, sizes)
    return owners, offsets


def _classes_of(text: str) -> NDArray[np.uint8]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.minimum(codes(text), _OTHER).astype(np.uint8)


_anchors = _Anchors()


@dataclass(frozen=True)
class Matcher:
    """A pattern with its prefilter.

    Attributes:
        number: of the pattern in the tables; None if it has no anchor and every offset is tried.
    """

    pattern: re.Pattern[str]
    number: int | None

    def matches(self, note: NoteView) -> Iterator[re.Match[str]]:
        """Yield the same matches as `finditer` on the normalised note, in order."""
        if self.number is None:
            yield from self.pattern.finditer(note.plain)
            return
        position, match_at, text = 0, self.pattern.match, note.plain
        for start in candidates(note).get(self.number, ()):
            if start >= position and (match := match_at(text, start)):
                position = match.end()
                yield match


@cache
def matcher(pattern: re.Pattern[str]) -> Matcher:
    """Return the matcher of a pattern."""
    return Matcher(pattern, _anchors.number(pattern))


def candidates(note: NoteView) -> dict[int, list[int]]:
    """Return `Tables.starts` of a note, computed once."""
    tables = _anchors.tables()
    if tables not in note.candidates:
        note.candidates[tables] = tables.starts(note)
    return note.candidates[tables]
