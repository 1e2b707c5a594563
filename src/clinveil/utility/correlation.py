"""Correlations of many rows at once: what bootstraps and permutations of word pairs are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import Generator

from clinveil.core.types import Doubles, Ints

Statistic = Literal["pearson", "spearman"]
REPETITIONS = 100  # of the random similarities of missing pairs (paper C's code)
PERMUTATIONS = 999
_FILLS = 10  # of each draw of the bootstrap, where similarities are random
_CELLS = 1 << 21  # numbers held at a time by `in_blocks`


def prepared(rows: Doubles, statistic: Statistic) -> Doubles:
    """(n_rows, n) values or ranks with mean 0 and length 1: the correlation of two such rows is their product.

    NaN in rows that do not vary, however a float's mean is rounded.
    """
    rows = rows if statistic == "pearson" else ranks(rows)
    spread = np.ptp(rows, axis=1, keepdims=True)
    centred = (rows - rows.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.nan)
    return np.asarray(centred / np.sqrt(np.einsum("ij,ij->i", centred, centred))[:, None], dtype=np.float64)


def products(one: Doubles, other: Doubles) -> Doubles:
    """(n_rows,) the correlation of each row with its fellow, both prepared."""
    return np.asarray(np.clip(np.einsum("ij,ij->i", one, other), -1, 1), dtype=np.float64)


def ranks(rows: Doubles) -> Doubles:
    """(n_rows, n) ranks within each row, ties at their mean."""
    from scipy.stats import rankdata  # heavy: half a second at import

    return np.asarray(rankdata(rows, axis=1), dtype=np.float64)


def in_blocks(count: int, width: int, values: Callable[[int], Doubles]) -> Doubles:
    """(count,) what `values(rows)` gives for blocks of rows: memory does not grow with `count` times `width`."""
    most = max(1, _CELLS // max(1, width))
    return np.concatenate([values(min(most, count - start)) for start in range(0, count, most)])


@dataclass(frozen=True)
class Correlated:
    """Similarities and people's scores of the same pairs.

    Attributes:
        cosines: (n_pairs,) NaN where missing. scores: (n_pairs,).
        random: whether what is missing is drawn anew each time, uniformly from [-1, 1); otherwise it is 0.
    """

    cosines: Doubles
    scores: Doubles
    statistic: Statistic
    random: bool = False

    def value(self, rng: Generator) -> float:
        """The correlation, where similarities are random the mean of 100; NaN where one side does not vary."""
        return float(products(self._mean(rng), self._people())[0])

    def of(self, cosines: Doubles, rng: Generator) -> Doubles:
        """(n_rows,) the correlation of other similarities (n_rows, n_pairs) with the scores, filled once."""
        return products(prepared(self._filled(cosines, rng), self.statistic), self._people())

    def permuted(self, rng: Generator) -> Doubles:
        """(999,) the correlation with the scores in another order; one set of fillings serves all."""
        mean, people = self._mean(rng)[0], self._people()[0]

        def shuffled(n: int) -> Doubles:
            return np.asarray(rng.permuted(np.tile(people, (n, 1)), axis=1) @ mean, dtype=np.float64)

        return in_blocks(PERMUTATIONS, people.size, shuffled)

    def resampled(self, rng: Generator, draws: int) -> Doubles:
        """(at most draws,) the correlation over pairs drawn with replacement, but for draws that do not vary.

        Where similarities are random each draw is the mean of ten fillings.
        """
        size, fills = self.scores.size, _FILLS if self._gaps() else 1

        def drawn(n: int) -> Doubles:
            rows = rng.integers(size, size=(n, size))
            people = prepared(self.scores[rows], self.statistic)
            values = [products(self._drawn(rows, rng), people) for _ in range(fills)]
            return np.asarray(np.mean(values, axis=0), dtype=np.float64)

        values = in_blocks(draws, size, drawn)
        return values[~np.isnan(values)]

    def _drawn(self, rows: Ints, rng: Generator) -> Doubles:
        """Prepared similarities of drawn pairs: a missing pair drawn twice has one similarity."""
        filled = self._filled(np.tile(self.cosines, (len(rows), 1)), rng)
        return prepared(np.take_along_axis(filled, rows, axis=1), self.statistic)

    def _gaps(self) -> bool:
        return self.random and bool(np.isnan(self.cosines).any())

    def _mean(self, rng: Generator) -> Doubles:
        """(1, n_pairs) prepared similarities, averaged over fillings: linear, so their correlations are averaged."""
        fills = REPETITIONS if self._gaps() else 1
        rows = prepared(self._filled(np.tile(self.cosines, (fills, 1)), rng), self.statistic)
        return np.asarray(rows.mean(axis=0, keepdims=True), dtype=np.float64)

    def _people(self) -> Doubles:
        return prepared(self.scores[None], self.statistic)

    def _filled(self, cosines: Doubles, rng: Generator) -> Doubles:
        gaps = np.isnan(cosines)
        filled = cosines.copy()
        filled[gaps] = rng.uniform(-1, 1, int(gaps.sum())) if self.random else 0.0
        return filled
