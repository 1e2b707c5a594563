"""Skip-gram predicts the context from a word (Mikolov et al. 2013), with clinveil's own training loop."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from clinveil.corpus.estimate import passes
from clinveil.vectors.algorithm import Notes, algorithms
from clinveil.vectors.encoded import encoded_file, words_in
from clinveil.vectors.prediction import Predicting
from clinveil.vectors.skipgram import Plan, train_skipgram
from clinveil.vectors.table import Vectors


@algorithms.register("skipgram")
class Skipgram(Predicting):
    """Predict the context from a word."""

    name: ClassVar[str] = "skipgram"

    def train(self, notes: Notes) -> Vectors:
        """Train the vectors; the result is the same for any number of workers.

        Raises InputError for unsuitable start vectors (unreadable, other dimensions, almost no shared word), or if
        training diverges.
        """
        counts = notes.counts.counts[notes.counts.counts >= self.min_count]
        words = {word: row for row, word in enumerate(notes.counts.words[: len(counts)])}
        first = np.random.default_rng(notes.seed).random((len(counts), self.dim), np.float32)
        matrix = (2 * first - 1) / np.float32(self.dim)  # as gensim begins
        self.start(matrix, notes.counts)
        with encoded_file(notes.corpus, words, notes.split, notes.scratch) as ids:
            epochs = self.epochs or passes(words_in(ids))
            plan = Plan(self.window, self.negative, epochs, notes.workers, notes.seed)
            train_skipgram(ids, counts, matrix, plan, notes.on_epoch)
        return notes.table(matrix, self.description(notes, epochs, "clinveil"))
