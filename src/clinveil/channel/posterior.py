"""What an attacker who holds a channel infers from one output: exact, without context, computed once a prior."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.core.types import Doubles, Ints, Mask


@dataclass(frozen=True, eq=False)
class Posterior:
    """The joint distribution of input rows and outputs, read from the output's side.

    Attributes:
        matrix: (n_words + 1, n_words) the channel. prior: (n_words + 1,) what a right guess of each row wins: its
            tokens, or its share.
    """

    matrix: csr_matrix = field(repr=False)
    prior: Doubles = field(repr=False)

    @cached_property
    def joint(self) -> csc_matrix:
        """prior(x) C(y|x), (n_words + 1, n_words): no zeros, the rows of each column in order."""
        matrix: csc_matrix = csc_matrix(diags_array(self.prior) @ self.matrix)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    @cached_property
    def candidates(self) -> Ints:
        """(n_words,) rows with a prior above 0 that each output can come from."""
        return np.asarray(np.diff(self.joint.indptr), dtype=np.int64)

    @cached_property
    def best(self) -> tuple[Ints, Doubles]:
        """The row that is named at each output, and what it wins: argmax and max over x of prior(x) C(y|x).

        Both (n_words,); -1 and 0 where nothing comes out. Ties go to the first row, which is the more frequent word
        where the vocabulary is sorted so.
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
        """What the best guesser wins in all, sum over y of max over x of prior(x) C(y|x) (Smith 2009, FoSSaCS)."""
        return float(self.best[1].sum())

    @property
    def prior_vulnerability(self) -> float:
        """What is won by always naming the likeliest row, without looking; in the units of the prior."""
        return float(self.prior.max())

    @property
    def leakage(self) -> float:
        """Min-entropy leakage in bits, log2 of vulnerability over prior vulnerability (Smith 2009, FoSSaCS)."""
        return max(0.0, float(np.log2(self.vulnerability / self.prior_vulnerability)))

    @cached_property
    def read(self) -> Doubles:
        """(n_words + 1,) P(a token of this row is read right): what its outputs at which it is named carry.

        By it a guesser with a prior of his own is scored: the true tokens of each row, times this, summed.
        """
        rows, won = self.best
        named = rows[rows >= 0]
        chance = won[rows >= 0] / self.prior[named]
        return np.asarray(np.bincount(named, chance, self.prior.size), dtype=np.float64)

    def single(self, types: int = 1) -> Mask:
        """(n_words,) outputs that one word alone can have; the last row stands for `types` different words."""
        candidates = self.candidates
        if types > 1:
            candidates = candidates.copy()
            candidates[self.matrix[-1].indices] += types - 1
        return np.asarray(candidates == 1, dtype=np.bool_)


def entropy(weights: NDArray[Any]) -> float:
    """Shannon entropy in bits of weights that need not sum to 1 (Shannon 1948)."""
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())
