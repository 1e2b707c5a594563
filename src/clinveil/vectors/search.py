"""Nearest words: faiss in float32 says who may be near, a float64 sum decides.

An answer depends on no block, thread or load of the machine: whoever may be among the best within the error of float32
gets an exact score, and ties go to the lower row. Where the list from faiss may be too short for that, it is widened.
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
_SPARE = 8  # places beyond k that are asked for at first
_NUMBERS = 1 << 23  # held at a time for exact scores
_TRAINED_ON, _ROUNDS = 100, 10  # candidates a list that the centroids are fitted to; rounds of k-means

# Queries (n, d) and a width -> products (n, width), falling, and the places of the targets, -1 where there is none.
Find = Callable[[Floats, int], tuple[Floats, Ints]]
# Places of queries (n,) and of targets (n, width) -> exact scores (n, width); -inf for what may not be the answer.
Exact = Callable[[Ints, Ints], NDArray[Any]]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Space:
    """Vectors and what a search by cosine needs of them.

    Attributes:
        matrix: (n_words, dim) float32, as trained.
        scale: (n_words,) float64, one over the length of each vector; 0 for a zero vector, whose cosines are 0.
    """

    matrix: Floats
    scale: Doubles

    @classmethod
    def of(cls, matrix: Floats) -> Space:
        """The space of a matrix."""
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        scale = np.divide(1.0, lengths, out=np.zeros(len(matrix)), where=lengths > 0)
        return cls(np.ascontiguousarray(matrix), scale)

    def unit(self, rows: NDArray[np.integer]) -> Floats:
        """Some vectors at length 1, shape (n_rows, dim)."""
        return np.asarray(self.matrix[rows] * self.scale[rows, None], dtype=np.float32)

    def cosines(self, queries: SmallInts, others: SmallInts) -> Floats:
        """The exact cosines of rows (n,) with others (n, width), rounded to float32; -inf of a row with itself."""
        products = dots(self.matrix[queries], self.matrix[others]) * (self.scale[queries, None] * self.scale[others])
        return np.where(others == queries[:, None], -np.inf, products + 0.0).astype(np.float32)

    @property
    def slack(self) -> float:
        """More than a float32 cosine of unit vectors can be wrong by."""
        return 2.0 * (self.matrix.shape[1] + 8) * float(np.finfo(np.float32).eps)


def dots(one: Floats, others: Floats) -> Doubles:
    """Products of each vector (n, d) with its others (n, width, d), summed in float64 in one fixed order."""
    return np.asarray((one[:, None].astype(np.float64) * others).sum(axis=2))


def flat(targets: Floats) -> Find:
    """All targets, compared one by one."""
    import faiss

    return lambda queries, width: faiss.knn(queries, targets, width, metric=faiss.METRIC_INNER_PRODUCT)


def best(queries: Floats, n_targets: int, k: int, find: Find, exact: Exact, slack: Doubles) -> tuple[Ints, Doubles]:
    """The k best targets of each query by exact score, ties by the lower place.

    Args:
        queries: (n, d) float32. n_targets: how many there are.
        find: by float32 products, no more than `slack` (n,) off the exact scores.

    Returns:
        Places (n, k), -1 where there is none, and scores (n, k).
    """
    n, width = len(queries), min(k + _SPARE, n_targets)
    places, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, np.float64)
    left = np.arange(n)
    while left.size:
        step = max(1, _NUMBERS // (width * queries.shape[1]))
        again = []
        for some in np.split(left, range(step, left.size, step)):
            products, near = find(queries[some], width)
            score = np.where(near < 0, -np.inf, exact(some, near))
            order = np.lexsort((near, -score), axis=-1)[:, :k]
            places[some, : order.shape[1]] = np.take_along_axis(near, order, axis=1)
            scores[some, : order.shape[1]] = np.take_along_axis(score, order, axis=1)
            ended = (near[:, -1] < 0) | (width == n_targets)
            again.append(some[~ended & (scores[some, -1] <= products[:, -1] + slack[some])])
        left, width = np.concatenate(again), min(4 * width, n_targets)
    return np.where(np.isneginf(scores), -1, places), scores


def exact_search(
    space: Space, queries: SmallInts, candidates: SmallInts, k: int, *, threads: int
) -> tuple[SmallInts, Floats]:
    """The k candidates of the highest cosine for each query, never itself.

    Args:
        space: the vectors.
        queries: (n,) rows to find neighbours for.
        candidates: (m,) rows that may be neighbours, ascending; more than k of them.
        k: neighbours a query.
        threads: how many; the table is the same for any number.

    Returns:
        Rows (n, k) int32 and cosines (n, k) float32, descending, ties by the lower row.
    """
    return _search(space, queries, candidates, k, flat(space.unit(candidates)), threads)


def _search(
    space: Space, queries: SmallInts, candidates: SmallInts, k: int, find: Find, threads: int
) -> tuple[SmallInts, Floats]:
    def block(rows: SmallInts) -> tuple[SmallInts, Floats]:
        def exact(at: Ints, near: Ints) -> Floats:
            return space.cosines(rows[at], candidates[near])

        slack = np.full(len(rows), space.slack)
        places, cosines = best(space.unit(rows), len(candidates), k, find, exact, slack)
        return np.where(places < 0, -1, candidates[places]), cosines.astype(np.float32)

    found = list(by_block(block, queries, threads))
    return np.concatenate([ids for ids, _ in found]), np.concatenate([cosines for _, cosines in found])


def by_block(work: Callable[[SmallInts], Any], rows: SmallInts, threads: int) -> Iterator[Any]:
    """The work done on some rows at a time, in order, in threads of ours."""
    parts = np.array_split(rows, max(1, -(-len(rows) // _QUERIES)))
    with one_thread_each():
        yield from in_threads(threads)(partial(alone, work), parts)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Hold BLAS to one thread a call: the threads are ours, and the sums do not depend on their number."""
    with threadpool_limits(1, user_api="blas"):
        yield


def alone(work: Callable[[T], R], some: T) -> R:
    """The work on something, with faiss held to this one thread."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return work(some)
    finally:
        faiss.omp_set_num_threads(before)


@dataclass(frozen=True)
class Lists:
    """Candidates in lists around centroids (an inverted file: Sivic and Zisserman 2003), for vocabularies of millions.

    What a query is compared with is approximate; the cosines and their order are exact.
    """

    index: Any  # faiss.IndexIVFFlat over the candidates' places
    candidates: SmallInts

    def __len__(self) -> int:
        return int(self.index.nlist)


def build_lists(space: Space, candidates: SmallInts, *, n_lists: int, seed: int) -> Lists:
    """Spherical k-means on the candidates, then each candidate in the list of its nearest centroid."""
    import faiss

    def build(rows: SmallInts) -> Lists:
        units = space.unit(rows)
        near = faiss.IndexFlatIP(units.shape[1])
        near.add(_means(units, n_lists, seed))
        index = faiss.IndexIVFFlat(near, units.shape[1], n_lists, faiss.METRIC_INNER_PRODUCT)
        index.train(units)
        index.add(units)
        return Lists(index, rows)

    with one_thread_each():
        return alone(build, candidates)  # so that the centroids do not depend on the machine's load


def _means(units: Floats, n: int, seed: int) -> Floats:
    """Centroids of spherical k-means, shape (n, dim)."""
    import faiss

    limits = {"max_points_per_centroid": _TRAINED_ON, "min_points_per_centroid": 1}
    means = faiss.Kmeans(units.shape[1], n, niter=_ROUNDS, spherical=True, seed=seed % 2**31, **limits)
    means.train(units)
    return np.asarray(means.centroids, dtype=np.float32)


def topics(units: Floats, fitted: Mask, n: int, seed: int) -> Ints:
    """The nearest of n centroids of each unit vector, (n_words,): spherical k-means in one thread, of `fitted` only."""

    def places(units: Floats) -> Ints:
        found: tuple[Floats, Ints] = flat(_means(units[fitted], n, seed))(units, 1)
        return found[1][:, 0]

    with one_thread_each():
        return alone(places, units)


def approximate_search(
    space: Space, lists: Lists, queries: SmallInts, k: int, *, n_probed: int, threads: int
) -> tuple[SmallInts, Floats]:
    """The k best candidates of each query among those in its `n_probed` nearest lists.

    A query whose lists hold fewer than k candidates is searched exactly. Same returns as `exact_search`.
    """
    import faiss

    probing = faiss.SearchParametersIVF(nprobe=n_probed)

    def find(units: Floats, width: int) -> tuple[Floats, Ints]:
        found: tuple[Floats, Ints] = lists.index.search(units, width, params=probing)
        return found

    ids, cosines = _search(space, queries, lists.candidates, k, find, threads)
    short = np.flatnonzero(ids[:, -1] < 0)
    if short.size:
        ids[short], cosines[short] = exact_search(space, queries[short], lists.candidates, k, threads=threads)
    return ids, cosines
