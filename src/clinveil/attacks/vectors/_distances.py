"""Distances of word vectors, exact and free of the order of the work, and quick screens that miss no near pair.

A distance is summed in float64 and rounded to float32, so equal vectors tie. Cosine distance is 1 - similarity, the
similarity rounded first; a zero vector has similarity 0 with all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

Metric = Literal["cosine", "cityblock", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "cityblock", "euclidean")
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Rows = NDArray[np.int32]

_EPS = float(np.finfo(np.float32).eps)
_STRIDE = 64  # scores looked at together: most strides hold no near pair
_CHUNK = 16  # columns summed before a tile of pairs may be given up


def slack(dim: int) -> float:
    """More than a float32 sum of `dim` products is off by, relative to the sum of their absolute values."""
    return 4.0 * (dim + 8) * _EPS


@njit(nogil=True)
def exact(matrix: Floats, scale: Doubles, metric: int, first: Rows, second: Rows) -> Floats:
    """The distances of pairs of rows, shape (n,) float32; `metric` is its place in `METRICS`."""
    out = np.empty(len(first), np.float32)
    for at in range(len(first)):
        i, j = first[at], second[at]
        total = 0.0
        for column in range(matrix.shape[1]):
            one, two = np.float64(matrix[i, column]), np.float64(matrix[j, column])
            if metric == 0:
                total += one * two
            elif metric == 1:
                total += abs(one - two)
            else:
                total += (one - two) * (one - two)
        if metric == 0:
            total = total * (scale[i] * scale[j])
            out[at] = np.float32(1.0) - np.float32(total)
        else:
            out[at] = np.float32(total if metric == 1 else np.sqrt(total))
    return out


def inverse_lengths(matrix: Floats) -> Doubles:
    """One over the length of each vector, shape (n,); 0 for a zero vector."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
    return np.divide(1.0, lengths, out=np.zeros(len(matrix)), where=lengths > 0)


class Screen(Protocol):
    """Says quickly which pairs may be near."""

    def __call__(self, rows: range, columns: range, limit: float, scratch: Scratch) -> tuple[Rows, Rows]:
        """All pairs (i in rows, j in columns, i < j) within `limit`, and some that are not; may be views of scratch."""
        ...


@dataclass(frozen=True)
class Scratch:
    """Room for one block of work in one thread: scores (rows, columns), and pairs found (rows * columns,)."""

    scores: Floats
    first: Rows
    second: Rows

    @classmethod
    def of(cls, rows: int, columns: int) -> Scratch:
        """Room for blocks of this size."""
        n = rows * columns
        return cls(np.empty((rows, columns), np.float32), np.empty(n, np.int32), np.empty(n, np.int32))


def screen(matrix: Floats, metric: Metric) -> Screen:
    """The screen of a metric."""
    if metric == "cityblock":
        return _Sums.of(matrix)
    return _cosine_screen(matrix) if metric == "cosine" else _euclidean_screen(matrix)


@dataclass(frozen=True)
class _Sums:
    """Cityblock: float32 sums, given up where they pass the limit.

    Attributes:
        matrix: (n, dim).
        tiles: (n_tiles, dim, 64), the same vectors in tiles of 64, so that a tile's sums are vector instructions.
    """

    matrix: Floats
    tiles: Floats

    @classmethod
    def of(cls, matrix: Floats) -> _Sums:
        """Tiles of a matrix; columns that vary most come first, so that far pairs are given up early."""
        order = np.argsort(-matrix.var(axis=0, dtype=np.float64), kind="stable")
        ordered = np.ascontiguousarray(matrix[:, order])
        padded = np.zeros((-(-len(matrix) // _STRIDE) * _STRIDE, matrix.shape[1]), np.float32)
        padded[: len(matrix)] = ordered
        tiles = padded.reshape(-1, _STRIDE, matrix.shape[1]).transpose(0, 2, 1)
        return cls(ordered, np.ascontiguousarray(tiles))

    def __call__(self, rows: range, columns: range, limit: float, scratch: Scratch) -> tuple[Rows, Rows]:
        bar = np.float32(limit * (1.0 + slack(self.matrix.shape[1])))
        edges = (rows.start, rows.stop), (columns.start, columns.stop)
        n = _near_sums(self.matrix, self.tiles, *edges, bar, scratch.first, scratch.second)
        return scratch.first[:n], scratch.second[:n]


@dataclass(frozen=True)
class _Products:
    """Cosine and euclidean: a pair is near where left . right is at least base of the row less what the limit allows.

    Attributes:
        left, right: (n, d) float32.
        base: (n,) float64, the bar of each row at limit 0.
        square: whether the limit lowers the bar by half its square (euclidean), or by itself.
    """

    left: Floats
    right: Floats
    base: Doubles
    square: bool

    def __call__(self, rows: range, columns: range, limit: float, scratch: Scratch) -> tuple[Rows, Rows]:
        scores = scratch.scores.ravel()[: len(rows) * len(columns)].reshape(len(rows), len(columns))
        np.dot(self.left[rows.start : rows.stop], self.right[columns.start : columns.stop].T, out=scores)
        drop = limit * limit * 0.5 * (1.0 + slack(self.left.shape[1])) if self.square else limit
        bars = np.asarray(self.base[rows.start : rows.stop] - drop, dtype=np.float64)
        bars = np.nextafter(bars.astype(np.float32), np.float32(-np.inf))
        n = _near_scores(scores, bars, rows.start, columns.start, scratch.first, scratch.second)
        return scratch.first[:n], scratch.second[:n]


def _cosine_screen(matrix: Floats) -> Screen:
    unit = np.asarray(matrix * inverse_lengths(matrix)[:, None], dtype=np.float32)
    return _Products(unit, unit, np.full(len(matrix), 1.0 - slack(matrix.shape[1])), square=False)


def _euclidean_screen(matrix: Floats) -> Screen:
    """|a - b|^2 / 2 = |a|^2 / 2 + |b|^2 / 2 - a.b, about the mean so that little cancels; its error goes to the bar."""
    centred = np.asarray(matrix - matrix.mean(axis=0, dtype=np.float64), dtype=np.float32)
    half = 0.5 * np.einsum("ij,ij->i", centred, centred, dtype=np.float64) * (1.0 - 2.0 * slack(matrix.shape[1]))
    ones = np.ones((len(matrix), 1), np.float32)
    left, right = np.hstack([centred, ones]), np.hstack([centred, -half[:, None].astype(np.float32)])
    return _Products(left, right, half, square=True)


@njit(nogil=True)
def _any_near(line: Floats, start: int, bar: np.float32) -> bool:
    near = np.int32(0)
    for step in range(_STRIDE):
        near += np.int32(line[np.uint64(start + step)] >= bar)
    return bool(near > 0)


@njit(nogil=True)
def _near_scores(scores: Floats, bars: Floats, row: int, column: int, first: Rows, second: Rows) -> int:
    n, width = 0, scores.shape[1]
    for i in range(scores.shape[0]):
        line, bar = scores[i], bars[i]
        for start in range(max(0, row + i + 1 - column), width, _STRIDE):
            if start + _STRIDE <= width and not _any_near(line, start, bar):
                continue
            for j in range(start, min(start + _STRIDE, width)):
                if line[j] >= bar:
                    first[n], second[n] = row + i, column + j
                    n += 1
    return n


@njit(nogil=True)
def _add(total: Floats, one: Floats, tile: Floats, start: int, end: int) -> np.float32:
    """Add the columns start..end of a row's distances to the vectors of a tile; the least sum so far."""
    for column in range(start, end):
        value = one[column]
        for place in range(_STRIDE):
            total[place] += abs(value - tile[column, place])
    least = total[0]
    for place in range(_STRIDE):
        least = min(least, total[place])
    return least


@njit(nogil=True)
def _near_sums(
    matrix: Floats,
    tiles: Floats,
    rows: tuple[int, int],
    columns: tuple[int, int],
    bar: np.float32,
    first: Rows,
    second: Rows,
) -> int:
    n, dim = 0, matrix.shape[1]
    total = np.empty(_STRIDE, np.float32)
    for i in range(rows[0], rows[1]):
        for tile in range(max(columns[0], i + 1) // _STRIDE, (columns[1] + _STRIDE - 1) // _STRIDE):
            total[:] = 0.0
            least, at = np.float32(0.0), 0
            while at < dim and least <= bar:
                least = _add(total, matrix[i], tiles[tile], at, min(at + _CHUNK, dim))
                at += _CHUNK
            if least > bar:
                continue
            start = tile * _STRIDE
            for j in range(max(start, columns[0], i + 1), min(start + _STRIDE, columns[1])):
                if total[j - start] <= bar:
                    first[n], second[n] = i, j
                    n += 1
    return n


__all__ = ["METRICS", "Metric", "Scratch", "Screen", "exact", "inverse_lengths", "screen", "slack"]
