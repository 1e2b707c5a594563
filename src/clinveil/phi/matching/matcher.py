"""Pattern matching restricted to candidate offsets, with the same matches as `finditer`.

A prefilter searches each note once for the anchors of all patterns (`required.py`). Strings are looked up per word; the
strings in a word are computed once and cached, as most words of a note have occurred before. Runs of characters are
searched for in the text. `match_starts.py` computes from the anchors the offsets at which a match can begin, in one
pass for all patterns, and a pattern is tried only at those offsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.phi.detection.note import NoteView
from clinveil.phi.matching.anchors import ALL, EDGE, NEAR, Run, Strings
from clinveil.phi.matching.automaton import automaton
from clinveil.phi.matching.match_starts import (
    CLASSES,
    OTHER,
    Automata,
    Triggers,
    Windows,
    WordAnchors,
    find_match_starts,
    state,
)
from clinveil.phi.matching.required import required
from clinveil.phi.matching.wordtable import Column, codes

# Non-ASCII letters that match an ASCII letter if case is ignored (a test checks all characters).
_ASCII_OF = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
_NO_LETTER = re.compile(r"[^A-Za-z]")
_MOST_ROWS = 1 << 16
_CAPACITY = 512  # initial number of candidates that a pass can return
# Word boundaries and line ends read this many characters past a match.
_LOOKAHEAD = 2


class _Anchors:
    """Anchors of the patterns of all detectors, so that each word of a note is looked up once for all of them.

    The tables are rebuilt when a pattern is added; detectors add all their patterns before the first note.
    """

    def __init__(self) -> None:
        self.numbers: dict[re.Pattern[str], int] = {}
        self.wanted: dict[bool, dict[str, list[int]]] = {False: {}, True: {}}
        self.lengths: list[int] = []
        self.searches: list[_Search] = []
        self._tables: Tables | None = None

    def number(self, pattern: re.Pattern[str]) -> int | None:
        """Return the number of a pattern, adding it if it is new; None if it has no anchor."""
        anchor, whole, ahead = required(pattern)
        if anchor is None:
            return None
        if pattern not in self.numbers:
            number = self.numbers[pattern] = len(self.numbers)
            for literal in anchor.literals if isinstance(anchor, Strings) else ():
                self.wanted[literal.any_case].setdefault(literal.text, []).append(number)
            self.lengths = sorted({len(text) for texts in self.wanted.values() for text in texts})
            far = anchor.before.high > NEAR
            window = (-1 if far else anchor.before.high, anchor.before.high, whole.high, ahead + _LOOKAHEAD)
            run = None if isinstance(anchor, Strings) else anchor
            self.searches.append(_Search(run, (anchor.before.chars, whole.chars), window, _AutomatonArrays.of(pattern)))
            self._tables = None
        return self.numbers[pattern]

    def tables(self) -> Tables:
        """Return the tables of all patterns so far."""
        if self._tables is None or self._tables.full:
            self._tables = Tables(self)
        return self._tables

    def in_word(self, word: str) -> tuple[tuple[int, int, int], ...]:
        """Return (pattern number, first offset, last offset) of the anchors in a word."""
        offsets: dict[int, list[int]] = {}
        for numbers, offset in self._strings_of(word):
            for number in numbers:
                offsets.setdefault(number, []).append(offset)
        return tuple((number, min(found), max(found)) for number, found in offsets.items())

    def _strings_of(self, word: str) -> Iterator[tuple[list[int], int]]:
        """Yield the pattern numbers of each string in a word (with marked edges), and its offset."""
        for any_case, wanted in self.wanted.items():
            text = EDGE + _NO_LETTER.sub(EDGE, word.translate(_ASCII_OF) if any_case else word) + EDGE
            text = text.lower() if any_case else text
            for length in self.lengths:
                for start in range(len(text) - length + 1):
                    if numbers := wanted.get(text[start : start + length]):
                        yield numbers, start - (text[start] != EDGE)


class _AutomatonArrays(NamedTuple):
    """An automaton as tuples, see `match_starts.Automata`; all are empty if the automaton is too large."""

    before: int = 0
    first: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    ends: tuple[bool, ...] = ()
    follow: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, pattern: re.Pattern[str] | Run) -> _AutomatonArrays:
        """Return the automaton of a pattern or a run."""
        built = automaton(pattern)
        if built is None:
            return cls()
        follow = tuple(tuple(sorted(after)) for after in built.follow)
        ends = tuple(position in built.ends for position in range(len(built.chars)))
        return cls(built.before, tuple(sorted(built.first)), tuple(built.chars), ends, follow)


class _Search(NamedTuple):
    """How to search for one pattern.

    Attributes:
        run: its anchor; None for strings. chars: bit masks of the characters before the anchor and of the whole match.
        window: lead, width before, width after and lookahead, see `match_starts.Windows`.
    """

    run: Run | None
    chars: tuple[int, int]
    window: tuple[int, int, int, int]
    automaton: _AutomatonArrays


class Tables:
    """Arrays of `find_match_starts` for all patterns known at one time."""

    def __init__(self, anchors: _Anchors) -> None:
        self._anchors, self._rows = anchors, dict[tuple[tuple[int, int, int], ...], int]()
        self._lock, self._column = Lock(), Column(self._row, np.int32)
        self._classes: dict[int, int] = {0: 0}
        searches = anchors.searches
        runs = [(number, search.run) for number, search in enumerate(searches) if search.run and search.run.mixed]
        automata = [search.automaton for search in searches] + [_AutomatonArrays.of(run) for _, run in runs]
        self._triggers = _triggers(searches, runs)
        self._windows = self._windows_of(searches)
        self._automata = self._joined(automata)
        self._widest = max((len(arrays.takes) for arrays in automata), default=0)
        self._word_anchors = _word_anchors(self._rows)

    @property
    def full(self) -> bool:
        """Whether the tables must be replaced by new ones."""
        return len(self._rows) >= _MOST_ROWS

    def candidates(self, note: NoteView) -> dict[int, list[tuple[int, int]]]:
        """Return pattern number -> (offset where a match can begin, end of the text that it can read), sorted."""
        text = _classes_of(note.plain)
        words, tokens = note.tokens.words, note.tokens
        rows = note.words.column(self._column)
        if self._word_anchors.row_of.size <= len(self._rows):
            with self._lock:
                self._word_anchors = _word_anchors(self._rows)
        capacity = _CAPACITY
        while True:
            scan = state(len(self._anchors.searches), self._widest, capacity)
            arrays = self._word_anchors, self._triggers, self._windows, self._automata
            find_match_starts(text, tokens.starts[words], tokens.ends[words], rows, *arrays, scan)
            if (total := int(scan.total[0])) <= capacity:
                break
            capacity = total
        by_pattern: dict[int, list[tuple[int, int]]] = {}
        for pattern, start, end in scan.found[:, :total].T.tolist():
            by_pattern.setdefault(pattern, []).append((start, end))
        return by_pattern

    def _row(self, word: str) -> int:
        """Return the row of the anchors in a word; words with the same anchors share a row, and most have none."""
        anchors = self._anchors.in_word(word)
        with self._lock:
            return self._rows.setdefault(anchors, len(self._rows))

    def _class(self, chars: int) -> int:
        return self._classes.setdefault(chars, len(self._classes))

    def _windows_of(self, searches: list[_Search]) -> Windows:
        before, whole = ([self._class(search.chars[side]) for search in searches] for side in (0, 1))
        lead, behind, ahead, lookahead = ([search.window[column] for search in searches] for column in range(4))
        return Windows(*map(_ints, (lead, before, behind, whole, ahead, lookahead)))

    def _joined(self, automata: list[_AutomatonArrays]) -> Automata:
        """Concatenate the automata."""
        begins = np.cumsum([0, *(len(one.takes) for one in automata)]).tolist()
        numbered = list(zip(begins, automata, strict=False))
        first = [[begin + position for position in one.first] for begin, one in numbered]
        follow = [[begin + position for position in after] for begin, one in numbered for after in one.follow]
        heads = [self._class(_heads(one)) for one in automata]
        before = [self._class(one.before) for one in automata]
        takes = [self._class(chars) for one in automata for chars in one.takes]
        ends = np.array([end for one in automata for end in one.ends], np.bool_)
        chars = np.array([[chars >> code & 1 for code in range(CLASSES)] for chars in self._classes], np.bool_)
        return Automata(
            *_ragged(first), _ints(begins), _ints(before), _ints(heads), _ints(takes), ends, *_ragged(follow), chars
        )


def _heads(arrays: _AutomatonArrays) -> int:
    """Return the possible first characters of a match; all characters if the automaton was too large."""
    return reduce(or_, (arrays.takes[position] for position in arrays.first), 0) or ALL


def _classes_of(text: str) -> NDArray[np.uint8]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.minimum(codes(text), OTHER).astype(np.uint8)


def _triggers(searches: list[_Search], runs: list[tuple[int, Run]]) -> Triggers:
    """Return the characters and digit runs that are anchors of each pattern."""
    signs: list[list[int]] = [[] for _ in range(CLASSES)]
    begins: list[list[int]] = [[] for _ in range(CLASSES)]
    for number, search in enumerate(searches):
        for sign in search.run.signs if search.run and not search.run.digits else "":
            signs[ord(sign)].append(number)
    for number, (_, run) in enumerate(runs):
        for code in range(CLASSES):
            if run.items[0].chars >> code & 1:
                begins[code].append(number)
    digits = [(number, search.run.digits) for number, search in enumerate(searches) if search.run and search.run.digits]
    automata = _ints(range(len(searches), len(searches) + len(runs)))
    of_digits, least = _ints(number for number, _ in digits), _ints(least for _, least in digits)
    of_runs = _ints(number for number, _ in runs)
    return Triggers(*_ragged(signs), of_digits, least, *_ragged(begins), automata, of_runs)


def _word_anchors(rows: Iterable[tuple[tuple[int, int, int], ...]]) -> WordAnchors:
    """Return the anchors in the words of each row."""
    rows = list(rows)
    flat = np.array([anchor for row in rows for anchor in row], np.int32).reshape(-1, 3)
    return WordAnchors(_ints(np.cumsum([0, *map(len, rows)])), *(np.ascontiguousarray(column) for column in flat.T))


def _ints(values: Iterable[int]) -> NDArray[np.int32]:
    return np.array(list(values), np.int32)


def _ragged(rows: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the start of each row and the end of the last one, and the concatenated rows."""
    return _ints(np.cumsum([0, *map(len, rows)])), _ints(value for row in rows for value in row)


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
        for start, end in candidates(note).get(self.number, ()):
            if start >= position and (match := self.pattern.match(note.plain, start, end)):
                position = match.end()
                yield match


@cache
def matcher(pattern: re.Pattern[str]) -> Matcher:
    """Return the matcher of a pattern."""
    return Matcher(pattern, _anchors.number(pattern))


def candidates(note: NoteView) -> dict[int, list[tuple[int, int]]]:
    """Return `Tables.candidates` of a note, computed once."""
    tables = _anchors.tables()
    if tables not in note.candidates:
        note.candidates[tables] = tables.candidates(note)
    return note.candidates[tables]
