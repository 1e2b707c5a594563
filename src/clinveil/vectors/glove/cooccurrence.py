"""Count weighted co-occurrences of word pairs, exactly and out of core.

Two words at distance d in one note (d up to the window) add 1/d to their pair; windows do not cross notes. Words
without an id are removed first and do not count towards the distance, as in the programs of word2vec and GloVe.

Pairs are collected in a hash table. When its memory is used up, it is sorted and written to a scratch file (a run), and
the runs are merged at the end. Weights are summed as integers, so the counts are the same for any memory limit, number
of workers and order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import kernel
from clinveil.core.files import write_array
from clinveil.scale.local import threads
from clinveil.vectors.encoded import Ids

Records = NDArray[np.void]

# A pair of words, row << 32 | column, and its weight. In a table, 0 units mark an empty slot.
RECORD = np.dtype([("key", np.int64), ("units", np.int64)])
_LARGEST_UNIT = 1 << 30
_FIRST_SLOTS = 1 << 16
_LEAST_CHUNK = 1 << 12
# A slot has 16 bytes; writing a half-full table as a sorted run takes 16 more.
_BYTES_PER_SLOT = 32


def unit_of(window: int) -> int:
    """Return the units of a weight of 1: up to window 22, every 1/d is a whole number of units."""
    return min(math.lcm(*range(1, window + 1)), _LARGEST_UNIT)


@dataclass(frozen=True)
class Cooccurrences:
    """Counts X of word pairs.

    Attributes:
        runs: sorted arrays of (key, units), in memory or mapped from scratch files that must outlive this object.
        unit: units of a weight of 1.
        symmetric: whether X(i, j) = X(j, i), of which only i <= j is stored; otherwise j follows i in the text.
        chunk: records of a run in memory at a time.
    """

    runs: Sequence[Records] = field(repr=False)
    unit: int
    symmetric: bool
    chunk: int = 1 << 20

    def blocks(self) -> Iterator[tuple[Ids, Ids, NDArray[np.float64]]]:
        """Yield rows, columns and counts of all pairs, each once, in order of row and column.

        A symmetric X(i, i) counts each co-occurrence twice, once per direction.
        """
        for block in _merged(self.runs, self.chunk):
            rows = (block["key"] >> 32).astype(np.int32)
            columns = (block["key"] & 0xFFFFFFFF).astype(np.int32)
            counts = block["units"] / self.unit
            yield rows, columns, np.where(self.symmetric & (rows == columns), 2 * counts, counts)


def count_pairs(
    batches: Iterable[Ids], *, window: int, symmetric: bool, memory_mb: float, workers: int, folder: Path
) -> Cooccurrences:
    """Count the co-occurrences of encoded notes.

    Args:
        batches: word ids with `END` after each note, from `encoded.encode`.
        window: the largest distance.
        symmetric: count unordered pairs, or (earlier, later) ones.
        memory_mb: MiB for all tables.
        workers: threads, each with a separate table; they do not change the counts.
        folder: a private folder for runs, which the result reads.
    """
    slots = 1 << max(8, int(memory_mb * 2**20 / workers / _BYTES_PER_SLOT).bit_length() - 1)
    counters = [_Counter(window, symmetric, max(slots, _slots_for(window)), folder / str(n)) for n in range(workers)]
    free: SimpleQueue[_Counter] = SimpleQueue()
    for counter in counters:
        free.put(counter)

    def count(ids: Ids) -> None:
        counter = free.get()
        counter.add(ids)
        free.put(counter)

    for _ in threads(workers)(count, batches):
        pass
    runs = [run for counter in counters for run in counter.finish()]
    return Cooccurrences(runs, unit_of(window), symmetric, chunk=max(_LEAST_CHUNK, slots // max(1, len(runs))))


class _Counter:
    """Table of pairs of one worker, and its runs."""

    def __init__(self, window: int, symmetric: bool, most_slots: int, path: Path) -> None:
        self._weights = np.rint(unit_of(window) / np.arange(1, window + 1)).astype(np.int64)
        self._symmetric, self._most_slots, self._path = symmetric, most_slots, path
        self._runs: list[Records] = []
        self._table, self._used = np.zeros(min(_FIRST_SLOTS, most_slots), RECORD), 0

    def add(self, ids: Ids) -> None:
        """Count the pairs of whole notes."""
        position = 0
        while True:
            position, self._used = _count(ids, position, self._weights, self._symmetric, self._table, self._used)
            if position == ids.size:
                return
            self._grow()

    def _grow(self) -> None:
        if self._table.size < self._most_slots:
            larger = np.zeros(2 * self._table.size, RECORD)
            _move(self._table, larger)
            self._table = larger
        else:
            path = self._path.with_name(f"{self._path.name}-{len(self._runs)}.run")
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                write_array(file, self._sorted())
            self._runs.append(np.memmap(path, RECORD, mode="r"))
            self._table["units"] = 0
            self._used = 0

    def _sorted(self) -> Records:
        full = self._table[self._table["units"] > 0]
        return full[np.argsort(full["key"])]

    def finish(self) -> list[Records]:
        """Return the runs on disk and the rest of the table as the last run, and free the table."""
        last = self._sorted()
        self._table = np.zeros(0, RECORD)
        return [*self._runs, last] if last.size else self._runs


def _slots_for(window: int) -> int:
    """Return the size of the smallest table that is at most half full with the pairs of one word."""
    return 1 << (2 * window).bit_length()


def _merged(runs: Sequence[Records], chunk: int) -> Iterator[Records]:
    """Merge sorted runs and add the units of equal keys, with about `chunk` records of each run in memory."""
    starts = [0] * len(runs)
    while unread := [n for n, run in enumerate(runs) if starts[n] < run.size]:
        heads = [runs[n][starts[n] : starts[n] + chunk] for n in unread]
        # Up to the smallest of the last keys, all keys of all runs have been read.
        last = min(head["key"][-1] for head in heads)
        takes = [int(np.searchsorted(head["key"], last, side="right")) for head in heads]
        for n, take in zip(unread, takes, strict=True):
            starts[n] += take
        merged = np.concatenate([head[:take] for head, take in zip(heads, takes, strict=True)])
        merged = merged[np.argsort(merged["key"], kind="stable")]
        firsts = np.flatnonzero(np.diff(merged["key"], prepend=~merged["key"][:1]))
        block = merged[firsts]
        block["units"] = np.add.reduceat(merged["units"], firsts)
        yield block


@kernel
def _slot(table: Records, key: int | np.int64) -> np.int64:
    """Return the slot of a key in an open-addressed table, or the empty slot for a new key."""
    mask = table.size - 1
    # Multiplicative hashing (Knuth, TAOCP 3, 6.4); the shift mixes the high bits into the low ones.
    product = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(product ^ (product >> np.uint64(32))) & mask
    while table[slot].units != 0 and table[slot].key != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def _count(
    ids: Ids, position: int, weights: NDArray[np.int64], symmetric: bool, table: Records, used: int
) -> tuple[int, int]:
    """Count from a position until the table is half full; return the next position and the number of used slots."""
    window, limit = weights.size, table.size // 2
    while position < ids.size and used + window <= limit:
        word = np.int64(ids[position])
        for distance in range(1, min(window, position) + 1):
            other = np.int64(ids[position - distance])
            if word < 0 or other < 0:
                break
            key = (word << 32) | other if symmetric and word < other else (other << 32) | word
            slot = _slot(table, key)
            used += table[slot].units == 0
            table[slot].key = key
            table[slot].units += weights[distance - 1]
        position += 1
    return position, used


@kernel
def _move(old: Records, new: Records) -> None:
    """Copy all pairs of a table to a larger empty table."""
    for record in old:
        if record.units != 0:
            slot = _slot(new, record.key)
            new[slot].key, new[slot].units = record.key, record.units
