"""The kernel of every neighbour search: scores come in blocks, the best k by exact cosine stay.

Scores in float32 from a matrix product only say who may be near; whoever passes gets an exact cosine (float64 sum,
rounded to float32), so a table does not depend on how the work was cut into blocks or threads, and ties are real ties,
broken by the lower row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Rows = NDArray[np.int32]

_STRIDE = 64  # scores that are looked at together: most strides hold nobody near enough


@dataclass(frozen=True)
class Space:
    """Vectors and what a search needs of them.

    Attributes:
        matrix: (n_words, dim) float32, as trained.
        scale: (n_words,) float64, one over the length of each vector; 0 for a zero vector, whose cosines are 0.
    """

    matrix: Floats
    scale: Doubles

    @classmethod
    def of(cls, matrix: Floats) -> Space:
        """The space of a matrix."""
        squares = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
        scale = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(matrix)), where=squares > 0)
        return cls(np.ascontiguousarray(matrix), scale)

    def unit(self, rows: NDArray[np.integer]) -> Floats:
        """Some vectors at length 1, shape (n_rows, dim)."""
        return np.asarray(self.matrix[rows] * self.scale[rows, None], dtype=np.float32)

    @property
    def slack(self) -> float:
        """More than a float32 cosine of unit vectors can be wrong by."""
        return 2.0 * (self.matrix.shape[1] + 8) * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Best:
    """The best so far of each query of a block: rows (n, k) int32, cosines (n, k) float32, -2 where none yet."""

    queries: Rows
    ids: Rows
    cosines: Floats

    @classmethod
    def none(cls, queries: Rows, k: int) -> Best:
        """Nobody yet."""
        shape = (len(queries), k)
        return cls(queries, np.full(shape, np.iinfo(np.int32).max, np.int32), np.full(shape, -2, np.float32))

    def offer(self, space: Space, scores: Floats, candidates: Rows, places: Rows) -> None:
        """Take in candidates (n,), whose scores (m, n) belong to the queries at `places` (m,) of this block."""
        _offer(scores, candidates, places, self.queries, self.ids, self.cosines, space.matrix, space.scale, space.slack)


@njit(nogil=True, fastmath={"reassoc", "contract"})
def _cosine(matrix: Floats, scale: Doubles, one: int, two: int) -> np.float32:
    if scale[one] == 0.0 or scale[two] == 0.0:
        return np.float32(0.0)
    total = 0.0
    for column in range(matrix.shape[1]):
        total += np.float64(matrix[one, column]) * np.float64(matrix[two, column])
    return np.float32(total * (scale[one] * scale[two]))


@njit(nogil=True)
def _insert(ids: Rows, cosines: Floats, row: int, cosine: np.float32) -> None:
    """Put a word in its place: higher cosine first, then lower row."""
    place = len(ids) - 1
    while place > 0 and (cosines[place - 1] < cosine or (cosines[place - 1] == cosine and ids[place - 1] > row)):
        ids[place] = ids[place - 1]
        cosines[place] = cosines[place - 1]
        place -= 1
    ids[place] = row
    cosines[place] = cosine


@njit(nogil=True)
def _any_near(scores: Floats, start: int, floor: np.float32) -> bool:
    """Whether a whole stride holds a score at or over the floor; compiles to vector instructions."""
    near = np.int32(0)
    for step in range(_STRIDE):
        near += np.int32(scores[np.uint64(start + step)] >= floor)
    return bool(near > 0)


@njit(nogil=True)
def _offer(
    scores: Floats,
    candidates: Rows,
    places: Rows,
    queries: Rows,
    ids: Rows,
    cosines: Floats,
    matrix: Floats,
    scale: Doubles,
    slack: float,
) -> None:
    n, last = scores.shape[1], ids.shape[1] - 1
    for i in range(scores.shape[0]):
        line, place = scores[i], places[i]
        query = queries[place]
        floor = np.float32(cosines[place, last] - slack)
        for start in range(0, n, _STRIDE):
            if start + _STRIDE <= n and not _any_near(line, start, floor):
                continue
            for j in range(start, min(start + _STRIDE, n)):
                row = candidates[j]
                if line[j] < floor or row == query:
                    continue
                cosine = _cosine(matrix, scale, query, row)
                worst = cosines[place, last]
                if cosine > worst or (cosine == worst and row < ids[place, last]):
                    _insert(ids[place], cosines[place], row, cosine)
                    floor = np.float32(cosines[place, last] - slack)
