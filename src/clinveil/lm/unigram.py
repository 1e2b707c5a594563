"""The unigram model with Lidstone smoothing (paper C, equation 4): exact, and forgets the order of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.lm.model import Logs
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.vocabulary import Ids, Vocabulary


class Unigram:
    """p(u) = (count(u) + alpha) / (N + alpha V).

    Args:
        counts: (size,) occurrences in the training notes.

    Raises:
        InputError: alpha not positive, or counts that do not fit the vocabulary.
    """

    kind = "unigram"

    def __init__(self, vocabulary: Vocabulary, counts: NDArray[np.int64], alpha: float = 1.0) -> None:
        if not alpha > 0:
            raise InputError("Lidstone's constant must be positive")
        if counts.shape != (vocabulary.size,):
            raise InputError("counts and vocabulary differ in size")
        self.vocabulary, self.counts, self.alpha = vocabulary, counts, alpha
        self._logs = np.log(counts + alpha) - np.log(counts.sum() + alpha * counts.size)

    def score(self, notes: Sequence[Ids]) -> list[Logs]:
        """Log-probabilities, which do not depend on what stands before."""
        return [self._logs[note] for note in notes]

    def stream(self, lanes: int) -> _Constant:
        """The same distribution for every lane and place."""
        return _Constant(np.broadcast_to(np.exp(self._logs), (lanes, len(self._logs))))


class _Constant:
    def __init__(self, probabilities: Logs) -> None:
        self._probabilities = probabilities

    def probabilities(self) -> Logs:
        """(lanes, size)."""
        return self._probabilities

    def push(self, ids: NDArray[np.int64]) -> None:
        """Nothing depends on it."""

    def reset(self, lanes: NDArray[np.int64]) -> None:
        """Nothing depends on it."""


def counts_of(notes: EncodedNotes, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """(size,) how often each token stands in the notes."""
    return np.bincount(notes.ids, minlength=vocabulary.size).astype(np.int64)


def train_unigram(notes: EncodedNotes, vocabulary: Vocabulary, alpha: float = 1.0) -> Unigram:
    """Count."""
    return Unigram(vocabulary, counts_of(notes, vocabulary), alpha)
