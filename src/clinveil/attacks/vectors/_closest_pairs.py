"""Exact search for the closest pairs of a set of vectors: the first k of all unordered pairs by distance.

Blocks of pairs are screened against the current k-th distance. The remaining pairs get a distance summed in
float64 and rounded to float32, so equal vectors tie. The result does not depend on blocks, threads or order: ties go to
the lower first row, then to the lower second. Memory is k pairs and one block per thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import UsageError
from clinveil.core.types import Floats, SmallInts
from clinveil.scale.local import threads as in_threads
from clinveil.vectors.search import Space, one_thread_each

Metric = Literal["cosine", "cityblock", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "cityblock", "euclidean")
_ROWS, _COLUMNS = 256, 4096
_SAMPLE = 2048  # sample of rows whose closest pairs bound those of all
_SPARE = 1 << 17  # pairs over k that are collected before the list is cut again
_PAIRS = 1 << 14  # exact distances computed in one batch


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows by distance, nearest first, ties by `first`, then `second`.

    Attributes:
        first, second: (k,) int32 rows, first < second.
        distances: (k,) float32, sorted.
    """

    first: SmallInts
    second: SmallInts
    distances: Floats

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def none(cls) -> Pairs:
        """Return an empty list of pairs."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Concatenate pairs."""
        columns = ([getattr(part, name) for part in parts] for name in ("first", "second", "distances"))
        return cls(*map(np.concatenate, columns))

    def cut(self, k: int) -> Pairs:
        """Return the first k, in order."""
        keep: NDArray[np.intp] = np.arange(len(self))
        if len(self) > k:
            keep = np.flatnonzero(self.distances <= np.partition(self.distances, k - 1)[k - 1])
        order = keep[np.lexsort((self.second[keep], self.first[keep], self.distances[keep]))][:k]
        return Pairs(self.first[order], self.second[order], self.distances[order])


def closest_pairs(matrix: Floats, k: int, metric: Metric, *, threads: int = 2) -> Pairs:
    """Return the first k of all unordered pairs of rows, by distance (fewer if there are fewer pairs).

    Args:
        matrix: (n, dim) float32, finite.
        k: number of pairs.
        metric: cosine, cityblock or euclidean. A zero vector has cosine similarity 0 with all others.
        threads: number of threads; it does not change the result.

    Raises:
        UsageError: an unknown metric.
        ValueError: k below 1.
    """
    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", hint="one of " + ", ".join(METRICS))
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    matrix = np.ascontiguousarray(matrix, dtype=np.float32)
    n = len(matrix)
    k = min(k, n * (n - 1) // 2)
    if not k:
        return Pairs.none()
    search = _Search(matrix, metric, k, _bound(matrix, k, metric))
    found = Pairs.none()
    with one_thread_each():
        for block in in_threads(threads)(search.rows, list(_blocks(n, _ROWS))):
            found = Pairs.joined([found, block]).cut(k)
            if len(found) == k:
                search.limit = float(found.distances[-1])
    return found


def _bound(matrix: Floats, k: int, metric: Metric) -> float:
    """Return an upper bound of the k-th distance: that of a sample of rows."""
    if len(matrix) <= 2 * _SAMPLE or k > _SAMPLE * (_SAMPLE - 1) // 2:
        return float("inf")
    block = matrix[np.linspace(0, len(matrix) - 1, _SAMPLE).astype(np.int64)]
    return float(closest_pairs(block, k, metric, threads=1).distances[-1])


def _blocks(n: int, size: int, start: int = 0) -> Iterator[slice]:
    return (slice(at, min(at + size, n)) for at in range(start, n, size))


class _Search:
    """State shared by the threads: the vectors, and the current k-th distance, which only decreases."""

    def __init__(self, matrix: Floats, metric: Metric, k: int, limit: float) -> None:
        self.metric, self.k, self.limit = metric, k, limit
        self._space = Space.of(matrix)
        self.points = self._space.unit(np.arange(len(matrix))) if metric == "cosine" else matrix.astype(np.float64)

    def rows(self, rows: slice) -> Pairs:
        """Return the best k pairs within the limit whose first row is one of these."""
        found, pending, count, limit = Pairs.none(), [Pairs.none()], 0, self.limit
        for columns in _blocks(len(self.points), _COLUMNS, rows.start):
            limit = min(limit, self.limit)
            one, other = (at.astype(np.int32) for at in np.nonzero(self.may_be_near(rows, columns, limit)))
            first, second = one + np.int32(rows.start), other + np.int32(columns.start)
            first, second = first[first < second], second[first < second]
            distances = self._exact(first, second)
            near = distances <= limit
            pending.append(Pairs(first[near], second[near], distances[near]))
            count += len(pending[-1])
            if count > self.k + _SPARE:
                found, pending, count = Pairs.joined([found, *pending]).cut(self.k), [], 0
                limit = float(found.distances[-1])
        return Pairs.joined([found, *pending]).cut(self.k)

    def may_be_near(self, rows: slice, columns: slice, limit: float) -> NDArray[np.bool_]:
        """Return all pairs within the limit, and few others, whatever the rounding."""
        from scipy.spatial.distance import cdist

        if self.metric == "cosine":
            similarities = self.points[rows] @ self.points[columns].T
            return np.asarray(similarities >= 1.0 - _slack(self.points.shape[1]) - limit)
        distances = cdist(self.points[rows], self.points[columns], self.metric)
        return np.asarray(distances <= limit * (1.0 + _slack(1)))

    def _exact(self, first: SmallInts, second: SmallInts) -> Floats:
        parts = [self._distances(first[block], second[block]) for block in _blocks(len(first), _PAIRS)]
        return np.concatenate([np.empty(0, np.float32), *parts])

    def _distances(self, first: SmallInts, second: SmallInts) -> Floats:
        if self.metric == "cosine":  # the similarity is rounded first
            return np.float32(1) - self._space.cosines(first, second[:, None])[:, 0]
        difference = self.points[first] - self.points[second]
        if self.metric == "cityblock":
            return np.asarray(np.abs(difference).sum(axis=1), dtype=np.float32)
        return np.asarray(np.sqrt((difference * difference).sum(axis=1)), dtype=np.float32)


def _slack(dim: int) -> float:
    """Return an upper bound of the relative error of a float32 sum of `dim` products."""
    return 4.0 * (dim + 8) * float(np.finfo(np.float32).eps)
