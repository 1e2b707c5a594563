"""Exact nearest words: every query against every candidate, in blocks of a matrix product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from clinveil.scale.local import threads as in_threads
from clinveil.vectors.nearest import Best, Floats, Rows, Space

_QUERIES, _CANDIDATES = 512, 2048

Block = Callable[[Rows], Best]


def exact_search(space: Space, queries: Rows, candidates: Rows, k: int, *, threads: int) -> tuple[Rows, Floats]:
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
    block = partial(_block, space, candidates, space.unit(candidates), k)
    return by_block(block, np.array_split(queries, max(1, -(-len(queries) // _QUERIES))), k, threads)


def by_block(block: Block, parts: list[Rows], k: int, threads: int) -> tuple[Rows, Floats]:
    """Search each part of the queries in a thread, with the matrix library itself held to one."""
    n = sum(len(part) for part in parts)
    ids, cosines = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    done = 0
    with one_thread_each():
        for best in in_threads(threads)(block, parts):
            place = slice(done, done + len(best.queries))
            ids[place], cosines[place] = best.ids, best.cosines
            done = place.stop
    return ids, cosines


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Hold BLAS to one thread a call: the threads are ours, and the sums do not depend on their number."""
    with threadpool_limits(1, user_api="blas"):
        yield


def _block(space: Space, candidates: Rows, units: Floats, k: int, queries: Rows) -> Best:
    best = Best.none(queries, k)
    places = np.arange(len(queries), dtype=np.int32)
    own = space.unit(queries)
    scores: NDArray[np.float32] = np.empty((len(queries), _CANDIDATES), np.float32)
    for start in range(0, len(candidates), _CANDIDATES):
        some = slice(start, min(start + _CANDIDATES, len(candidates)))
        width = some.stop - some.start
        block = scores[:, :width] if width == _CANDIDATES else np.empty((len(queries), width), np.float32)
        np.dot(own, units[some].T, out=block)
        best.offer(space, block, candidates[some], places)
    return best
