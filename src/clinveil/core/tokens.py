"""The total, lossless tokenizer: every character of a note belongs to exactly one token of one class.

WORD     letters and marks, with default-ignorable characters (zero-width, soft hyphen) inside belonging to it
NUMBER   digits and other numerals of any script
SPACE    white space
PUNCT    punctuation and symbols
OTHER    the rest: controls, private use, unassigned; never written out

A border between letter and digit splits (`q4h` is q, 4, h), and so does an apostrophe (`patient's` is patient, s).
Words, numbers and runs of white space are tokens; each PUNCT and OTHER character is a token of its own.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


class Kind(IntEnum):
    """The class of a token. IGNORABLE is a class of characters only, never of a token."""

    OTHER = 0
    WORD = 1
    NUMBER = 2
    SPACE = 3
    PUNCT = 4
    IGNORABLE = 5


# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, which unicodedata does not carry.
_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_MAJOR = {"L": Kind.WORD, "M": Kind.WORD, "N": Kind.NUMBER, "Z": Kind.SPACE, "P": Kind.PUNCT, "S": Kind.PUNCT}


@cache
def character_classes() -> NDArray[np.uint8]:
    """The `Kind` of every code point, shape (0x110000,)."""
    table = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = _MAJOR.get(unicodedata.category(character)[0])
        if kind is not None:
            table[code] = kind
        elif character.isspace():
            table[code] = Kind.SPACE
    for first, last in _IGNORABLE:
        table[first : last + 1] = Kind.IGNORABLE
    table.setflags(write=False)
    return table


class Token(NamedTuple):
    """A half-open place in a text and its class; it does not hold the text."""

    start: int
    end: int
    kind: Kind


# ASCII letters in lower case, all else a space: the whole tokenizer for a text of ASCII.
_LETTERS = bytes(ord(chr(c).lower()) if chr(c).isalpha() and c < 128 else 32 for c in range(256))
# A word never crosses an ASCII character that is no letter, so each run between those stands for itself.
_ASCII_WORD = re.compile("[A-Za-z]+")
_RUN = re.compile("[A-Za-z\x80-\U0010ffff]+")
_CACHED_RUN = 64
_JOINED = (Kind.WORD, Kind.NUMBER, Kind.SPACE)


def tokenize(text: str) -> Iterator[Token]:
    """The tokens of a text, in order and without gaps; offsets in code points."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = character_classes()[codes].tolist()
    start, current = 0, None
    for position, kind in enumerate(kinds):
        if kind == Kind.IGNORABLE:
            kind = Kind.WORD if current == Kind.WORD else Kind.OTHER
        if position and not (kind == current and kind in _JOINED):
            yield Token(start, position, Kind(current or 0))
            start = position
        current = kind
    if kinds:
        yield Token(start, len(kinds), Kind(current or 0))


def tokens(text: str) -> list[str]:
    """The tokens as strings; joined they are the text."""
    return [text[t.start : t.end] for t in tokenize(text)]


@lru_cache(maxsize=1 << 16)
def lookup_form(word: str) -> str:
    """The form under which a word is looked up: NFKC, ignorables stripped, case folded, word characters only.

    It may be empty (a word of nothing but ignorables or stray marks); then the word is unknown.
    """
    if word.isascii():
        return word.lower()
    classes = character_classes()
    # Ignorables go first: between a letter and its accent they would keep the two from composing.
    bare = "".join(c for c in word if classes[ord(c)] != Kind.IGNORABLE)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())
    return unicodedata.normalize("NFKC", "".join(c for c in folded if classes[ord(c)] == Kind.WORD))


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end, in code points, of each WORD token of a text, in order; one whose lookup form is empty, too."""
    if text.isascii():
        return (match.span() for match in _ASCII_WORD.finditer(text))
    return ((token.start, token.end) for token in tokenize(text) if token.kind == Kind.WORD)


def words(text: str) -> list[str]:
    """The lookup forms of the WORD tokens of a text, in order; what vectors are trained on."""
    if text.isascii():
        return text.encode().translate(_LETTERS).decode().split()
    forms: list[str] = []
    for run in _RUN.findall(text):
        if run.isascii():
            forms.append(run.lower())
        else:
            forms.extend(_run_words(run) if len(run) <= _CACHED_RUN else _slow_words(run))
    return forms


def word_set(texts: Iterable[str]) -> frozenset[str]:
    """The different words of some texts, in lookup form: of full names, the words that are parts of one."""
    return frozenset(form for text in texts for form in words(text))


def _slow_words(text: str) -> list[str]:
    forms = (lookup_form(text[t.start : t.end]) for t in tokenize(text) if t.kind == Kind.WORD)
    return [form for form in forms if form]


@lru_cache(maxsize=1 << 15)
def _run_words(run: str) -> tuple[str, ...]:
    return tuple(_slow_words(run))


@dataclass(frozen=True)
class WordIds:
    """Distinct words -> their numbers, from `first` on; lower numbers are special ones, such as padding."""

    ids: Mapping[str, int] = field(repr=False)
    first: int

    @classmethod
    def of(cls, words: Iterable[str], *, first: int) -> Self:
        """Number words in the order of their first sight."""
        return cls({word: number for number, word in enumerate(dict.fromkeys(words), first)}, first)

    def __len__(self) -> int:
        """How many numbers there are, special ones too."""
        return len(self.ids) + self.first

    def encode(self, words: Iterable[str], *, unknown: int | None = None) -> list[int]:
        """The numbers of words; a word that is not there is `unknown`, or left out."""
        if unknown is None:
            return [self.ids[word] for word in words if word in self.ids]
        get = self.ids.get
        return [get(word, unknown) for word in words]
