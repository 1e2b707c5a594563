"""The words of a channel as one open-addressing table over UTF-8 bytes: found by hash, believed by comparing bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.channel.compiled import compiled, compiled_helper
from clinveil.channel.pages import on_large_pages
from clinveil.channel.scan import mix, readonly
from clinveil.channel.siphash import siphash_strings

CELL = 16  # bytes of a word that lie in its cell
_EMPTY, _LOW, _HALF, _BYTE = np.uint64(0), np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(8)


class Vocabulary(NamedTuple):
    """The table.

    Attributes:
        slots: (2^b,) uint64, half of them free: the upper 32 bits of a word's hash, then its row + 1; 0 where free.
        cells: (n_words, 4) uint64: a word's first and second eight bytes, how many bytes it has, and the keyed hash
            that memoised draws are made from; together, so that a word costs one miss of the cache.
        data: uint8, the UTF-8 bytes of all words; offsets: (n_words + 1,) int64 into it.
        kept: (n_words,) bool, words that the user asked to leave as they are.
    """

    slots: NDArray[np.uint64]
    cells: NDArray[np.uint64]
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    kept: NDArray[np.bool_]


def vocabulary(words: Sequence[str], kept: frozenset[str], form_key: tuple[np.uint64, np.uint64]) -> Vocabulary:
    """The table of a channel's words."""
    data, offsets = string_buffers(pa.array(words, type=pa.large_string()))
    slots = np.zeros(1 << max(2 * len(words), 1).bit_length(), dtype=np.uint64)
    cells = np.zeros((max(len(words), 1), 4), dtype=np.uint64)
    cells[: len(words), 2], cells[: len(words), 3] = np.diff(offsets), siphash_strings(form_key, data, offsets)
    _fill(slots, cells, data, offsets)
    is_kept = np.fromiter((word in kept for word in words), dtype=np.bool_, count=len(words))
    return Vocabulary(on_large_pages(slots), on_large_pages(cells), data, offsets, readonly(is_kept))


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
def _fill(
    slots: NDArray[np.uint64], cells: NDArray[np.uint64], data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> None:
    mask = slots.size - 1
    for row in range(offsets.size - 1):
        value, chunk, shift = _EMPTY, _EMPTY, _EMPTY
        for i in range(offsets[row + 1] - offsets[row]):
            byte = np.uint64(data[offsets[row] + i])
            if i < CELL:
                cells[row, i // 8] |= byte << shift
            chunk |= byte << shift
            shift += _BYTE
            if i % 8 == 7:
                value = mix(value, chunk)
                chunk = shift = _EMPTY
        value = mix(value, chunk)
        slot = np.int64(value & _LOW) & mask
        while slots[slot] != _EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = value & ~_LOW | np.uint64(row + 1)


@compiled_helper
def find(
    words: Vocabulary,
    text: NDArray[np.uint8],
    start: int,
    length: int,
    value: np.uint64,
    first: np.uint64,
    second: np.uint64,
    lower: NDArray[np.uint8],
) -> int:
    """The row of the ASCII word text[start:start + length], -1 if it has none; compiled.

    `value`, `first` and `second` are what `scan.word_end` said of it.
    """
    slots, cells = words.slots, words.cells
    mask = slots.size - 1
    slot = np.int64(value & _LOW) & mask
    while slots[slot] != _EMPTY:
        entry = slots[slot]
        row = np.int64(entry & _LOW) - 1
        if entry >> _HALF == value >> _HALF and cells[row, 0] == first and cells[row, 1] == second:
            i = length if cells[row, 2] == np.uint64(length) else -1
            while i > CELL and words.data[words.offsets[row] + i - 1] == lower[text[start + i - 1]]:
                i -= 1
            if 0 <= i <= CELL:
                return int(row)
        slot = (slot + 1) & mask
    return -1
