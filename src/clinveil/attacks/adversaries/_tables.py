"""Candidates by output, for adversaries that treat each output separately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversary import AdversaryView, Recovery, from_table
from clinveil.core.types import Doubles, Ints

COMMON = 20  # words that are candidates of every output, through the background
MAX_CANDIDATES = 60  # maximum candidates of an output


@dataclass(frozen=True, eq=False)
class Table:
    """Candidates by output: offsets (n_words + 1,), then rows and chances of all outputs; rows are sorted."""

    starts: Ints
    rows: Ints
    chances: Doubles

    def recoveries(self, view: AdversaryView) -> list[Recovery]:
        """Return the recovery of each note; the candidates depend on the output only."""
        return [from_table(note.outputs, self.starts, self.rows, self.chances) for note in view.notes]

    def as_candidates(self, prior: Doubles) -> Candidates:
        """Return the same candidates with P(y | x), up to a factor per y, for a prior (n_words,)."""
        return Candidates(self.starts, self.rows, self.inverse(prior))

    def inverse(self, prior: Doubles) -> Doubles:
        """Return P(y | x) of each entry, up to a factor per y: the chances divided by the prior (n_words,)."""
        return np.asarray(self.chances / prior[self.rows], dtype=np.float64)


def frequency(notes: Sequence[Ints], n_words: int, pseudo: float = 0.1) -> Doubles:
    """Return the share of each known word in some notes, (n_words,), smoothed by `pseudo` occurrences."""
    counts = np.bincount(np.concatenate([np.zeros(0, np.int64), *notes]), minlength=n_words + 1)[:n_words] + pseudo
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def table_of(
    joint: csc_matrix, background: Doubles, common: Doubles, limit: int = MAX_CANDIDATES, wide: int = COMMON
) -> Table:
    """Return candidates from direct evidence, joint(x, y), and from a background(y) common(x) shared by all words.

    Args:
        joint: (n_words, n_words) scores by input and output, at least 0. background: (n_words,) by output.
        common: (n_words,) by input. most: maximum candidates of an output.
        wide: number of words that are candidates of every output.
    """
    n_words, entries = joint.shape[0], joint.tocoo()
    top = np.argsort(-common, kind="stable")[:wide]
    keys = np.concatenate([entries.col * np.int64(n_words) + entries.row, _everywhere(top, n_words)])
    keys, index = np.unique(keys, return_inverse=True)
    direct = np.bincount(index[: entries.nnz], entries.data, keys.size)
    columns, rows = keys // n_words, keys % n_words
    scores: Doubles = direct + background[columns] * common[rows]
    totals = np.asarray(joint.sum(axis=0)).ravel() + background * common.sum()
    keep = (scores > 0) & (_rank(columns, scores) < limit)
    starts = np.searchsorted(columns[keep], np.arange(n_words + 1))
    return Table(starts.astype(np.int64), rows[keep], scores[keep] / totals[columns[keep]])


def _everywhere(top: NDArray[np.int64], n_words: int) -> Ints:
    return np.asarray((np.arange(n_words)[:, None] * np.int64(n_words) + top).ravel())


def _rank(columns: Ints, scores: Doubles) -> Ints:
    """Return the rank of each entry within its column, the best first; columns are sorted."""
    order = np.lexsort((-scores, columns))
    rank = np.empty(columns.size, dtype=np.int64)
    rank[order] = np.arange(columns.size) - np.searchsorted(columns, columns[order])
    return rank
