"""Base class of algorithms that train word vectors: its fields are settings, its method `train`
returns `Vectors`.

An algorithm is one file in `vectors/algorithms`, and an entry of `ALGORITHMS` there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Settings, setting
from clinveil.corpus import Corpus
from clinveil.vectors.count import WordCounts
from clinveil.vectors.sentences import Splitter, whole_note
from clinveil.vectors.table import Subwords, Vectors

OnEpoch = Callable[[int, int], None]


@dataclass(frozen=True)
class Notes:
    """Input of a training.

    Attributes:
        corpus: the notes. counts: word counts of the corpus. split: splits a note into lines of
            words.
        seed: public; where `meta["determinism"]` is bitwise, the same seed gives the same bits.
        workers: threads. scratch: a private folder for temporary files, which are removed at the
            end.
        on_epoch: called with (epochs done, epochs in all) after each epoch.
    """

    corpus: Corpus
    counts: WordCounts
    seed: int
    workers: int
    scratch: Path
    on_epoch: OnEpoch | None = None
    split: Splitter = whole_note

    def table(
        self, matrix: NDArray[np.float32], meta: dict[str, Any], subwords: Subwords | None = None
    ) -> Vectors:
        """Return `Vectors` of the len(matrix) most frequent words, one row per word."""
        counts = self.counts
        n = len(matrix)
        return Vectors(
            counts.words[:n],
            matrix,
            counts.counts[:n],
            counts.patients[:n],
            counts.n_patients,
            meta,
            subwords,
        )


class Algorithm(Settings):
    """Algorithm that trains word vectors; its fields are its settings."""

    name: ClassVar[str]

    @abstractmethod
    def train(self, notes: Notes) -> Vectors:
        """Return a vector for each word with enough occurrences, with counts and patients."""


class Predicting(Algorithm):
    """Train with negative samples; settings that are not listed have gensim's defaults.

    Source: Mikolov et al. 2013. Paper A: CBOW, 100 dimensions, window 5, 5 negative samples, 5
    epochs.
    """

    dim: int = setting(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = setting(40, "Context words on either side.", ge=1, le=100)
    negative: int = setting(5, "Negative samples per positive one.", ge=1, le=100)
    min_count: int = setting(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int | None = setting(
        None, "Passes over the notes (default: from their number of words).", ge=1, le=1000
    )

    def description(
        self, notes: Notes, epochs: int, library: str, workers: int | None = None
    ) -> dict[str, Any]:
        """Return the meta data of the vectors; pass `workers` if the bits depend on them."""
        return {
            "algorithm": self.name,
            **{name: getattr(self, name) for name in ("dim", "window", "negative", "min_count")},
            "seed": notes.seed,
            **({"workers": workers} if workers else {}),
            "determinism": "bitwise" if workers in (None, 1) else "statistical",
            "library": library,
            "n_notes": notes.counts.n_notes,
            "n_tokens": notes.counts.n_tokens,
            "epochs": epochs,
        }
