"""Exact inference of an attacker with the channel from one output, without context, for one prior."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.core.types import Doubles, Ints, Mask


@dataclass(frozen=True, eq=False)
class Posterior:
    """Joint distribution of inputs and outputs.

    Attributes:
        matrix: (n_words + 1, n_words), the channel. prior: (n_words + 1,), gain of a correct guess of each row: its
            tokens or its share.
    """

    matrix: csr_matrix = field(repr=False)
    prior: Doubles = field(repr=False)

    @cached_property
    def joint(self) -> csc_matrix:
        """prior(x) C(y|x), (n_words + 1, n_words), without stored zeros, sorted rows in each column."""
        matrix: csc_matrix = csc_matrix(diags_array(self.prior) @ self.matrix)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    @cached_property
    def candidates(self) -> Ints:
        """Number of rows with a positive prior that can produce each output, (n_words,)."""
        return np.asarray(np.diff(self.joint.indptr), dtype=np.int64)

    @cached_property
    def best(self) -> tuple[Ints, Doubles]:
        """Best guess at each output and its gain: argmax and max over x of prior(x) C(y|x).

        Both (n_words,); -1 and 0 for impossible outputs. Ties go to the first row (the more frequent word in a
        vocabulary sorted by frequency).
        """
        joint = self.joint
        columns = np.repeat(np.arange(joint.shape[1]), self.candidates)
        won = np.zeros(joint.shape[1])
        np.maximum.at(won, columns, joint.data)
        places = np.flatnonzero(joint.data == won[columns])
        reached, first = np.unique(columns[places], return_index=True)
        rows = np.full(joint.shape[1], -1, dtype=np.int64)
        rows[reached] = joint.indices[places[first]]
        return rows, won

    @property
    def vulnerability(self) -> float:
        """Expected gain of the best guess, sum over y of max over x of prior(x) C(y|x) (Smith 2009, FoSSaCS)."""
        return float(self.best[1].sum())

    @property
    def prior_vulnerability(self) -> float:
        """Gain of always guessing the likeliest row, in the units of the prior."""
        return float(self.prior.max())

    @cached_property
    def read(self) -> Doubles:
        """P(a token of this row is guessed correctly), (n_words + 1,): mass of outputs where this row is the guess.

        Scores a guesser with another prior: the sum of the true tokens per row times this.
        """
        rows, won = self.best
        named = rows[rows >= 0]
        chance = won[rows >= 0] / self.prior[named]
        return np.asarray(np.bincount(named, chance, self.prior.size), dtype=np.float64)

    def single(self, types: int = 1) -> Mask:
        """Return a mask of outputs with a single candidate, (n_words,); the last row counts as `types` words."""
        candidates = self.candidates
        if types > 1:
            candidates = candidates.copy()
            candidates[self.matrix[-1].indices] += types - 1
        return np.asarray(candidates == 1, dtype=np.bool_)
