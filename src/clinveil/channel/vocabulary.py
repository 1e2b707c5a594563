"""The words of a channel as one open-addressing table over UTF-8 bytes: found by hash, believed by comparing bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.channel.compiled import compiled, compiled_helper
from clinveil.channel.scan import mix, readonly
from clinveil.channel.siphash import siphash_strings

_EMPTY = np.uint64(0)
_LOW = np.uint64(0xFFFFFFFF)
_SEED = np.uint64(0xCBF29CE484222325)
_HALF = np.uint64(32)


class Vocabulary(NamedTuple):
    """The table.

    Attributes:
        slots: (2^b,) uint64, half of them free: the upper 32 bits of a word's hash, then its row + 1; 0 where free.
        data: uint8, the UTF-8 bytes of all words; offsets: (n_words + 1,) int64 into it.
        forms: (n_words,) uint64, keyed hash of each word; what memoised draws are made from.
        kept: (n_words,) bool, words that the user asked to leave as they are.
    """

    slots: NDArray[np.uint64]
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    forms: NDArray[np.uint64]
    kept: NDArray[np.bool_]


def vocabulary(words: Sequence[str], kept: frozenset[str], form_key: tuple[np.uint64, np.uint64]) -> Vocabulary:
    """The table of a channel's words."""
    data, offsets = string_buffers(pa.array(words, type=pa.large_string()))
    slots = np.zeros(1 << max(2 * len(words), 1).bit_length(), dtype=np.uint64)
    _fill(slots, data, offsets)
    is_kept = np.fromiter((word in kept for word in words), dtype=np.bool_, count=len(words))
    forms = siphash_strings(form_key, data, offsets)
    return Vocabulary(readonly(slots), data, offsets, readonly(forms), readonly(is_kept))


def string_buffers(strings: pa.LargeStringArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes and the offsets, (n_strings + 1,), of an Arrow array of large strings; views, read-only."""
    _, offsets, data = strings.buffers()
    if offsets is None or offsets.size == 0:
        places = np.zeros(1, dtype=np.int64)
    else:
        places = np.frombuffer(offsets, dtype=np.int64)[strings.offset : strings.offset + len(strings) + 1]
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(0, dtype=np.uint8)
    return readonly(letters), readonly(places)


@compiled
def _fill(slots: NDArray[np.uint64], data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
    mask = slots.size - 1
    for row in range(offsets.size - 1):
        value = _SEED
        for i in range(offsets[row], offsets[row + 1]):
            value = mix(value, data[i])
        slot = np.int64(value & _LOW) & mask
        while slots[slot] != _EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = value & ~_LOW | np.uint64(row + 1)


@compiled_helper
def find(
    slots: NDArray[np.uint64],
    words: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    text: NDArray[np.uint8],
    start: int,
    end: int,
    value: np.uint64,
    lower: NDArray[np.uint8],
) -> int:
    """The row of the ASCII word text[start:end], whose table hash is `value`; -1 if it has none; compiled."""
    mask = slots.size - 1
    slot = np.int64(value & _LOW) & mask
    while slots[slot] != _EMPTY:
        entry = slots[slot]
        if entry >> _HALF == value >> _HALF:
            row = np.int64(entry & _LOW) - 1
            first = offsets[row]
            i = end - start if offsets[row + 1] - first == end - start else -1
            while i > 0 and words[first + i - 1] == lower[text[start + i - 1]]:
                i -= 1
            if i == 0:
                return row
        slot = (slot + 1) & mask
    return -1
