"""The closest pairs of a set of vectors: the first k of all unordered pairs by distance, in blocks, exactly.

Blocks of pairs are screened against the k-th distance so far; whoever passes gets an exact distance. The list depends
on no block, thread or order: ties go to the lower first row, then to the lower second. Memory is k pairs and one block
a thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import local

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.vectors._distances import METRICS, Doubles, Floats, Metric, Rows, Scratch, Screen, exact, screen
from clinveil.attacks.vectors._distances import inverse_lengths as _inverse_lengths
from clinveil.core.errors import InputError, UsageError
from clinveil.scale.local import threads as in_threads
from clinveil.vectors.exact import one_thread_each

_ROWS, _COLUMNS = 256, 4096
_SAMPLE = 2048  # rows whose closest pairs bound those of all
_SPARE = 1 << 17  # pairs over k that are collected before the list is cut again


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows by distance, nearest first, ties by `first`, then `second`.

    Attributes:
        first, second: (k,) int32 rows, first < second.
        distances: (k,) float32, ascending.
    """

    first: Rows
    second: Rows
    distances: Floats

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def none(cls) -> Pairs:
        """No pairs."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))

    def cut(self, k: int) -> Pairs:
        """The first k, in order."""
        keep: NDArray[np.intp] = np.arange(len(self))
        if len(self) > k:
            keep = np.flatnonzero(self.distances <= np.partition(self.distances, k - 1)[k - 1])
        order = keep[np.lexsort((self.second[keep], self.first[keep], self.distances[keep]))][:k]
        return Pairs(self.first[order], self.second[order], self.distances[order])


def closest_pairs(matrix: Floats, k: int, metric: Metric, *, threads: int = 2) -> Pairs:
    """The first k of all unordered pairs of rows, by distance (fewer where there are fewer pairs).

    Args:
        matrix: (n, dim) float32, finite.
        k: how many pairs.
        metric: cosine, cityblock or euclidean.
        threads: how many; the list is the same for any number.

    Raises:
        UsageError: an unknown metric.
        InputError: k below 1.
    """
    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", remedy="one of " + ", ".join(METRICS))
    if k < 1:
        raise InputError(f"the first {k} pairs cannot be had", remedy="1 or more")
    matrix = np.ascontiguousarray(matrix, dtype=np.float32)
    n = len(matrix)
    k = min(k, n * (n - 1) // 2)
    if not k:
        return Pairs.none()
    search = _Search(matrix, _inverse_lengths(matrix), screen(matrix, metric), METRICS.index(metric), k)
    search.limit = _bound(matrix, k, metric)
    best = Pairs.none()
    with one_thread_each():
        for found in in_threads(threads)(search.rows, list(_blocks(n, _ROWS))):
            best = _join([best, found]).cut(k)
            if len(best) == k:
                search.limit = float(best.distances[-1])
    return best


def _bound(matrix: Floats, k: int, metric: Metric) -> float:
    """A distance that the k-th pair does not pass: the k-th of a sample of rows."""
    if len(matrix) <= 2 * _SAMPLE or k > _SAMPLE * (_SAMPLE - 1) // 2:
        return float("inf")
    some = matrix[np.linspace(0, len(matrix) - 1, _SAMPLE).astype(np.int64)]
    return float(closest_pairs(some, k, metric, threads=1).distances[-1])


def _blocks(n: int, size: int, start: int = 0) -> Iterator[range]:
    return (range(at, min(at + size, n)) for at in range(start, n, size))


def _join(parts: list[Pairs]) -> Pairs:
    return Pairs(
        np.concatenate([p.first for p in parts]),
        np.concatenate([p.second for p in parts]),
        np.concatenate([p.distances for p in parts]),
    )


class _Search:
    """What the threads share: the vectors, and the k-th distance so far, which only falls."""

    def __init__(self, matrix: Floats, scale: Doubles, screen: Screen, metric: int, k: int) -> None:
        self.matrix, self.screen, self.k = matrix, screen, k
        self.limit = float("inf")
        self._exact = partial(exact, matrix, scale, metric)
        self._own = local()

    def rows(self, rows: range) -> Pairs:
        """The best k pairs whose first row is one of these, within the limit."""
        scratch = self._scratch()
        best, waiting, count, limit = Pairs.none(), [Pairs.none()], 0, self.limit
        for columns in _blocks(len(self.matrix), _COLUMNS, rows.start):
            limit = min(limit, self.limit)
            first, second = self.screen(rows, columns, limit, scratch)
            distances = self._exact(first, second)
            near = distances <= limit
            waiting.append(Pairs(first[near], second[near], distances[near]))
            count += len(waiting[-1])
            if count > self.k + _SPARE:
                best = _join([best, *waiting]).cut(self.k)
                waiting, count = [], 0
                limit = float(best.distances[-1])
        return _join([best, *waiting]).cut(self.k)

    def _scratch(self) -> Scratch:
        if not hasattr(self._own, "scratch"):
            self._own.scratch = Scratch.of(_ROWS, _COLUMNS)
        made: Scratch = self._own.scratch
        return made
