"""Search nearest words: faiss selects candidates in float32, and float64 scores decide.

Results do not depend on block sizes or threads: every candidate that may be among the best within
the error of float32 gets an exact score, and ties go to the lower row. A list of faiss that may be
too short for this is widened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts
from clinveil.scale.local import threads as in_threads

_QUERIES = 512
_SPARE = 8  # candidates beyond k that are requested at first
_NUMBERS = 1 << 23  # numbers in memory for exact scores
# Candidates per list that the centroids are fitted to; rounds of k-means.
_TRAINED_ON = 100
_ROUNDS = 10

# Numbers of queries (n,) and of targets (n, width) -> exact scores (n, width); -inf for excluded
# targets.
Exact = Callable[[Ints, Ints], NDArray[Any]]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Space:
    """Vectors prepared for search by cosine.

    Attributes:
        matrix: (n_words, dim) float32, as trained.
        scale: (n_words,) float64, inverse length of each vector; 0 for a zero vector, which has
            cosines of 0.
    """

    matrix: Floats
    scale: Doubles

    @classmethod
    def of(cls, matrix: Floats) -> Space:
        """Return the space of a matrix."""
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        scale = np.divide(1.0, lengths, out=np.zeros(len(matrix)), where=lengths > 0)
        return cls(np.ascontiguousarray(matrix), scale)

    def unit(self, rows: NDArray[np.integer]) -> Floats:
        """Return some vectors scaled to length 1, shape (n_rows, dim)."""
        return np.asarray(self.matrix[rows] * self.scale[rows, None], dtype=np.float32)

    def cosines(self, queries: SmallInts, others: SmallInts) -> Floats:
        """Return exact cosines of rows (n,) with others (n, width), rounded to float32; -inf of a
        row with itself.
        """
        products = dots(self.matrix[queries], self.matrix[others]) * (
            self.scale[queries, None] * self.scale[others]
        )
        return np.where(others == queries[:, None], -np.inf, products + 0.0).astype(np.float32)

    @property
    def slack(self) -> float:
        """An upper bound of the error of a float32 cosine of unit vectors."""
        return 2.0 * (self.matrix.shape[1] + 8) * float(np.finfo(np.float32).eps)


def dots(one: Floats, others: Floats) -> Doubles:
    """Return dot products of each vector (n, d) with its others (n, width, d), summed in float64 in
    a fixed order.
    """
    return np.asarray((one[:, None].astype(np.float64) * others).sum(axis=2))


def best(
    queries: Floats, targets: Floats, k: int, exact: Exact, slack: float
) -> tuple[Ints, Doubles]:
    """Return the k best targets of each query by exact score, ties by the lower number.

    Args:
        queries: (n, d) float32. targets: (m, d) float32; their float32 products with queries select
            candidates.
        exact: exact scores, which differ from these products by at most `slack`.

    Returns:
        Numbers of targets (n, k), -1 where there is none, and scores (n, k).
    """
    import faiss

    n = len(queries)
    n_targets = len(targets)
    width = min(k + _SPARE, n_targets)
    numbers = np.full((n, k), -1, np.int64)
    scores = np.full((n, k), -np.inf, np.float64)
    left = np.arange(n)
    while left.size:
        step = max(1, _NUMBERS // (width * queries.shape[1]))
        again = []
        for some in np.split(left, range(step, left.size, step)):
            products, near = faiss.knn(
                queries[some], targets, width, metric=faiss.METRIC_INNER_PRODUCT
            )
            score = exact(some, near)
            order = np.lexsort((near, -score), axis=-1)[:, :k]
            numbers[some, : order.shape[1]] = np.take_along_axis(near, order, axis=1)
            scores[some, : order.shape[1]] = np.take_along_axis(score, order, axis=1)
            if width < n_targets:
                again.append(some[scores[some, -1] <= products[:, -1] + slack])
        left = np.concatenate([*again, left[:0]])
        width = min(4 * width, n_targets)
    return np.where(np.isneginf(scores), -1, numbers), scores


def exact_search(
    space: Space, queries: SmallInts, candidates: SmallInts, k: int, *, threads: int
) -> tuple[SmallInts, Floats]:
    """Return the k candidates with the highest cosine for each query, without the query itself.

    Args:
        space: the vectors.
        queries: (n,) rows to find neighbours for.
        candidates: (m,) rows that may be neighbours, ascending; more than k of them.
        k: neighbours per query.
        threads: number of threads; it does not change the result.

    Returns:
        Rows (n, k) int32 and cosines (n, k) float32, descending, ties by the lower row.
    """
    targets = space.unit(candidates)

    def block(rows: SmallInts) -> tuple[SmallInts, Floats]:
        def exact(at: Ints, near: Ints) -> Floats:
            return space.cosines(rows[at], candidates[near])

        numbers, cosines = best(space.unit(rows), targets, k, exact, space.slack)
        return np.where(numbers < 0, -1, candidates[numbers]), cosines.astype(np.float32)

    blocks = list(by_block(block, queries, threads))
    return np.concatenate([ids for ids, _ in blocks]), np.concatenate(
        [cosines for _, cosines in blocks]
    )


def by_block(work: Callable[[SmallInts], Any], rows: SmallInts, threads: int) -> Iterator[Any]:
    """Yield the results of `work` on blocks of rows, in order, computed in clinveil's threads."""
    parts = np.array_split(rows, max(1, -(-len(rows) // _QUERIES)))
    with one_thread_each():
        yield from in_threads(threads)(partial(alone, work), parts)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Limit BLAS to one thread per call, so that sums do not depend on the number of threads."""
    with threadpool_limits(1, user_api="blas"):
        yield


def alone(work: Callable[[T], R], some: T) -> R:
    """Run `work` with faiss limited to the calling thread."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return work(some)
    finally:
        faiss.omp_set_num_threads(before)


def topics(units: Floats, fitted: Mask, n: int, seed: int) -> Ints:
    """Return the nearest of n centroids of each unit vector, (n_words,).

    The centroids come from spherical k-means of the vectors in `fitted`, in one thread.
    """
    import faiss

    def nearest(units: Floats) -> Ints:
        limits = {"max_points_per_centroid": _TRAINED_ON, "min_points_per_centroid": 1}
        means = faiss.Kmeans(
            units.shape[1], n, niter=_ROUNDS, spherical=True, seed=seed % 2**31, **limits
        )
        means.train(units[fitted])
        centroids = np.asarray(means.centroids, dtype=np.float32)
        found: tuple[Floats, Ints] = faiss.knn(
            units, centroids, 1, metric=faiss.METRIC_INNER_PRODUCT
        )
        return found[1][:, 0]

    with one_thread_each():
        return alone(nearest, units)
