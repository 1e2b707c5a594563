"""Nearest words of any point by Euclidean distance, for the noise mechanisms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts
from clinveil.vectors.search import best, by_block, dots, flat


@dataclass(frozen=True)
class Candidates:
    """Words that may be an answer. |z - c|² is smallest where z·c - |c|²/2 is largest.

    Attributes:
        rows: (m,) int32, rows in the vectors, ascending.
        lifted: (m, dim + 1) float32, each vector c followed by -|c|²/2.
        halves: (m,) float64, |c|²/2.
        longest: the largest |c|.
    """

    rows: SmallInts
    lifted: Floats
    halves: Doubles
    longest: float

    @classmethod
    def of(cls, matrix: Floats, eligible: Mask) -> Candidates:
        """Return the rows of a matrix (n_words, dim) in a mask (n_words,). Raises InputError if there are none."""
        rows = np.flatnonzero(eligible).astype(np.int32)
        if not rows.size:
            raise InputError("no word may be an output", hint="pass more notes or a smaller --min-patients")
        some = np.asarray(matrix[rows], dtype=np.float32)
        halves = np.einsum("ij,ij->i", some, some, dtype=np.float64) / 2
        lifted = np.concatenate([some, -halves[:, None].astype(np.float32)], axis=1)
        return cls(rows, lifted, halves, float(np.sqrt(2 * halves.max())))

    def slack(self, points: Floats) -> Doubles:
        """Return an upper bound of the summed error of two float32 scores of each point, shape (n,)."""
        lengths = np.sqrt(np.einsum("ij,ij->i", points, points, dtype=np.float64))
        most = lengths * self.longest + self.longest**2
        return np.asarray(2.0 * (self.lifted.shape[1] + 8) * float(np.finfo(np.float32).eps) * most)

    def nearest(self, points: Floats, own: SmallInts | None = None) -> tuple[SmallInts, Doubles]:
        """Return the nearest candidate of each point: rows and scores (n,); see `several`."""
        rows, scores = self.several(points, 1, own)
        return rows[:, 0], scores[:, 0]

    def several(self, points: Floats, k: int, own: SmallInts | None = None) -> tuple[SmallInts, Doubles]:
        """Return the k nearest candidates of each point, nearest first, ties by the lower row.

        Args:
            points: (n, dim) float32.
            own: (n,) a row to exclude for each point; -1 or None excludes none.

        Returns:
            Rows of the vectors, (n, k) int32, -1 where there is none, and scores z·c - |c|²/2, (n, k) float64.
        """
        avoid = np.full(len(points), -1, np.int32) if own is None else own

        def exact(at: Ints, near: Ints) -> Doubles:
            scores = dots(points[at], self.lifted[near, :-1]) - self.halves[near]
            return np.where(self.rows[near] == avoid[at, None], -np.inf, scores)

        lifted = np.concatenate([points, np.ones((len(points), 1), np.float32)], axis=1)
        numbers, scores = best(lifted, len(self.rows), k, flat(self.lifted), exact, self.slack(points))
        return np.where(numbers < 0, -1, self.rows[numbers]).astype(np.int32), scores


def nearest_rows(matrix: Floats, eligible: Mask, rows: SmallInts, k: int, *, threads: int = 1) -> SmallInts:
    """The k nearest eligible words of some rows (n,) by Euclidean distance, never itself, (n, k); -1 where none is."""
    candidates = Candidates.of(matrix, eligible)

    def nearest(some: SmallInts) -> SmallInts:
        return candidates.several(np.asarray(matrix[some], dtype=np.float32), k, some)[0]

    return np.concatenate(list(by_block(nearest, rows, threads)))


def nearest_distances(matrix: Floats, eligible: Mask, *, threads: int = 1) -> Doubles:
    """Return the distance of each word to the nearest other eligible word, shape (n_words,); inf if there is none."""
    candidates = Candidates.of(matrix, eligible)

    def distances(rows: SmallInts) -> Doubles:
        points = np.asarray(matrix[rows], dtype=np.float32)
        nearest, _ = candidates.nearest(points, rows)
        apart = points.astype(np.float64) - matrix[nearest]
        return np.where(nearest < 0, np.inf, np.sqrt(np.einsum("ij,ij->i", apart, apart)))

    return np.concatenate(list(by_block(distances, np.arange(len(matrix), dtype=np.int32), threads)))
