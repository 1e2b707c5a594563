"""Search nearest words: products in float32 select candidates, and float64 scores decide.

Results do not depend on block sizes or threads: every candidate that may be among the best within
the error of float32 gets an exact score, and ties go to the lower row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from clinveil.core import Doubles, Floats, Ints, SmallInts
from clinveil.scale import threads as in_threads

_PRODUCTS = 1 << 24  # in memory, per thread
_GROUPS = 32  # of targets, per neighbour


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
        """Return exact cosines of rows (n,) with others (n,), rounded to float32; -inf of a row
        with itself.
        """
        products = dots(self.matrix[queries], self.matrix[others]) * (
            self.scale[queries] * self.scale[others]
        )
        return np.where(others == queries, -np.inf, products + 0.0).astype(np.float32)

    @property
    def slack(self) -> float:
        """An upper bound of the error of a float32 cosine of unit vectors."""
        return 2.0 * (self.matrix.shape[1] + 8) * float(np.finfo(np.float32).eps)


def dots(vectors: Floats, others: Floats) -> Doubles:
    """Return dot products of vectors (n, d) with others (n, d), summed in float64 in a fixed
    order.
    """
    return np.asarray((vectors.astype(np.float64) * others).sum(axis=1))


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
    dim = space.matrix.shape[1]

    def block(rows: SmallInts) -> tuple[SmallInts, Floats]:
        of_query, of_target = _possible(space.unit(rows), targets, k, space.slack)
        near = candidates[of_target]
        pieces = np.array_split(np.arange(near.size), 1 + near.size * dim // _PRODUCTS)
        cosines = np.concatenate(
            [space.cosines(rows[of_query[piece]], near[piece]) for piece in pieces]
        )
        order = np.lexsort((near, -cosines, of_query))
        # The first k of each query; the query itself is the last of its targets.
        begins = np.searchsorted(of_query, np.arange(len(rows)))
        chosen = order[begins[:, None] + np.arange(k)]
        return near[chosen], cosines[chosen]

    blocks = list(by_block(block, queries, len(candidates), threads))
    return np.concatenate([ids for ids, _ in blocks]), np.concatenate(
        [cosines for _, cosines in blocks]
    )


def _possible(queries: Floats, targets: Floats, k: int, slack: float) -> tuple[Ints, Ints]:
    """Return the pairs of query and target, (n_pairs,) each, by query, that may be among the k best
    of the query apart from one target.

    Args:
        queries: (n, d). targets: (m, d), more than k. slack: largest error of their products.
    """
    products = queries @ targets.T
    # The targets are divided into groups: k + 1 of them have at least the product of the k + 1
    # greatest groups. A target that is worse by more than twice the error is worse than all these.
    n_groups = min(len(targets), _GROUPS * (k + 1))
    size = len(targets) // n_groups
    grouped = products[:, : size * n_groups].reshape(len(queries), size, n_groups)
    greatest = grouped.max(axis=1)
    least = np.partition(greatest, -min(k + 1, n_groups), axis=1)[:, -min(k + 1, n_groups)]
    query, target = np.nonzero(products >= (least - 2 * slack)[:, None])
    return query, target


def by_block(
    work: Callable[[SmallInts], Any], rows: SmallInts, n_targets: int, threads: int
) -> Iterator[Any]:
    """Yield the results of `work` on blocks of rows, in order, computed in clinveil's threads."""
    size = max(1, _PRODUCTS // n_targets)
    parts = np.array_split(rows, max(1, -(-len(rows) // size)))
    with one_thread_each():
        yield from in_threads(threads)(work, parts)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Limit BLAS to one thread per call, so that sums do not depend on the number of threads."""
    with threadpool_limits(1, user_api="blas"):
        yield
