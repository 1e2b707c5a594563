"""What a reader who looks at one output at a time believes: its candidates and their chances, by output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversary import AdversaryView, Reading, from_table
from clinveil.core.types import Doubles, Ints

COMMON = 20  # words that are candidates of every output, as far as the background goes
MOST = 60  # candidates of an output


@dataclass(frozen=True, eq=False)
class Table:
    """Candidates by output: starts (n_words + 1,), rows and chances of all outputs, end to end; rows rise."""

    starts: Ints
    rows: Ints
    chances: Doubles

    def readings(self, view: AdversaryView) -> list[Reading]:
        """The same candidates wherever an output stands."""
        return [from_table(note.outputs, self.starts, self.rows, self.chances) for note in view.notes]

    def held(self, prior: Doubles) -> Candidates:
        """The same as candidates with P(y | x), up to a factor of each y, by a prior (n_words,)."""
        return Candidates(self.starts, self.rows, self.inverse(prior))

    def inverse(self, prior: Doubles) -> Doubles:
        """P(y | x) up to a factor of each y, of each entry: the chances over the prior (n_words,)."""
        return np.asarray(self.chances / prior[self.rows], dtype=np.float64)


def frequency(notes: Sequence[Ints], n_words: int, pseudo: float = 0.1) -> Doubles:
    """(n_words,) share of each word in some notes, with so many occurrences added to each; unknown words are none."""
    counts = np.bincount(np.concatenate([np.zeros(0, np.int64), *notes]), minlength=n_words + 1)[:n_words] + pseudo
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def table_of(joint: csc_matrix, background: Doubles, common: Doubles, most: int = MOST, wide: int = COMMON) -> Table:
    """Candidates by evidence of their own, joint(x, y), and by a background(y) common(x) that all words share.

    Args:
        joint: (n_words, n_words) scores by input and output, at least 0. background: (n_words,) by output.
        common: (n_words,) by input. most: candidates that are kept.
        wide: words that are candidates of every output.
    """
    n_words, parts = joint.shape[0], joint.tocoo()
    top = np.argsort(-common, kind="stable")[:wide]
    keys = np.concatenate([parts.col * np.int64(n_words) + parts.row, _everywhere(top, n_words)])
    keys, place = np.unique(keys, return_inverse=True)
    own = np.bincount(place[: parts.nnz], parts.data, keys.size)
    columns, rows = keys // n_words, keys % n_words
    scores: Doubles = own + background[columns] * common[rows]
    totals = np.asarray(joint.sum(axis=0)).ravel() + background * common.sum()
    keep = (scores > 0) & (_rank(columns, scores) < most)
    starts = np.searchsorted(columns[keep], np.arange(n_words + 1))
    return Table(starts.astype(np.int64), rows[keep], scores[keep] / totals[columns[keep]])


def _everywhere(top: NDArray[np.int64], n_words: int) -> Ints:
    return np.asarray((np.arange(n_words)[:, None] * np.int64(n_words) + top).ravel())


def _rank(columns: Ints, scores: Doubles) -> Ints:
    """The place of each entry within its column, the best first; columns rise."""
    order = np.lexsort((-scores, columns))
    rank = np.empty(columns.size, dtype=np.int64)
    rank[order] = np.arange(columns.size) - np.searchsorted(columns, columns[order])
    return rank
