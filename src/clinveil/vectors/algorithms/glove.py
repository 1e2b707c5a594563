"""GloVe: vectors fitted to the logarithms of co-occurrence counts (Pennington, Socher and Manning 2014)."""

from __future__ import annotations

from typing import ClassVar

from clinveil.core.errors import InputError
from clinveil.vectors.algorithm import Algorithm, Notes, algorithms
from clinveil.vectors.glove import train_glove
from clinveil.vectors.sentences import whole_note
from clinveil.vectors.settings import GloveSettings
from clinveil.vectors.table import Vectors


@algorithms.register("glove")
class Glove(GloveSettings, Algorithm):
    """Fit vectors to co-occurrence counts."""

    name: ClassVar[str] = "glove"

    def train(self, notes: Notes) -> Vectors:
        """Train the vectors. Raises InputError for notes that are split into lines."""
        if notes.split is not whole_note:
            raise InputError("GloVe trains on whole notes only", hint="use --algorithm skipgram")
        return train_glove(
            notes.corpus,
            self,
            seed=notes.seed,
            workers=notes.workers,
            scratch=notes.scratch,
            counts=notes.counts,
            on_epoch=notes.on_epoch,
        )
