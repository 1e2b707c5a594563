"""`Tokens`: the words, numbers, signs and line ends of a text, as ids in a table of distinct
tokens.

Properties of a word (lexical classes, tagger row, cues) are computed once per distinct word and
cached in a `WordColumn`, so that a note needs array look-ups instead of one dictionary look-up per
word. A table that becomes too large is replaced by an empty one; `Tokens` keep a reference to their
table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, cached_property
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clinveil.core import helper, kernel

Ints = NDArray[np.int32]

_SPACE, _SIGN, _NUL, _LINE, _DIGIT, _LETTER = range(6)
_APOSTROPHE = 39
_HYPHEN = 45
# Ids of tokens other than words: edge of the text, numbers by length, line end, rare signs, ASCII
# signs.
EDGE = 0
LINE = 6
ODD = 7
LONGEST_NUMBER: Final = 5
_FIRST_SIGN = 33
_LAST_SIGN = 126
_SIGNS: Final = 8
FIRST_WORD: Final = _SIGNS + _LAST_SIGN - _FIRST_SIGN + 1
_MOST_WORDS = 1 << 16
_MOST_LETTERS = 1 << 22
_MOST_MARKS: Final = 31


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return the kind of every code point, consistent with the tokens of training."""
    table = np.full(sys.maxunicode + 1, _SIGN, np.uint8)
    all_characters = "".join(map(chr, range(sys.maxunicode + 1)))
    for kind, pattern in (
        (_LETTER, r"[^\W\d_]+"),
        (_DIGIT, r"\d+"),
        (_SPACE, r"\s+"),
        (_NUL, "\x00"),
        (_LINE, "\n"),
    ):
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


@kernel
def _scan(
    text: NDArray[np.uint32], kinds: NDArray[np.uint8]
) -> tuple[Ints, Ints, Ints, NDArray[np.uint32]]:
    """Return starts, ends and ids of the tokens, the id of a word being -1, and the text with words
    and spaces only.
    """
    words = np.full(text.size, ord(" "), np.uint32)
    starts = np.empty(text.size, np.int32)
    ends = np.empty(text.size, np.int32)
    ids = np.empty(text.size, np.int32)
    count = position = 0
    while position < text.size:
        start = position
        kind = kinds[text[position]]
        position += 1
        if kind == _SPACE:
            continue
        number = ODD
        if kind == _LETTER:
            position = _end_of_word(text, kinds, start)
            number = -1
            words[start:position] = text[start:position]
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
        starts[count] = start
        ends[count] = position
        ids[count] = number
        count += 1
    return starts[:count], ends[:count], ids[:count], words


class WordTable(dict[str, int]):
    """Distinct words read so far, with their ids.

    Attributes:
        words: by id minus `FIRST_WORD`; as secret as the notes.
        columns: for each `WordColumn`, which tokens have a value, and the values.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.columns: WeakKeyDictionary[WordColumn, list[NDArray[Any]]] = WeakKeyDictionary()
        self._letters = 0
        self._lock = Lock()

    __hash__ = object.__hash__  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """Number of ids."""
        return FIRST_WORD + len(self.words)

    @property
    def full(self) -> bool:
        """Whether the table has reached its maximal size."""
        return len(self.words) >= _MOST_WORDS or self._letters >= _MOST_LETTERS

    def token(self, number: int) -> str:
        """Return the token of an id: the word or sign itself, zeros for a number, or NUL for all
        rare signs.
        """
        if number >= FIRST_WORD:
            return self.words[number - FIRST_WORD]
        if number >= _SIGNS:
            return chr(number - _SIGNS + _FIRST_SIGN)
        return ("", *("0" * length for length in range(1, LONGEST_NUMBER + 1)), "\n", "\x00")[
            number
        ]

    def scan(self, text: str) -> tuple[Ints, Ints, Ints]:
        """Return starts, ends and ids of the tokens of a text; new words are added to the table."""
        starts, ends, ids, words = _scan(codes(text), _kinds())
        ids[ids < 0] = list(map(self.__getitem__, words.tobytes().decode("utf-32-le").split()))
        return starts, ends, ids

    def __missing__(self, word: str) -> int:
        with self._lock:
            if (number := self.get(word)) is None:
                number = self.size
                self.words.append(word)
                self._letters += len(word)
                self[word] = number
        return number


class Tokens:
    """Tokens of one text.

    Attributes:
        table: the table of their ids. starts, ends: their offsets. ids: their ids.
    """

    _table = WordTable()  # of this process

    def __init__(self, text: str) -> None:
        if Tokens._table.full:
            Tokens._table = WordTable()
        self.text = text
        self.table = Tokens._table
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


class WordColumn:
    """Property of tokens, computed when a token first occurs and cached with the table.

    Args:
        of: token -> value. dtype: of the values; `object` if they are not numbers.
    """

    def __init__(self, of: Callable[[str], Any], dtype: Any = object) -> None:
        self.of = of
        self.dtype = np.dtype(dtype)

    def __call__(self, table: WordTable, ids: NDArray[Any]) -> NDArray[Any]:
        """Return the values of some token ids."""
        known, values = self._arrays(table)
        if not (
            cached := known.take(ids)
        ).all():  # `take` is faster than indexing for the size of a note
            for number in set(ids[~cached].tolist()):
                values[number] = self.of(table.token(number))
                known[number] = True
        return values.take(ids)

    def _arrays(self, table: WordTable) -> list[NDArray[Any]]:
        arrays = table.columns.get(self)
        if arrays is None or arrays[0].size < table.size:
            size = max(1 << 12, 2 * table.size)
            new = [np.zeros(size, np.bool_), np.zeros(size, self.dtype)]
            for old, grown in zip(arrays or [], new, strict=False):
                grown[: old.size] = old
            table.columns[self] = arrays = new
        return arrays


class Marks:
    """Predicates on words, one bit of a column each, evaluated together once per distinct word.

    A module that searches every note for certain words defines `CUE = mark(lambda word: …)` and
    then calls `note.words.marked(CUE)`.

    Attributes:
        column: the values; replaced whenever a predicate is added.
    """

    def __init__(self) -> None:
        self._predicates: list[Callable[[str], bool]] = []
        self.column = WordColumn(self._of, np.int32)

    def add(self, predicate: Callable[[str], bool]) -> int:
        """Add a predicate on a word in its original case; return its bit."""
        if len(self._predicates) == _MOST_MARKS:
            raise ValueError(f"at most {_MOST_MARKS} marks are possible")
        self._predicates.append(predicate)
        self.column = WordColumn(self._of, np.int32)
        return 1 << (len(self._predicates) - 1)

    def _of(self, word: str) -> int:
        return sum(1 << bit for bit, predicate in enumerate(self._predicates) if predicate(word))


marks = Marks()
mark = marks.add
