"""Vectorized correlations for bootstraps and permutations of word pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from clinveil.core.types import Doubles, Ints

Statistic = Literal["pearson", "spearman"]
REPETITIONS = 100  # draws of random similarities for missing pairs (paper C's code)
PERMUTATIONS = 999
_FILLS = 10  # the same for each draw of the bootstrap
_CELLS = 1 << 21  # numbers in memory in `in_blocks`


def prepared(rows: Doubles, statistic: Statistic) -> Doubles:
    """Return values or ranks of each row scaled to mean 0 and length 1, so that correlations are dot products.

    Constant rows become NaN.
    """
    rows = rows if statistic == "pearson" else ranks(rows)
    spread = np.ptp(rows, axis=1, keepdims=True)
    centred = (rows - rows.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.nan)
    return np.asarray(centred / np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None], dtype=np.float64)


def products(one: Doubles, other: Doubles) -> Doubles:
    """Return the correlation of corresponding prepared rows, (n_rows,)."""
    return np.asarray(np.clip(np.einsum("ij,ij->i", one, other), -1, 1), dtype=np.float64)


def ranks(rows: Doubles) -> Doubles:
    """Return ranks within each row, with the mean rank for ties, (n_rows, n)."""
    from scipy.stats import rankdata  # takes half a second to import

    return np.asarray(rankdata(rows, axis=1), dtype=np.float64)


def in_blocks(count: int, width: int, values: Callable[[int], Doubles]) -> Doubles:
    """Return the results of `values(n)` for blocks of `count` rows, (count,), in bounded memory."""
    most = max(1, _CELLS // max(1, width))
    return np.concatenate([values(min(most, count - start)) for start in range(0, count, most)])


@dataclass(frozen=True)
class Correlated:
    """Similarities and human scores of the same pairs.

    Attributes:
        cosines: (n_pairs,) NaN where missing. scores: (n_pairs,).
        random: replace missing similarities with uniform draws from [-1, 1) in each use; otherwise with 0.
    """

    cosines: Doubles
    scores: Doubles
    statistic: Statistic
    random: bool = False

    def value(self, rng: Generator) -> float:
        """Return the correlation (with random similarities the mean of 100); NaN if one side is constant."""
        return float(products(self._mean(rng), self._prepared_scores())[0])

    def of(self, cosines: Doubles, rng: Generator) -> Doubles:
        """Return the correlation of other similarities (n_rows, n_pairs) with the scores, (n_rows,)."""
        return products(prepared(self._filled(cosines, rng), self.statistic), self._prepared_scores())

    def permuted(self, rng: Generator) -> Doubles:
        """Return the correlations with permuted scores, (999,), with one set of random similarities."""
        mean, scores = self._mean(rng)[0], self._prepared_scores()[0]

        def shuffled(n: int) -> Doubles:
            return np.asarray(rng.permuted(np.tile(scores, (n, 1)), axis=1) @ mean, dtype=np.float64)

        return in_blocks(PERMUTATIONS, scores.size, shuffled)

    def resampled(self, rng: Generator, draws: int) -> Doubles:
        """Return the correlations over pairs drawn with replacement, without constant draws, (at most draws,).

        With random similarities each draw is the mean of ten.
        """
        size, fills = self.scores.size, _FILLS if self._gaps() else 1

        def drawn(n: int) -> Doubles:
            rows = rng.integers(size, size=(n, size))
            scores = prepared(self.scores[rows], self.statistic)
            values = [products(self._drawn(rows, rng), scores) for _ in range(fills)]
            return np.asarray(np.mean(values, axis=0), dtype=np.float64)

        values = in_blocks(draws, size, drawn)
        return values[~np.isnan(values)]

    def _drawn(self, rows: Ints, rng: Generator) -> Doubles:
        """Return prepared similarities of drawn pairs; a missing pair that is drawn twice has one similarity."""
        filled = self._filled(np.tile(self.cosines, (len(rows), 1)), rng)
        return prepared(np.take_along_axis(filled, rows, axis=1), self.statistic)

    def _gaps(self) -> bool:
        return self.random and bool(np.isnan(self.cosines).any())

    def _mean(self, rng: Generator) -> Doubles:
        """Return prepared similarities averaged over random draws, (1, n_pairs), which averages the correlations."""
        fills = REPETITIONS if self._gaps() else 1
        rows = prepared(self._filled(np.tile(self.cosines, (fills, 1)), rng), self.statistic)
        return np.asarray(rows.mean(axis=0, keepdims=True), dtype=np.float64)

    def _prepared_scores(self) -> Doubles:
        return prepared(self.scores[None], self.statistic)

    def _filled(self, cosines: Doubles, rng: Generator) -> Doubles:
        gaps = np.isnan(cosines)
        filled = cosines.copy()
        filled[gaps] = rng.uniform(-1, 1, int(gaps.sum())) if self.random else 0.0
        return filled
