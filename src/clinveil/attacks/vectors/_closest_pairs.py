"""The closest pairs of a set of vectors: the first k of all unordered pairs by distance, exact.

Distances are computed in float64 and rounded to float32, so equal vectors tie. Ties go to the lower first row, then to
the lower second.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from clinveil.core.errors import UsageError
from clinveil.core.types import Doubles, Floats, SmallInts
from clinveil.vectors.search import one_thread_each

Metric = Literal["cosine", "cityblock", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "cityblock", "euclidean")
_AT_ONCE = 1 << 22  # distances computed in one block


class Pairs(NamedTuple):
    """Pairs of rows, nearest first: int32 rows, first < second, and float32 distances, (k,) each."""

    first: SmallInts
    second: SmallInts
    distances: Floats


def closest_pairs(matrix: Floats, k: int, metric: Metric) -> Pairs:
    """Return the first k of all unordered pairs of rows, by distance (fewer if there are fewer pairs).

    Args:
        matrix: (n, dim) float32, finite.
        k: number of pairs.
        metric: cosine, cityblock or euclidean. A zero vector has cosine similarity 0 with all others.

    Raises:
        UsageError: an unknown metric.
        ValueError: k below 1.
    """
    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", hint="one of " + ", ".join(METRICS))
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    points, n = matrix.astype(np.float64), len(matrix)
    found = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    step = max(1, _AT_ONCE // max(n, 1))
    with one_thread_each():
        for start in range(0, n - 1, step):
            distances = _distances(points[start : start + step], points[start:], metric).astype(np.float32)
            limit = found.distances[-1] if len(found.first) == k else np.inf
            one, other = np.nonzero(distances <= limit)
            one, other = one[one < other], other[one < other]
            first = np.concatenate([found.first, (one + start).astype(np.int32)])
            second = np.concatenate([found.second, (other + start).astype(np.int32)])
            found = _first(Pairs(first, second, np.concatenate([found.distances, distances[one, other]])), k)
    return found


def _first(pairs: Pairs, k: int) -> Pairs:
    """Return the first k pairs in order; only pairs within the k-th distance are sorted."""
    keep = np.arange(pairs.first.size)
    if keep.size > k:
        keep = np.flatnonzero(pairs.distances <= np.partition(pairs.distances, k - 1)[k - 1])
    order = keep[np.lexsort((pairs.second[keep], pairs.first[keep], pairs.distances[keep]))][:k]
    return Pairs(pairs.first[order], pairs.second[order], pairs.distances[order])


def _distances(rows: Doubles, others: Doubles, metric: Metric) -> Doubles:
    from scipy.spatial.distance import cdist

    if metric != "cosine":
        return np.asarray(cdist(rows, others, metric))
    lengths = [np.linalg.norm(side, axis=1) for side in (rows, others)]
    left, right = (np.divide(1.0, size, out=np.zeros(size.size), where=size > 0) for size in lengths)
    cosines = ((rows @ others.T) * (left[:, None] * right)).astype(np.float32)  # the similarity is rounded first
    return np.asarray(np.float32(1) - cosines)
