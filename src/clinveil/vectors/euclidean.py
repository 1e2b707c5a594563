"""The nearest word to any point of the space by Euclidean distance: what noise mechanisms round to.

Scores in float32 from a matrix product only say who may be nearest; whoever passes gets an exact score (float64 sum),
so the answer does not depend on how the work was cut into blocks or threads; ties go to the lower row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.scale.local import threads as in_threads
from clinveil.vectors.exact import one_thread_each
from clinveil.vectors.nearest import Doubles, Floats, Rows

_CANDIDATES, _QUERIES = 2048, 512
_STRIDE = 64  # scores that are looked at together: most strides hold nobody near enough


@dataclass(frozen=True)
class Candidates:
    """The words that a point may be rounded to. |z - c|² is least where z·c - |c|²/2 is greatest.

    Attributes:
        rows: (m,) int32, their rows in the vectors, ascending.
        lifted: (m, dim + 1) float32, each vector c with -|c|²/2 behind it.
        halves: (m,) float64, |c|²/2.
        longest: the length of the longest.
    """

    rows: Rows
    lifted: Floats
    halves: Doubles
    longest: float

    @classmethod
    def of(cls, matrix: Floats, eligible: NDArray[np.bool_]) -> Candidates:
        """The candidates of a matrix (n_words, dim) by a mask (n_words,). Raises InputError where there are none."""
        rows = np.flatnonzero(eligible).astype(np.int32)
        if not rows.size:
            raise InputError("no word may come out", remedy="give more notes, or a smaller --min-patients")
        some = np.asarray(matrix[rows], dtype=np.float32)
        halves = np.einsum("ij,ij->i", some, some, dtype=np.float64) / 2
        lifted = np.concatenate([some, -halves[:, None].astype(np.float32)], axis=1)
        return cls(rows, lifted, halves, float(np.sqrt(2 * halves.max())))

    def slack(self, points: Floats) -> Doubles:
        """More than two float32 scores of each point can be wrong by together, shape (n,)."""
        lengths = np.sqrt(np.einsum("ij,ij->i", points, points, dtype=np.float64))
        most = lengths * self.longest + self.longest**2
        return np.asarray(2.0 * (self.lifted.shape[1] + 8) * float(np.finfo(np.float32).eps) * most)

    def nearest(self, points: Floats, own: Rows | None = None) -> tuple[Rows, Doubles]:
        """The nearest candidate of each point.

        Args:
            points: (n, dim) float32.
            own: (n,) a row that is not to be the answer of each point; -1 or None where any may be.

        Returns:
            Rows of the vectors, (n,) int32, -1 where there is none, and scores z·c - |c|²/2, (n,) float64.
        """
        best, scores = np.full(len(points), -1, np.int32), np.full(len(points), -np.inf)
        avoid = np.full(len(points), -1, np.int32) if own is None else own
        lifted = np.concatenate([points, np.ones((len(points), 1), np.float32)], axis=1)
        slack = self.slack(points)
        for start in range(0, len(self.rows), _CANDIDATES):
            some = slice(start, start + _CANDIDATES)
            block = lifted @ self.lifted[some].T
            _offer(block, points, self.lifted[some], self.halves[some], self.rows[some], avoid, slack, best, scores)
        return best, scores


@njit(nogil=True)
def _any_over(scores: Floats, start: int, floor: np.float32) -> bool:
    over = np.int32(0)
    for step in range(_STRIDE):
        over += np.int32(scores[np.uint64(start + step)] >= floor)
    return bool(over > 0)


@njit(nogil=True)
def _exact(point: Floats, candidate: Floats, half: float) -> float:
    total = 0.0
    for column in range(point.size):
        total += np.float64(point[column]) * np.float64(candidate[column])
    return total - half


@njit(nogil=True)
def _offer(
    block: Floats,
    points: Floats,
    lifted: Floats,
    halves: Doubles,
    rows: Rows,
    avoid: Rows,
    slack: Doubles,
    best: Rows,
    scores: Doubles,
) -> None:
    n = block.shape[1]
    for i in range(block.shape[0]):
        line = block[i]
        floor = np.float32(scores[i] - slack[i])
        for start in range(0, n, _STRIDE):
            if start + _STRIDE <= n and not _any_over(line, start, floor):
                continue
            for j in range(start, min(start + _STRIDE, n)):
                if line[j] < floor or rows[j] == avoid[i]:
                    continue
                score = _exact(points[i], lifted[j], halves[j])
                if score > scores[i]:  # rows ascend: of equals the lower stays
                    scores[i], best[i] = score, rows[j]
                    floor = np.float32(score - slack[i])


def nearest_distances(matrix: Floats, eligible: NDArray[np.bool_], *, threads: int = 1) -> Doubles:
    """The Euclidean distance of each word to the nearest other eligible word, shape (n_words,); inf where none is."""
    candidates = Candidates.of(matrix, eligible)
    parts = np.array_split(np.arange(len(matrix), dtype=np.int32), max(1, -(-len(matrix) // _QUERIES)))
    with one_thread_each():
        found = list(in_threads(threads)(partial(_distances, matrix, candidates), parts))
    return np.concatenate(found)


def _distances(matrix: Floats, candidates: Candidates, rows: Rows) -> Doubles:
    points = np.asarray(matrix[rows], dtype=np.float32)
    best, _ = candidates.nearest(points, rows)
    apart = points.astype(np.float64) - matrix[best]
    return np.where(best < 0, np.inf, np.sqrt(np.einsum("ij,ij->i", apart, apart)))
