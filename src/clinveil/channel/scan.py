"""Reading tokens off UTF-8 bytes: what `clinveil.core.tokens` does to strings, compiled.

The borders are those of `tokens.tokenize`, which stays the reference. All functions assume valid UTF-8.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.compiled import compiled_helper
from clinveil.core.tokens import Kind, character_classes

_WORD, _IGNORABLE = int(Kind.WORD), int(Kind.IGNORABLE)
_ZERO, _BYTE, _HALF, _FULL = np.uint64(0), np.uint64(8), np.uint64(32), np.uint64(64)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: multiplying spreads every bit upwards

Scalar = TypeVar("Scalar", bound=np.generic)


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


def readonly(array: NDArray[Scalar]) -> NDArray[Scalar]:
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
        return int(first), 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | text[i + 1] & 0x3F, 2
    if first < 0xF0:
        return (first & 0x0F) << 12 | (text[i + 1] & 0x3F) << 6 | text[i + 2] & 0x3F, 3
    return (first & 7) << 18 | (text[i + 1] & 0x3F) << 12 | (text[i + 2] & 0x3F) << 6 | text[i + 3] & 0x3F, 4


@compiled_helper
def mix(value: np.uint64, chunk: np.uint64) -> np.uint64:
    """One step of the table hash, over eight bytes; compiled."""
    value = (value ^ chunk) * _ODD
    return value ^ (value >> _HALF)


@compiled_helper
def word_end(
    text: NDArray[np.uint8], i: int, end: int, kinds: NDArray[np.uint8], lower: NDArray[np.uint8]
) -> tuple[int, int, bool, np.uint64, np.uint64, np.uint64]:
    """The word that begins at byte i; compiled.

    Returns: its end; its code points; whether it is ASCII, and if so the table hash of its lower-case letters, and the
    first and the second eight of them as little-endian integers.
    """
    start, wide, value, first, chunk, shift = i, 0, _ZERO, _ZERO, _ZERO, _ZERO
    second = _ZERO
    while i < end:
        letter = lower[text[i]]
        if letter:
            chunk |= np.uint64(letter) << shift
            shift += _BYTE
            i += 1
            if shift == _FULL:
                value = mix(value, chunk)
                if i - start == 8:
                    first = chunk
                elif i - start == 16:
                    second = chunk
                chunk = shift = _ZERO
            continue
        if text[i] < 0x80:
            break
        code, width = code_point(text, i)
        kind = kinds[code]
        if kind != _WORD and kind != _IGNORABLE:
            break
        i += width
        wide += width - 1
    if i - start < 8:
        first = chunk
    elif i - start < 16:
        second = chunk
    return i, i - start - wide, wide == 0, mix(value, chunk), first, second


@compiled_helper
def run_end(text: NDArray[np.uint8], i: int, end: int, kinds: NDArray[np.uint8], kind: int) -> tuple[int, int, bool]:
    """The run of one kind that begins at byte i: its end, its code points, whether it breaks a line; compiled."""
    points, breaks = 0, False
    while i < end:
        code, width = code_point(text, i)
        if kinds[code] != kind:
            break
        breaks |= breaks_line(code)
        i += width
        points += 1
    return i, points, breaks


@compiled_helper
def breaks_line(code: int) -> bool:
    """Whether a code point ends a line, as `str.splitlines` counts; compiled."""
    return 0x0A <= code <= 0x0D or 0x1C <= code <= 0x1E or code == 0x85 or code == 0x2028 or code == 0x2029
