"""`Tokens`: the words, numbers, signs and lines of a text in one pass, each as a number in a table of distinct tokens.

What is asked of a word (its lexical classes, the row of the tagger, whether a cue lies in it) is asked once a word and
kept in a column (`Column`), so that a note costs a look-up of an array and not of a dictionary a word. A table that
gets large is replaced by an empty one; the notes that were read with it keep it as long as they live.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, cached_property
from threading import Lock
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import helper, kernel

Ints = NDArray[np.int32]

_SPACE, _SIGN, _NUL, _LINE, _DIGIT, _LETTER = range(6)
_APOSTROPHE, _HYPHEN = 39, 45
# The numbers of what is no word: the text's edge, numbers by their length, a line's end, rare signs, signs of ASCII.
EDGE, LINE, ODD = 0, 6, 7
LONGEST_NUMBER: Final = 5
_FIRST_SIGN, _LAST_SIGN = 33, 126
_SIGNS: Final = 8
FIRST_WORD: Final = _SIGNS + _LAST_SIGN - _FIRST_SIGN + 1
_MOST_WORDS = 1 << 16
_MOST_LETTERS = 1 << 22
_SLOTS = 4  # slots of the hash table for each word that it has room for


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of every code point, as the patterns of `tagger.tokens` take it."""
    table = np.full(sys.maxunicode + 1, _SIGN, np.uint8)
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for kind, pattern in ((_LETTER, r"[^\W\d_]+"), (_DIGIT, r"\d+"), (_SPACE, r"\s+"), (_NUL, "\x00"), (_LINE, "\n")):
        for match in re.finditer(pattern, every):
            table[match.start() : match.end()] = kind
    return table


def codes(text: str) -> NDArray[np.uint32]:
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@helper
def _end_of_word(text: NDArray[np.uint32], kinds: NDArray[np.uint8], start: int) -> int:
    """Letters, and letters again behind a hyphen or an apostrophe."""
    end = start + 1
    while end < text.size:
        if kinds[text[end]] == _LETTER:
            end += 1
        elif (
            (text[end] == _APOSTROPHE or text[end] == _HYPHEN)
            and end + 1 < text.size
            and kinds[text[end + 1]] == _LETTER
        ):
            end += 2
        else:
            break
    return end


@helper
def _hash(text: NDArray[np.uint32], start: int, end: int) -> int:
    """FNV-1a over code points."""
    value = np.uint64(14695981039346656037)
    for at in range(start, end):
        value = (value ^ np.uint64(text[at])) * np.uint64(1099511628211)
    return int((value ^ (value >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@helper
def _same(text: NDArray[np.uint32], start: int, end: int, letters: NDArray[np.uint32], first: int) -> bool:
    for at in range(end - start):  # noqa: SIM110  numba knows no generator
        if text[start + at] != letters[first + at]:
            return False
    return True


@helper
def _known(
    text: NDArray[np.uint32], start: int, end: int, slots: Ints, hashes: NDArray[np.int64], firsts: Ints,
    letters: NDArray[np.uint32],
) -> int:  # fmt: skip
    """The number of a word; -1 where the table has it not."""
    value = _hash(text, start, end)
    slot = value % slots.size
    while slots[slot] >= 0:
        word = slots[slot]
        same = hashes[word] == value and firsts[word + 1] - firsts[word] == end - start
        if same and _same(text, start, end, letters, firsts[word]):
            return FIRST_WORD + word
        slot = (slot + 1) % slots.size
    return -1


@kernel
def _scan(
    text: NDArray[np.uint32],
    kinds: NDArray[np.uint8],
    slots: Ints,
    hashes: NDArray[np.int64],
    firsts: Ints,
    letters: NDArray[np.uint32],
) -> tuple[Ints, Ints, Ints, int]:
    """(start, end, number) of each token, and how many words are not in the table, with -1 for a number.

    Args:
        slots: open addressing; a word of the table or -1. hashes: of each word of the table.
        firsts: where the letters of each word begin; one more, where the last one ends.
    """
    starts, ends = np.empty(text.size, np.int32), np.empty(text.size, np.int32)
    ids = np.empty(text.size, np.int32)
    count = unknown = at = 0
    while at < text.size:
        start, kind = at, kinds[text[at]]
        at += 1
        if kind == _SPACE:
            continue
        number = ODD
        if kind == _LETTER:
            at = _end_of_word(text, kinds, start)
            number = _known(text, start, at, slots, hashes, firsts, letters)
            unknown += number < 0
        elif kind == _DIGIT:
            while at < text.size and kinds[text[at]] == _DIGIT:
                at += 1
            number = min(at - start, LONGEST_NUMBER)
        elif kind == _NUL:
            while at < text.size and kinds[text[at]] == _NUL:
                at += 1
        elif kind == _LINE:
            number = LINE
        elif _FIRST_SIGN <= text[start] <= _LAST_SIGN:
            number = _SIGNS + text[start] - _FIRST_SIGN
        starts[count], ends[count], ids[count] = start, at, number
        count += 1
    return starts[:count], ends[:count], ids[:count], unknown


class Lists(NamedTuple):
    """Where the words of a table lie; replaced as a whole when they need more room."""

    slots: Ints
    hashes: NDArray[np.int64]
    firsts: Ints
    letters: NDArray[np.uint32]


class Table:
    """The distinct words met so far.

    Attributes:
        words: by number, less `FIRST_WORD`; they are as secret as the notes.
        columns: of each `Column` that was asked: which tokens are known, and their values.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.columns: WeakKeyDictionary[Column, list[NDArray[Any]]] = WeakKeyDictionary()
        self._numbers: dict[str, int] = {}
        self._lists = _room(1 << 12, 1 << 15)
        self._lock = Lock()

    def __len__(self) -> int:
        return FIRST_WORD + len(self.words)

    @property
    def full(self) -> bool:
        """Whether it holds as many words as it may."""
        return len(self.words) >= _MOST_WORDS or self._lists.firsts[len(self.words)] >= _MOST_LETTERS

    def token(self, number: int) -> str:
        """What stands for a number: the word or sign itself, as many zeros, or one sign for all rare ones."""
        if number >= FIRST_WORD:
            return self.words[number - FIRST_WORD]
        if number >= _SIGNS:
            return chr(number - _SIGNS + _FIRST_SIGN)
        return ("", *("0" * length for length in range(1, LONGEST_NUMBER + 1)), "\n", "\x00")[number]

    def scan(self, text: str) -> tuple[Ints, Ints, Ints]:
        """(start, end, number) of each token; words that are new are taken in."""
        points = codes(text)
        starts, ends, ids, unknown = _scan(points, _kinds(), *self._lists)
        if unknown:
            with self._lock:
                for at in np.flatnonzero(ids < 0).tolist():
                    ids[at] = self._number(text[starts[at] : ends[at]], points[starts[at] : ends[at]])
        return starts, ends, ids

    def _number(self, word: str, points: NDArray[np.uint32]) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self)
            self.words.append(word)
            self._add(len(self.words) - 1, points)
        return number

    def _add(self, word: int, points: NDArray[np.uint32]) -> None:
        """The word's slot comes last: a scan in another thread finds all of it or nothing."""
        end = int(self._lists.firsts[word]) + points.size
        if word + 2 > self._lists.hashes.size or end > self._lists.letters.size:
            self._grow(word, end)
        lists = self._lists
        lists.letters[end - points.size : end] = points
        lists.firsts[word + 1], lists.hashes[word] = end, _hash_of(points)
        slot = int(lists.hashes[word]) % lists.slots.size
        while lists.slots[slot] >= 0:
            slot = (slot + 1) % lists.slots.size
        lists.slots[slot] = word

    def _grow(self, count: int, letters: int) -> None:
        old = self._lists
        new = _room(2 * old.hashes.size, max(2 * old.letters.size, 2 * letters))
        new.hashes[:count] = old.hashes[:count]
        new.firsts[: count + 1] = old.firsts[: count + 1]
        new.letters[: old.letters.size] = old.letters
        _place(new.slots, new.hashes, count)
        self._lists = new


def _room(words: int, letters: int) -> Lists:
    slots = np.full(_SLOTS * words - 1, -1, np.int32)
    return Lists(slots, np.zeros(words, np.int64), np.zeros(words + 1, np.int32), np.zeros(letters, np.uint32))


@kernel
def _place(slots: Ints, hashes: NDArray[np.int64], count: int) -> None:
    for word in range(count):
        slot = hashes[word] % slots.size
        while slots[slot] >= 0:
            slot = (slot + 1) % slots.size
        slots[slot] = word


@kernel
def _hash_of(points: NDArray[np.uint32]) -> int:
    return _hash(points, 0, points.size)


class Tokens:
    """The tokens of one text.

    Attributes:
        table: where their numbers lead. starts, ends: their places. ids: their numbers.
    """

    def __init__(self, text: str) -> None:
        self.text, self.table = text, _tables.current()
        self.starts, self.ends, self.ids = self.table.scan(text)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> str:
        starts, ends = self._places
        return self.text[starts[index] : ends[index]]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        return self.starts.tolist(), self.ends.tolist()

    @cached_property
    def words(self) -> NDArray[np.intp]:
        """Which of them are words."""
        return np.flatnonzero(self.ids >= FIRST_WORD)


class _Tables:
    """The table of this process."""

    def __init__(self) -> None:
        self._table = Table()

    def current(self) -> Table:
        if self._table.full:
            self._table = Table()
        return self._table


_tables = _Tables()


class Column:
    """One thing that is known of each token, computed when it is first met and kept with the table.

    Args:
        of: token -> value. dtype: of the values; `object` for what is no number.
    """

    def __init__(self, of: Callable[[str], Any], dtype: Any = object) -> None:
        self.of, self.dtype = of, np.dtype(dtype)

    def __call__(self, table: Table, ids: NDArray[Any]) -> NDArray[Any]:
        """The values of some tokens, by their numbers."""
        known, values = self._of(table)
        if not (there := known.take(ids)).all():  # `take` is quicker than an index for as few as a note has
            for number in np.unique(ids[~there]).tolist():
                values[number] = self.of(table.token(number))
                known[number] = True
        return values.take(ids)

    def _of(self, table: Table) -> list[NDArray[Any]]:
        held = table.columns.get(self)
        if held is None or held[0].size < len(table):
            size = max(1 << 12, 2 * len(table))
            new = [np.zeros(size, np.bool_), np.zeros(size, self.dtype)]
            for old, grown in zip(held or [], new, strict=False):
                grown[: old.size] = old
            table.columns[self] = held = new
        return held
