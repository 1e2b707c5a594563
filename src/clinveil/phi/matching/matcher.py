"""Pattern matching restricted to the offsets at which a match can begin, with the same matches as
`finditer`.

The anchors of all patterns (`anchors.py`) are searched for in one pass over a note, strings by an
Aho-Corasick automaton. From the anchors follow the offsets at which each pattern is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from ahocorasick_rs import AhoCorasick, Implementation
from numpy.typing import NDArray

from clinveil.core.compiled import kernel
from clinveil.phi.matching.anchors import EDGE, MANY, Required, required
from clinveil.phi.matching.wordtable import codes

if TYPE_CHECKING:
    from clinveil.phi.detection.note import NoteView

Ints = NDArray[np.int32]
LONGEST_RUN = 64
"""A match begins within the first digits of a run of digits, this many, and at most `FARTHEST`
before its anchor.
"""
FARTHEST = 96
_CLASSES = 129  # one per ASCII character, and one for all others
_OTHER = _CLASSES - 1
# Characters without a letter, and non-ASCII letters that match an ASCII letter if case is ignored
# (a test checks all).
_LETTERS = {code: EDGE for code in range(128) if not chr(code).isalpha()} | str.maketrans(
    "\u0130\u0131\u017f\u212a", "iisk"
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class _Anchors:
    """Anchors of the patterns of all detectors, so that each note is searched once for all of
    them.
    """

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


class Tables:
    """Arrays for all patterns known at one time."""

    def __init__(self, needs: Sequence[Required]) -> None:
        anchors = [need.anchor for need in needs if need.anchor is not None]
        strings: dict[str, list[int]] = {}
        for number, anchor in enumerate(anchors):
            for text in anchor.strings:
                strings.setdefault(text, []).append(number)
        exact = [text for text in strings if text != text.lower()]
        folded = [text for text in strings if text == text.lower()]
        self._exact = _automaton(exact)
        self._folded = _automaton(folded)
        self._n_exact = len(exact)
        ordered = [*exact, *folded]
        # From the begin of a string to its first letter in the note; the searched text has an
        # additional edge before it.
        self._shifts = np.array([(text[0] == EDGE) - 1 for text in ordered], np.int32)
        self._sizes = np.array([len(strings[text]) for text in ordered], np.int32)
        self._owners = np.array([number for text in ordered for number in strings[text]], np.int32)
        self._begins = np.cumsum(self._sizes) - self._sizes
        self._heads = _member_table(need.first for need in needs)
        self._preceding = _member_table(need.before for need in needs)
        self._signs = _member_table(anchor.signs for anchor in anchors)
        self._any_sign = np.logical_or.reduce(self._signs, axis=0)
        self._digits = np.array([anchor.digits or MANY for anchor in anchors], np.int32)
        self._most = np.array([min(anchor.before.high, FARTHEST) for anchor in anchors], np.int32)

    def starts(self, note: NoteView) -> dict[int, list[int]]:
        """Return pattern number -> offsets at which a match can begin, in order."""
        text = np.minimum(codes(note.plain), _OTHER).astype(np.uint8)
        hits = np.concatenate(
            [self._of_strings(note.plain), self._of_signs(text), self._of_digits(text)], axis=1
        )
        owners, offsets = _offsets(text, hits, self._most, self._heads, self._preceding)
        order = np.argsort(owners, kind="stable")
        owners = owners[order]
        offsets = offsets[order]
        edges = [0, *(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist(), owners.size]
        return {int(owners[a]): offsets[a:b].tolist() for a, b in pairwise(edges) if a < b}

    def _of_strings(self, text: str) -> Ints:
        """Return the strings of a text: pattern, first offset and last offset of each, by
        offset.
        """
        letters = f"{EDGE}{_NOT_ASCII.sub(EDGE, text.translate(_LETTERS))}{EDGE}"
        exact = _matches(self._exact, letters)
        folded = _matches(self._folded, letters.lower())
        folded[:, 0] += self._n_exact
        numbers, begins, _ = np.concatenate([exact, folded]).T
        offsets = begins + self._shifts[numbers]
        order = np.argsort(offsets, kind="stable")
        numbers = numbers[order]
        sizes = self._sizes[numbers]
        steps = np.arange(sizes.sum()) - np.repeat(
            np.cumsum(sizes) - sizes - self._begins[numbers], sizes
        )
        offsets = np.repeat(offsets[order], sizes)
        return np.array((self._owners[steps], offsets, offsets), np.int32)

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
        begins = edges[::2]
        ends = edges[1::2]
        runs, patterns = np.nonzero((ends - begins)[:, None] >= self._digits)
        lasts = np.minimum(ends, begins + LONGEST_RUN) - 1
        return np.array((patterns, begins[runs], lasts[runs]), np.int32)


@kernel
def _offsets(
    text: NDArray[np.uint8],
    hits: Ints,
    most: Ints,
    heads: NDArray[np.bool_],
    preceding: NDArray[np.bool_],
) -> tuple[NDArray[np.int16], Ints]:
    """Return pattern numbers and offsets at which they can match, in order for each pattern.

    Args:
        text: character classes. hits: rows of pattern numbers, first and last offsets; in order for
            each pattern.
        most: by pattern, characters that can be consumed before the anchor.
        heads: pattern x class, whether a match can begin so. preceding: whether the class can be
            before a match.
    """
    lows = np.empty(hits.shape[1], np.int32)
    tried = np.zeros(most.size, np.int32)
    size = 0
    for hit in range(lows.size):
        pattern = hits[0, hit]
        lows[hit] = max(hits[1, hit] - most[pattern], tried[pattern])
        tried[pattern] = max(tried[pattern], hits[2, hit] + 1)
        size += max(0, hits[2, hit] + 1 - lows[hit])
    owners = np.empty(size, np.int16)
    offsets = np.empty(size, np.int32)
    count = 0
    for hit in range(lows.size):
        pattern = hits[0, hit]
        for offset in range(lows[hit], hits[2, hit] + 1):
            if heads[pattern, text[offset]] and (
                offset == 0 or text[offset] == 128 or preceding[pattern, text[offset - 1]]
            ):
                owners[count] = pattern
                offsets[count] = offset
                count += 1
    return owners[:count], offsets[:count]


def _automaton(strings: list[str]) -> AhoCorasick:
    """Return an automaton that finds all strings in a text, those that overlap included."""
    return AhoCorasick(strings, store_patterns=False, implementation=Implementation.DFA)


def _matches(automaton: AhoCorasick, text: str) -> Ints:
    """Return the number, the begin and the end of each string in a text, (n, 3)."""
    matches = automaton.find_matches_as_indexes(text, overlapping=True)
    flat = np.fromiter(chain.from_iterable(matches), np.int32, 3 * len(matches))
    return flat.reshape(-1, 3)


def _member_table(masks: Iterable[int]) -> NDArray[np.bool_]:
    """Return a row of character classes per mask."""
    return np.array(
        [[chars >> code & 1 for code in range(_CLASSES)] for chars in masks], np.bool_
    ).reshape(-1, _CLASSES)


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
        position = 0
        match_at = self.pattern.match
        text = note.plain
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
