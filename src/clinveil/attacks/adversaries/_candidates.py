"""Candidate inputs of each output: with the channel (`candidates`), or from other evidence (`table_of`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_matrix

from clinveil.attacks.adversary import AdversaryView, Recovery, from_table
from clinveil.core.types import Doubles, Ints, Mask

TINY = 1e-300
COMMON = 20  # words that are candidates of every output, through the background
MAX_CANDIDATES = 60  # maximum candidates of an output
MAX_INPUTS = 60
"""Maximum inputs of an output that sequence models weigh; a cluster channel has hundreds, most of them improbable."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The inputs of each output, sorted by row.

    Attributes:
        starts: (n_words + 1,) offsets of each output in the other arrays. rows: inputs.
        weights: P(output | input), or from `table_of` P(input | output).
    """

    starts: Ints
    rows: Ints
    weights: Doubles

    def recoveries(self, view: AdversaryView) -> list[Recovery]:
        """Return the recovery of each note, for weights P(input | output); the candidates depend on the output only."""
        return [from_table(note.outputs, self.starts, self.rows, self.weights) for note in view.notes]

    def inverse(self, prior: Doubles) -> Candidates:
        """Return the same candidates with P(y | x), up to a factor per y: P(x | y) by the prior, (n_words,)."""
        return Candidates(self.starts, self.rows, np.asarray(self.weights / prior[self.rows], dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Weighed(Candidates):
    """Candidates of which a sequence model weighs only some; the others keep their context-free probability.

    Attributes:
        posterior: P(input | output) of each entry, by Bayes' rule. weighed: whether the sequence model weighs it.
    """

    posterior: Doubles
    weighed: Mask


def candidates(view: AdversaryView, limit: int = MAX_INPUTS) -> Weighed:
    """Return the inputs of each output; a sequence model weighs at most `limit` of them, the most probable ones."""
    matrix = view.by_output
    starts, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    weights = matrix.data.astype(np.float64)
    scores, sizes = weights * view.prior[rows], np.diff(starts)
    output, weighed = np.repeat(np.arange(sizes.size), sizes), np.empty(rows.size, dtype=np.bool_)
    order = np.lexsort((rows, -scores, output))
    weighed[order] = np.arange(order.size) - starts[output[order]] < limit
    joint = np.maximum(scores, TINY)
    sums = np.add.reduceat(np.append(joint, 0.0), starts[:-1])
    return Weighed(starts, rows, weights, np.asarray(joint / np.repeat(sums, sizes)), weighed)


def frequency(notes: Sequence[Ints], n_words: int) -> Doubles:
    """Return the share of each known word in some notes, (n_words,), smoothed by 0.1 occurrences."""
    counts = np.bincount(np.concatenate([np.zeros(0, np.int64), *notes]), minlength=n_words + 1)[:n_words] + 0.1
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def table_of(
    joint: csc_matrix, background: Doubles, common: Doubles, limit: int = MAX_CANDIDATES, wide: int = COMMON
) -> Candidates:
    """Return candidates from direct evidence, joint(x, y), and from a background(y) common(x) shared by all words.

    Args:
        joint: (n_words, n_words) scores by input and output, at least 0. background: (n_words,) by output.
        common: (n_words,) by input. limit: maximum candidates of an output.
        wide: number of words that are candidates of every output.
    """
    n_words, direct_entries = joint.shape[0], joint.tocoo()
    top = np.argsort(-common, kind="stable")[:wide]
    everywhere = (np.arange(n_words)[:, None] * np.int64(n_words) + top).ravel()
    keys = np.concatenate([direct_entries.col * np.int64(n_words) + direct_entries.row, everywhere])
    keys, index = np.unique(keys, return_inverse=True)
    direct = np.bincount(index[: direct_entries.nnz], direct_entries.data, keys.size)
    columns, rows = keys // n_words, keys % n_words
    scores: Doubles = direct + background[columns] * common[rows]
    totals = np.asarray(joint.sum(axis=0)).ravel() + background * common.sum()
    order, rank = np.lexsort((-scores, columns)), np.empty(columns.size, dtype=np.int64)
    rank[order] = np.arange(columns.size) - np.searchsorted(columns, columns[order])
    keep = (scores > 0) & (rank < limit)
    starts = np.searchsorted(columns[keep], np.arange(n_words + 1))
    return Candidates(starts.astype(np.int64), rows[keep], scores[keep] / totals[columns[keep]])
