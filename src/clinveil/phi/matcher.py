"""Where in a note patterns can match, so that they are tried nowhere else; the matches are those of `finditer`.

Strings that a pattern must hold are looked up word by word: what a word holds is found once and kept, as most words of
a note have been seen before. Runs of characters are searched for. About such a spot `starts.py` says where a match may
begin, in one pass for all patterns, and only there a pattern is tried.
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

from clinveil.phi.anchors import ALL, EDGE, NEAR, Run, Strings
from clinveil.phi.automaton import automaton
from clinveil.phi.match_starts import CLASSES, OTHER, Automata, Held, Triggers, Ways, find_match_starts, state
from clinveil.phi.note import NoteView
from clinveil.phi.required import required
from clinveil.phi.wordtable import Column, codes

# The letters other than ASCII ones that match an ASCII letter where case is ignored (a test looks at all characters).
_ASCII_OF = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
_NO_LETTER = re.compile(r"[^A-Za-z]")
_MOST_ROWS = 1 << 16
_ROOM = 512
# A word edge and the end of a line read this far past a match.
_READ_ON = 2


class _Words:
    """What the patterns of all detectors must hold, so that each word of a note is looked up once for all of them.

    Its tables are made again when a pattern is added: detectors add all of theirs before a note is read.
    """

    def __init__(self) -> None:
        self.numbers: dict[re.Pattern[str], int] = {}
        self.wanted: dict[bool, dict[str, list[int]]] = {False: {}, True: {}}
        self.lengths: list[int] = []
        self.tried: list[_Tried] = []
        self._tables: Tables | None = None

    def number(self, pattern: re.Pattern[str]) -> int | None:
        """The number of a pattern, which is added where it is new; None where it need hold nothing."""
        anchor, whole, ahead = required(pattern)
        if anchor is None:
            return None
        if pattern not in self.numbers:
            number = self.numbers[pattern] = len(self.numbers)
            for literal in anchor.literals if isinstance(anchor, Strings) else ():
                self.wanted[literal.any_case].setdefault(literal.text, []).append(number)
            self.lengths = sorted({len(text) for texts in self.wanted.values() for text in texts})
            far = anchor.before.high > NEAR
            way = (-1 if far else anchor.before.high, anchor.before.high, whole.high, ahead + _READ_ON)
            run = None if isinstance(anchor, Strings) else anchor
            self.tried.append(_Tried(run, (anchor.before.chars, whole.chars), way, _Made.of(pattern)))
            self._tables = None
        return self.numbers[pattern]

    def tables(self) -> Tables:
        """Those of all patterns so far."""
        if self._tables is None or self._tables.full:
            self._tables = Tables(self)
        return self._tables

    def held(self, word: str) -> tuple[tuple[int, int, int], ...]:
        """(number of a pattern, first and last place in the word) of the strings that a word holds."""
        places: dict[int, list[int]] = {}
        for numbers, place in self._strings_of(word):
            for number in numbers:
                places.setdefault(number, []).append(place)
        return tuple((number, min(found), max(found)) for number, found in places.items())

    def _strings_of(self, word: str) -> Iterator[tuple[list[int], int]]:
        """The patterns of the strings of the word, its edges marked, and where their first letter stands."""
        for any_case, wanted in self.wanted.items():
            text = EDGE + _NO_LETTER.sub(EDGE, word.translate(_ASCII_OF) if any_case else word) + EDGE
            text = text.lower() if any_case else text
            for length in self.lengths:
                for start in range(len(text) - length + 1):
                    if numbers := wanted.get(text[start : start + length]):
                        yield numbers, start - (text[start] != EDGE)


class _Made(NamedTuple):
    """An automaton as arrays, its positions numbered from 0: see `starts.Automata`. All are empty for one too large."""

    before: int = 0
    first: tuple[int, ...] = ()
    takes: tuple[int, ...] = ()
    ends: tuple[bool, ...] = ()
    follow: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, pattern: re.Pattern[str] | Run) -> _Made:
        """That of a pattern or a run."""
        made = automaton(pattern)
        if made is None:
            return cls()
        follow = tuple(tuple(sorted(after)) for after in made.follow)
        ends = tuple(at in made.ends for at in range(len(made.chars)))
        return cls(made.before, tuple(sorted(made.first)), tuple(made.chars), ends, follow)


class _Tried(NamedTuple):
    """How one pattern is tried: at a run or at strings, over which characters, how far, with which automaton."""

    run: Run | None
    over: tuple[int, int]
    way: tuple[int, int, int, int]
    made: _Made


class Tables:
    """All patterns known at one time, as the arrays of `find_match_starts`."""

    def __init__(self, words: _Words) -> None:
        self._words, self._rows = words, dict[tuple[tuple[int, int, int], ...], int]()
        self._lock, self._column = Lock(), Column(self._row, np.int32)
        self._classes: dict[int, int] = {0: 0}
        tried = words.tried
        runs = [
            (number, one.run) for number, one in enumerate(tried) if one.run and not one.run.digits | len(one.run.signs)
        ]
        made = [one.made for one in tried] + [_Made.of(run) for _, run in runs]
        self._triggers = _triggers(tried, runs)
        self._ways = self._ways_of(tried)
        self._automata = self._joined(made)
        self._widest = max((len(one.takes) for one in made), default=0)
        self._held = _held(self._rows)

    @property
    def full(self) -> bool:
        """Whether it is time for new ones."""
        return len(self._rows) >= _MOST_ROWS

    def look(self, note: NoteView) -> dict[int, list[tuple[int, int]]]:
        """Where the patterns may begin in a note, and how far they may read."""
        text = _classes_of(note.plain)
        which, found = note.tokens.words, note.tokens
        rows = note.words.column(self._column)
        if self._held.row_of.size <= len(self._rows):
            with self._lock:
                self._held = _held(self._rows)
        room = _ROOM
        while True:
            seen = state(len(self._words.tried), self._widest, room)
            known = self._held, self._triggers, self._ways, self._automata
            find_match_starts(text, found.starts[which], found.ends[which], rows, *known, seen)
            if (total := int(seen.total[0])) <= room:
                break
            room = total
        places: dict[int, list[tuple[int, int]]] = {}
        for pattern, start, end in seen.found[:, :total].T.tolist():
            places.setdefault(pattern, []).append((start, end))
        return places

    def _row(self, word: str) -> int:
        """The row of what a word holds; many words hold the same, and most hold nothing."""
        held = self._words.held(word)
        with self._lock:
            return self._rows.setdefault(held, len(self._rows))

    def _class(self, chars: int) -> int:
        return self._classes.setdefault(chars, len(self._classes))

    def _ways_of(self, tried: list[_Tried]) -> Ways:
        over = [[self._class(one.over[side]) for one in tried] for side in (0, 1)]
        lead, behind, ahead, on = ([one.way[at] for one in tried] for at in range(4))
        return Ways(*(_ints(column) for column in (lead, over[0], behind, over[1], ahead, on)))

    def _joined(self, made: list[_Made]) -> Automata:
        """All automata one after the other."""
        begins = np.cumsum([0, *(len(one.takes) for one in made)]).tolist()
        first = [[begin + at for at in one.first] for begin, one in zip(begins, made, strict=False)]
        follow = [
            [begin + at for at in after] for begin, one in zip(begins, made, strict=False) for after in one.follow
        ]
        heads = [self._class(_heads(one)) for one in made]
        before, takes = [self._class(one.before) for one in made], [self._class(c) for one in made for c in one.takes]
        ends = np.array([end for one in made for end in one.ends], np.bool_)
        chars = np.array([[chars >> code & 1 for code in range(CLASSES)] for chars in self._classes], np.bool_)
        return Automata(
            *_ragged(first), _ints(begins), _ints(before), _ints(heads), _ints(takes), ends, *_ragged(follow), chars
        )


def _heads(made: _Made) -> int:
    """What may stand first in a match; anything, of an automaton that was too large."""
    return reduce(or_, (made.takes[at] for at in made.first), 0) or ALL


def _classes_of(text: str) -> NDArray[np.uint8]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.minimum(codes(text), OTHER).astype(np.uint8)


def _triggers(tried: list[_Tried], runs: list[tuple[int, Run]]) -> Triggers:
    """What makes a spot of which pattern."""
    signs: list[list[int]] = [[] for _ in range(CLASSES)]
    begins: list[list[int]] = [[] for _ in range(CLASSES)]
    for number, one in enumerate(tried):
        for sign in one.run.signs if one.run and not one.run.digits else "":
            signs[ord(sign)].append(number)
    for number, (_, run) in enumerate(runs):
        for code in range(CLASSES):
            if run.items[0].chars >> code & 1:
                begins[code].append(number)
    digits = [(number, one.run.digits) for number, one in enumerate(tried) if one.run and one.run.digits]
    automata = _ints(range(len(tried), len(tried) + len(runs)))
    of_digits, least = _ints(number for number, _ in digits), _ints(least for _, least in digits)
    of_runs = _ints(number for number, _ in runs)
    return Triggers(*_ragged(signs), of_digits, least, *_ragged(begins), automata, of_runs)


def _held(rows: Iterable[tuple[tuple[int, int, int], ...]]) -> Held:
    """What the words of each row hold."""
    rows = list(rows)
    flat = np.array([spot for row in rows for spot in row], np.int32).reshape(-1, 3)
    return Held(_ints(np.cumsum([0, *map(len, rows)])), *(np.ascontiguousarray(column) for column in flat.T))


def _ints(values: Iterable[int]) -> NDArray[np.int32]:
    return np.array(list(values), np.int32)


def _ragged(rows: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where each row begins, and one more, where the last one ends; and all rows together."""
    return _ints(np.cumsum([0, *map(len, rows)])), _ints(value for row in rows for value in row)


_words = _Words()


@dataclass(frozen=True)
class Matcher:
    """Where a pattern can match.

    Attributes:
        pattern: the pattern.
        number: in the tables; None where it must hold nothing that is worth looking for.
    """

    pattern: re.Pattern[str]
    number: int | None

    def matches(self, note: NoteView) -> Iterator[re.Match[str]]:
        """All matches of the pattern, from left to right: those of `finditer` on the whole note."""
        if self.number is None:
            yield from self.pattern.finditer(note.plain)
            return
        done = 0
        for start, end in candidates(note).get(self.number, ()):
            if start >= done and (match := self.pattern.match(note.plain, start, end)):
                done = match.end()
                yield match


@cache
def matcher(pattern: re.Pattern[str]) -> Matcher:
    """Where a pattern can match, from what it must hold."""
    return Matcher(pattern, _words.number(pattern))


def candidates(note: NoteView) -> dict[int, list[tuple[int, int]]]:
    """By the number of a pattern, where it may begin in a note and how far it may read, from left to right."""
    tables = _words.tables()
    if tables not in note.candidates:
        note.candidates[tables] = tables.look(note)
    return note.candidates[tables]
