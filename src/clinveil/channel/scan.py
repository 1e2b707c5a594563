"""Reading tokens off UTF-8 bytes: what `clinveil.tokens` does to strings, compiled.

The borders are those of `tokens.tokenize`, which stays the reference. All functions assume valid UTF-8.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.compiled import compiled_helper
from clinveil.tokens import Kind, character_classes

_WORD, _NUMBER, _SPACE, _IGNORABLE = int(Kind.WORD), int(Kind.NUMBER), int(Kind.SPACE), int(Kind.IGNORABLE)
_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a, 64 bits


class Alphabet(NamedTuple):
    """What the scanner knows of characters.

    Attributes:
        kinds: (0x110000,) uint8, the `Kind` of each code point.
        lower: (256,) uint8, an ASCII letter's lower case; 0 for every other byte.
    """

    kinds: NDArray[np.uint8]
    lower: NDArray[np.uint8]


@cache
def alphabet() -> Alphabet:
    """The scanner's tables, made once."""
    lower = np.array([ord(chr(b).lower()) if chr(b).isascii() and chr(b).isalpha() else 0 for b in range(256)])
    return Alphabet(character_classes(), readonly(lower.astype(np.uint8)))


def readonly(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The same array, read-only, as Arrow's buffers are: one type of argument means one compilation."""
    array.setflags(write=False)
    return array


# Every byte as it is, where `Alphabet.lower` folds.
ENTIRE = readonly(np.arange(256, dtype=np.uint8))


@compiled_helper
def code_point(text: NDArray[np.uint8], i: int) -> tuple[int, int]:
    """The code point that begins at byte i, and its width in bytes; compiled."""
    first = np.int64(text[i])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | text[i + 1] & 0x3F, 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (text[i + 1] & 0x3F) << 6 | text[i + 2] & 0x3F, 3
    return (first & 7) << 18 | (text[i + 1] & 0x3F) << 12 | (text[i + 2] & 0x3F) << 6 | text[i + 3] & 0x3F, 4


@compiled_helper
def mix(value: np.uint64, byte: np.uint8) -> np.uint64:
    """One step of the table hash (FNV-1a); compiled."""
    return (value ^ np.uint64(byte)) * _PRIME


@compiled_helper
def word_end(
    text: NDArray[np.uint8], i: int, end: int, kinds: NDArray[np.uint8], lower: NDArray[np.uint8]
) -> tuple[int, int, np.uint64, bool]:
    """The word that begins at byte i: its end, its code points, its table hash, whether it is ASCII; compiled.

    The hash is of the lower-case letters, and means nothing for a word that is not ASCII.
    """
    start, wide, value = i, 0, _SEED
    while i < end:
        letter = lower[text[i]]
        if letter:
            value = mix(value, letter)
            i += 1
            continue
        if text[i] < 0x80:
            break
        code, width = code_point(text, i)
        kind = kinds[code]
        if kind != _WORD and kind != _IGNORABLE:
            break
        i += width
        wide += width - 1
    return i, i - start - wide, value, wide == 0


@compiled_helper
def number_end(text: NDArray[np.uint8], i: int, end: int, kinds: NDArray[np.uint8]) -> tuple[int, int]:
    """The number that begins at byte i: its end, and its code points; compiled."""
    points = 0
    while i < end:
        code, width = code_point(text, i)
        if kinds[code] != _NUMBER:
            break
        i += width
        points += 1
    return i, points


@compiled_helper
def space_end(text: NDArray[np.uint8], i: int, end: int, kinds: NDArray[np.uint8]) -> tuple[int, int, bool]:
    """The run of white space that begins at byte i: its end, its code points, whether it breaks a line; compiled."""
    points, breaks = 0, False
    while i < end:
        code, width = code_point(text, i)
        if kinds[code] != _SPACE:
            break
        breaks |= breaks_line(code)
        i += width
        points += 1
    return i, points, breaks


@compiled_helper
def breaks_line(code: int) -> bool:
    """Whether a code point ends a line, as `str.splitlines` counts; compiled."""
    return 0x0A <= code <= 0x0D or 0x1C <= code <= 0x1E or code == 0x85 or code == 0x2028 or code == 0x2029
