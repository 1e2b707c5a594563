"""Co-occurrence counts of word pairs.

Two words at distance d in one note (d up to the window) add 1/d to their pair; windows do not cross notes. Words
without an id are removed first and do not count towards the distance, as in the programs of word2vec and GloVe. Weights
are summed as integers, so the counts do not depend on workers or order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from clinveil.core.types import Doubles, Ints, SmallInts
from clinveil.scale.local import threads
from clinveil.vectors.sentences import END, Ids

Counts = tuple[Ints, Ints]  # distinct pairs, row << 32 | column, ascending; and their weights
_LARGEST_UNIT = 1 << 30


def unit_of(window: int) -> int:
    """Return the units of a weight of 1: up to window 22, every 1/d is a whole number of units."""
    return min(math.lcm(*range(1, window + 1)), _LARGEST_UNIT)


def count_pairs(batches: Iterable[Ids], window: int, *, workers: int = 1) -> tuple[SmallInts, SmallInts, Doubles]:
    """Return rows, columns and counts X of all pairs, each once, in order of row and column.

    X(i, j) = X(j, i) is returned once, with i <= j, and X(i, i) counts each co-occurrence twice, once per direction.
    Memory: 16 bytes for each distinct pair, up to three times.

    Args:
        batches: word ids with `END` after each note, from `sentences.encode`. workers: threads.
    """
    total: Counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[Counts] = []
    for counts in threads(workers)(partial(_counted, window), batches):
        waiting.append(counts)
        if sum(keys.size for keys, _ in waiting) > total[0].size:
            total, waiting = _summed([total, *waiting]), []
    keys, units = _summed([total, *waiting])
    rows, columns = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
    values = units / unit_of(window)
    return rows, columns, np.where(rows == columns, 2 * values, values)


def _counted(window: int, ids: Ids) -> Counts:
    """Count the pairs of whole notes."""
    notes, words, found = np.cumsum(ids == END), ids.astype(np.int64), list[Counts]()
    for distance in range(1, min(window, ids.size - 1) + 1):
        same = (notes[distance:] == notes[:-distance]) & (words[:-distance] != END)  # an `END` begins a number
        one, other = words[:-distance][same], words[distance:][same]
        first, second = np.minimum(one, other), np.maximum(one, other)
        weight = round(unit_of(window) / distance)
        found.append((first << 32 | second, np.full(first.size, weight, dtype=np.int64)))
    return _summed(found)


def _summed(parts: list[Counts]) -> Counts:
    """Add the weights of equal pairs."""
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    keys, units = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys, units = keys[order], units[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    return keys[firsts], np.add.reduceat(units, firsts) if firsts.size else units
