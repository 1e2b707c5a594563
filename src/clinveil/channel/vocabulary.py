"""The words of a channel as one open-addressing table over UTF-8 bytes: found by hash, believed by comparing bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.compiled import compiled, compiled_helper
from clinveil.channel.draws import Draws
from clinveil.channel.pages import on_large_pages
from clinveil.channel.scan import mix, readonly
from clinveil.channel.siphash import siphash_strings

CELL = 16  # bytes of a word that lie in its cell
FIRST, SECOND, LENGTH, FORM, START, SIZE, PATTERN, KEPT = range(8)  # of a cell
_EMPTY, _LOW, _HALF, _BYTE = np.uint64(0), np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(8)


class Vocabulary(NamedTuple):
    """The table.

    Attributes:
        slots: (2^b,) uint64, half of them free: the upper 32 bits of a word's hash, then its row + 1; 0 where free.
        cells: (n_words + 1, 8) uint64, all about a word in one line of the cache: its first and its second eight bytes;
            how many bytes it has; the keyed hash that memoised draws are made from; of its row in the channel, where it
            begins, how long it is, and its pattern (`Draws`); 1 if the user asked to keep it. The last cell is that of
            unknown words.
        data: uint8, the UTF-8 bytes of all words; offsets: (n_words + 1,) int64 into it.
    """

    slots: NDArray[np.uint64]
    cells: NDArray[np.uint64]
    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def vocabulary(channel: Channel, draws: Draws, form_key: tuple[np.uint64, np.uint64]) -> Vocabulary:
    """The table of a channel's words."""
    n_words = len(channel.words)
    data, offsets = string_buffers(pa.array(channel.words, type=pa.large_string()))
    slots = np.zeros(1 << max(2 * n_words, 1).bit_length(), dtype=np.uint64)
    cells = np.zeros((n_words + 1, 8), dtype=np.uint64)
    cells[:n_words, LENGTH] = np.diff(offsets)
    cells[:n_words, FORM] = siphash_strings(form_key, data, offsets)
    cells[:, START], cells[:, SIZE] = channel.indptr[:-1], np.diff(channel.indptr)
    cells[:, PATTERN] = draws.patterns
    cells[[channel.ids[word] for word in channel.kept], KEPT] = 1
    _fill(slots, cells, data, offsets)
    return Vocabulary(on_large_pages(slots), on_large_pages(cells), data, offsets)


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
        if entry >> _HALF == value >> _HALF and cells[row, FIRST] == first and cells[row, SECOND] == second:
            i = length if cells[row, LENGTH] == np.uint64(length) else -1
            while i > CELL and words.data[words.offsets[row] + i - 1] == lower[text[start + i - 1]]:
                i -= 1
            if 0 <= i <= CELL:
                return int(row)
        slot = (slot + 1) & mask
    return -1
