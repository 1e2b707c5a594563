"""The total, lossless tokenizer: every character of a note belongs to exactly one token of one
class.

WORD     letters and marks, including default-ignorable characters inside (zero-width, soft hyphen)
NUMBER   digits and other numerals of any script
SPACE    white space
PUNCT    punctuation and symbols
OTHER    the rest: controls, private use, unassigned; never written out

Text is split between a letter and a digit (`q4h`: q, 4, h) and at an apostrophe (`patient's`:
patient, ', s). Words, numbers and runs of white space are one token each; every PUNCT and OTHER
character is a separate token.
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


IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Ranges of Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties, which unicodedata does
not contain.
"""
_MAJOR = {
    "L": Kind.WORD,
    "M": Kind.WORD,
    "N": Kind.NUMBER,
    "Z": Kind.SPACE,
    "P": Kind.PUNCT,
    "S": Kind.PUNCT,
}


@cache
def character_classes() -> NDArray[np.uint8]:
    """Return the `Kind` of every code point, shape (0x110000,)."""
    table = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = _MAJOR.get(unicodedata.category(character)[0])
        if kind is not None:
            table[code] = kind
        elif character.isspace():
            table[code] = Kind.SPACE
    for first, last in IGNORABLE:
        table[first : last + 1] = Kind.IGNORABLE
    table.setflags(write=False)
    return table


class Token(NamedTuple):
    """A half-open range of a text and its class; the text itself is not stored."""

    start: int
    end: int
    kind: Kind


# Map ASCII letters to lower case and everything else to a space: a complete word tokenizer for
# ASCII text.
_LETTERS = bytes(ord(chr(c).lower()) if chr(c).isalpha() and c < 128 else 32 for c in range(256))
# A word never crosses an ASCII character that is not a letter, so each run between them is
# processed separately.
_ASCII_WORD = re.compile("[A-Za-z]+")
_RUN = re.compile("[A-Za-z\x80-\U0010ffff]+")
_CACHED_RUN = 64
_JOINED = (Kind.WORD, Kind.NUMBER, Kind.SPACE)


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, in order and without gaps; offsets in code points."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = character_classes()[codes].tolist()
    start = 0
    current = None
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
    """Return the tokens as strings; joined, they equal the text."""
    return [text[t.start : t.end] for t in tokenize(text)]


@lru_cache(maxsize=1 << 16)
def lookup_form(word: str) -> str:
    """Return the lookup form of a word: NFKC, ignorables stripped, case folded, word characters
    only.

    The result is empty for a word of ignorables or combining marks only; such a word is unknown.
    """
    if word.isascii():
        return word.lower()
    classes = character_classes()
    # Strip ignorables first: between a letter and its accent they would prevent composition.
    bare = "".join(c for c in word if classes[ord(c)] != Kind.IGNORABLE)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", bare).casefold())
    return unicodedata.normalize("NFKC", "".join(c for c in folded if classes[ord(c)] == Kind.WORD))


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end, in code points, of each WORD token in order, including those with an
    empty lookup form.
    """
    if text.isascii():
        return (match.span() for match in _ASCII_WORD.finditer(text))
    return ((token.start, token.end) for token in tokenize(text) if token.kind == Kind.WORD)


def words(text: str) -> list[str]:
    """Return the lookup forms of the WORD tokens of a text, in order. Vectors are trained on
    these.
    """
    if text.isascii():
        return text.encode().translate(_LETTERS).decode().split()
    forms: list[str] = []
    for run in _RUN.findall(text):
        if run.isascii():
            forms.append(run.lower())
        else:
            forms.extend(
                _run_words(run) if len(run) <= _CACHED_RUN else _run_words.__wrapped__(run)
            )
    return forms


def word_set(texts: Iterable[str]) -> frozenset[str]:
    """Return the distinct words of some texts, in lookup form; for full names, the words that occur
    in any name.
    """
    return frozenset(form for text in texts for form in words(text))


@lru_cache(maxsize=1 << 15)
def _run_words(run: str) -> tuple[str, ...]:
    forms = (lookup_form(run[t.start : t.end]) for t in tokenize(run) if t.kind == Kind.WORD)
    return tuple(form for form in forms if form)


@dataclass(frozen=True)
class WordIds:
    """Map distinct words to numbers from `first` on; lower numbers are reserved, for example for
    padding.
    """

    ids: Mapping[str, int] = field(repr=False)
    first: int

    @classmethod
    def of(cls, words: Iterable[str], *, first: int) -> Self:
        """Number words in the order of their first occurrence."""
        return cls({word: number for number, word in enumerate(dict.fromkeys(words), first)}, first)

    def __len__(self) -> int:
        """Return how many numbers exist, including the reserved ones."""
        return len(self.ids) + self.first

    def encode(self, words: Iterable[str], *, unknown: int | None = None) -> list[int]:
        """Return the numbers of words; a missing word becomes `unknown`, or is skipped if `unknown`
        is None.
        """
        if unknown is None:
            return [self.ids[word] for word in words if word in self.ids]
        get = self.ids.get
        return [get(word, unknown) for word in words]
