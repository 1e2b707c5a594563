"""`Tokens`: the words, numbers, signs and line ends of a text, as ids in a table of distinct tokens.

Properties of a word (lexical classes, tagger row, cues) are computed once per distinct word and cached in a `Column`,
so that a note needs array look-ups instead of one dictionary look-up per word. A table that becomes too large is
replaced by an empty one; `Tokens` keep a reference to their table.
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
# Ids of tokens other than words: edge of the text, numbers by length, line end, rare signs, ASCII signs.
EDGE, LINE, ODD = 0, 6, 7
LONGEST_NUMBER: Final = 5
_FIRST_SIGN, _LAST_SIGN = 33, 126
_SIGNS: Final = 8
FIRST_WORD: Final = _SIGNS + _LAST_SIGN - _FIRST_SIGN + 1
_MOST_WORDS = 1 << 16
_MOST_LETTERS = 1 << 22
_SLOTS = 4  # slots of the hash table per word of its capacity


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return the kind of every code point, consistent with the patterns of `tagger.tokens`."""
    table = np.full(sys.maxunicode + 1, _SIGN, np.uint8)
    all_characters = "".join(map(chr, range(sys.maxunicode + 1)))
    for kind, pattern in ((_LETTER, r"[^\W\d_]+"), (_DIGIT, r"\d+"), (_SPACE, r"\s+"), (_NUL, "\x00"), (_LINE, "\n")):
        for match in re.finditer(pattern, all_characters):
            table[match.start() : match.end()] = kind
    return table


def codes(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@helper
def _end_of_word(text: NDArray[np.uint32], kinds: NDArray[np.uint8], start: int) -> int:
    """Return the end of a word: letters, also after a hyphen or an apostrophe."""
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
    """Return the FNV-1a hash of the code points."""
    value = np.uint64(14695981039346656037)
    for position in range(start, end):
        value = (value ^ np.uint64(text[position])) * np.uint64(1099511628211)
    return int((value ^ (value >> np.uint64(29))) & np.uint64(0x7FFFFFFFFFFFFFFF))


@helper
def _same(text: NDArray[np.uint32], start: int, end: int, letters: NDArray[np.uint32], first: int) -> bool:
    for offset in range(end - start):  # noqa: SIM110  numba does not support generators
        if text[start + offset] != letters[first + offset]:
            return False
    return True


@helper
def _known(
    text: NDArray[np.uint32], start: int, end: int, slots: Ints, hashes: NDArray[np.int64], firsts: Ints,
    letters: NDArray[np.uint32],
) -> int:  # fmt: skip
    """Return the id of a word; -1 if it is not in the table."""
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
    """Return starts, ends and ids of the tokens, and the number of words not in the table, whose id is -1.

    Args:
        slots: open addressing, index of a word or -1. hashes: of each word of the table.
        firsts: start of the letters of each word, and end of the last one.
    """
    starts, ends = np.empty(text.size, np.int32), np.empty(text.size, np.int32)
    ids = np.empty(text.size, np.int32)
    count = unknown = position = 0
    while position < text.size:
        start, kind = position, kinds[text[position]]
        position += 1
        if kind == _SPACE:
            continue
        number = ODD
        if kind == _LETTER:
            position = _end_of_word(text, kinds, start)
            number = _known(text, start, position, slots, hashes, firsts, letters)
            unknown += number < 0
        elif kind == _DIGIT:
            while position < text.size and kinds[text[position]] == _DIGIT:
                position += 1
            number = min(position - start, LONGEST_NUMBER)
        elif kind == _NUL:
            while position < text.size and kinds[text[position]] == _NUL:
                position += 1
        elif kind == _LINE:
            number = LINE
        elif _FIRST_SIGN <= text[start] <= _LAST_SIGN:
            number = _SIGNS + text[start] - _FIRST_SIGN
        starts[count], ends[count], ids[count] = start, position, number
        count += 1
    return starts[:count], ends[:count], ids[:count], unknown


class Lists(NamedTuple):
    """Arrays of a word table; all are replaced together when they must grow."""

    slots: Ints
    hashes: NDArray[np.int64]
    firsts: Ints
    letters: NDArray[np.uint32]


class Table:
    """Distinct words read so far.

    Attributes:
        words: by id minus `FIRST_WORD`; as secret as the notes.
        columns: for each `Column`, which tokens have a value, and the values.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.columns: WeakKeyDictionary[Column, list[NDArray[Any]]] = WeakKeyDictionary()
        self._numbers: dict[str, int] = {}
        self._lists = _empty(1 << 12, 1 << 15)
        self._lock = Lock()

    def __len__(self) -> int:
        return FIRST_WORD + len(self.words)

    @property
    def full(self) -> bool:
        """Whether the table has reached its maximal size."""
        return len(self.words) >= _MOST_WORDS or self._lists.firsts[len(self.words)] >= _MOST_LETTERS

    def token(self, number: int) -> str:
        """Return the token of an id: the word or sign itself, zeros for a number, or NUL for all rare signs."""
        if number >= FIRST_WORD:
            return self.words[number - FIRST_WORD]
        if number >= _SIGNS:
            return chr(number - _SIGNS + _FIRST_SIGN)
        return ("", *("0" * length for length in range(1, LONGEST_NUMBER + 1)), "\n", "\x00")[number]

    def scan(self, text: str) -> tuple[Ints, Ints, Ints]:
        """Return starts, ends and ids of the tokens of a text; new words are added to the table."""
        points = codes(text)
        starts, ends, ids, unknown = _scan(points, _kinds(), *self._lists)
        if unknown:
            with self._lock:
                for index in np.flatnonzero(ids < 0).tolist():
                    ids[index] = self._number(text[starts[index] : ends[index]], points[starts[index] : ends[index]])
        return starts, ends, ids

    def _number(self, word: str, points: NDArray[np.uint32]) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self)
            self.words.append(word)
            self._add(len(self.words) - 1, points)
        return number

    def _add(self, word: int, points: NDArray[np.uint32]) -> None:
        """Add a word; its slot is written last, so that a scan in another thread never reads an incomplete word."""
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
        new = _empty(2 * old.hashes.size, max(2 * old.letters.size, 2 * letters))
        new.hashes[:count] = old.hashes[:count]
        new.firsts[: count + 1] = old.firsts[: count + 1]
        new.letters[: old.letters.size] = old.letters
        _place(new.slots, new.hashes, count)
        self._lists = new


def _empty(words: int, letters: int) -> Lists:
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
    """Tokens of one text.

    Attributes:
        table: the table of their ids. starts, ends: their offsets. ids: their ids.
    """

    def __init__(self, text: str) -> None:
        self.text, self.table = text, _tables.current()
        self.starts, self.ends, self.ids = self.table.scan(text)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> str:
        starts, ends = self._offsets
        return self.text[starts[index] : ends[index]]

    @cached_property
    def _offsets(self) -> tuple[list[int], list[int]]:
        return self.starts.tolist(), self.ends.tolist()

    @cached_property
    def words(self) -> NDArray[np.intp]:
        """Indices of the tokens that are words."""
        return np.flatnonzero(self.ids >= FIRST_WORD)


class _Tables:
    """Current table of this process."""

    def __init__(self) -> None:
        self._table = Table()

    def current(self) -> Table:
        if self._table.full:
            self._table = Table()
        return self._table


_tables = _Tables()


class Column:
    """Property of tokens, computed when a token first occurs and cached with the table.

    Args:
        of: token -> value. dtype: of the values; `object` if they are not numbers.
    """

    def __init__(self, of: Callable[[str], Any], dtype: Any = object) -> None:
        self.of, self.dtype = of, np.dtype(dtype)

    def __call__(self, table: Table, ids: NDArray[Any]) -> NDArray[Any]:
        """Return the values of some token ids."""
        known, values = self._arrays(table)
        if not (cached := known.take(ids)).all():  # `take` is faster than indexing for the size of a note
            for number in np.unique(ids[~cached]).tolist():
                values[number] = self.of(table.token(number))
                known[number] = True
        return values.take(ids)

    def _arrays(self, table: Table) -> list[NDArray[Any]]:
        arrays = table.columns.get(self)
        if arrays is None or arrays[0].size < len(table):
            size = max(1 << 12, 2 * len(table))
            new = [np.zeros(size, np.bool_), np.zeros(size, self.dtype)]
            for old, grown in zip(arrays or [], new, strict=False):
                grown[: old.size] = old
            table.columns[self] = arrays = new
        return arrays
