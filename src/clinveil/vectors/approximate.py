"""Approximate nearest words for vocabularies of millions: candidates in lists around centroids, few lists a query.

An inverted-file index (Sivic and Zisserman 2003) searched list by list instead of query by query, so that the work
stays a matrix product. What a query is compared with is approximate; the cosines and their order are exact, and the
same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from clinveil.vectors.exact import by_block, exact_search, one_thread_each
from clinveil.vectors.nearest import Best, Floats, Rows, Space

_QUERIES = 16_384
_ROWS = 4_096
_TRAINED_ON = 100  # candidates a list that the centroids are fitted to
_ROUNDS = 10


@dataclass(frozen=True)
class Lists:
    """Candidates by their nearest centroid.

    Attributes:
        centroids: (n_lists, dim) float32, of length 1.
        candidates: (n_candidates,) int32 rows, list after list.
        starts: (n_lists + 1,) int64, where each list begins.
        units: (n_candidates, dim) float32, the candidates at length 1 in the same order.
    """

    centroids: Floats
    candidates: Rows
    starts: NDArray[np.int64]
    units: Floats

    def __len__(self) -> int:
        return len(self.centroids)


def build_lists(space: Space, candidates: Rows, *, n_lists: int, seed: int) -> Lists:
    """Spherical k-means on the candidates, then each candidate in the list of its nearest centroid."""
    units = space.unit(candidates)
    centroids = _fitted(units, n_lists, seed)
    home = np.concatenate([nearest[:, 0] for nearest in _nearest_lists(centroids, units, 1)])
    order = np.argsort(home, kind="stable")
    starts = np.searchsorted(home[order], np.arange(n_lists + 1))
    return Lists(centroids, candidates[order], starts, units[order])


def _fitted(units: Floats, n_lists: int, seed: int) -> Floats:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # so that the centroids do not depend on the machine's load
    try:
        means = faiss.Kmeans(
            units.shape[1],
            n_lists,
            niter=_ROUNDS,
            spherical=True,
            seed=seed % 2**31,
            max_points_per_centroid=_TRAINED_ON,
            min_points_per_centroid=1,
        )
        means.train(units)
    finally:
        faiss.omp_set_num_threads(before)
    return np.asarray(means.centroids, dtype=np.float32)


def _nearest_lists(centroids: Floats, units: Floats, n_probed: int) -> Iterator[Rows]:
    """The lists of the nearest centroids, nearest first, shape (n, n_probed), for some thousand vectors at a time."""
    with one_thread_each():
        for start in range(0, len(units), _ROWS):
            yield _probes(centroids, units[start : start + _ROWS], n_probed)


def _probes(centroids: Floats, units: Floats, n_probed: int) -> Rows:
    scores = units @ centroids.T
    if n_probed == 1:
        return np.asarray(scores.argmax(axis=1)[:, None], dtype=np.int32)
    kept = np.argpartition(-scores, min(n_probed, len(centroids)) - 1, axis=1)[:, :n_probed]
    return kept.astype(np.int32)


def approximate_search(
    space: Space, lists: Lists, queries: Rows, k: int, *, n_probed: int, threads: int
) -> tuple[Rows, Floats]:
    """The k best candidates of each query among those in its `n_probed` nearest lists.

    A query whose lists hold fewer than k candidates is searched exactly. Same returns as `exact_search`.
    """
    order = np.argsort(_homes(space, lists, queries), kind="stable")  # queries of one region share their lists
    parts = np.array_split(queries[order], max(1, -(-len(queries) // _QUERIES)))
    ids, cosines = np.empty((len(queries), k), np.int32), np.empty((len(queries), k), np.float32)
    ids[order], cosines[order] = by_block(partial(_block, space, lists, n_probed, k), parts, k, threads)
    short = np.flatnonzero(cosines[:, -1] < -1.5)
    if len(short):
        candidates = np.sort(lists.candidates)
        ids[short], cosines[short] = exact_search(space, queries[short], candidates, k, threads=threads)
    return ids, cosines


def _homes(space: Space, lists: Lists, queries: Rows) -> Rows:
    parts = (queries[start : start + _ROWS] for start in range(0, len(queries), _ROWS))
    with one_thread_each():
        return np.concatenate([_probes(lists.centroids, space.unit(part), 1)[:, 0] for part in parts])


def _block(space: Space, lists: Lists, n_probed: int, k: int, queries: Rows) -> Best:
    best = Best.none(queries, k)
    own = space.unit(queries)
    parts = [_probes(lists.centroids, own[s : s + _ROWS], n_probed) for s in range(0, len(own), _ROWS)]
    probed = np.concatenate(parts).ravel()
    order = np.argsort(probed, kind="stable")
    starts = np.searchsorted(probed[order], np.arange(len(lists) + 1))
    owners = (order // n_probed).astype(np.int32)
    for name in np.flatnonzero(np.diff(starts)):
        some = slice(lists.starts[name], lists.starts[name + 1])
        if some.start == some.stop:
            continue
        places = owners[starts[name] : starts[name + 1]]
        best.offer(space, own[places] @ lists.units[some].T, lists.candidates[some], places)
    return best
