"""Base class of the algorithms that predict words: settings, initial vectors and meta data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Floats
from clinveil.vectors.algorithm import Algorithm, Notes
from clinveil.vectors.count import WordCounts
from clinveil.vectors.files import load_vectors
from clinveil.vectors.imported import shared_words


class Predicting(Algorithm):
    """Train with negative samples; settings that are not listed have gensim's defaults.

    Source: Mikolov et al. 2013. Paper A: CBOW, 100 dimensions, window 5, 5 negative samples, 5 epochs.
    """

    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(40, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples per positive one.", ge=1, le=100)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int | None = flag(None, "Passes over the notes (default: from their number of words).", ge=1, le=1000)
    start_vectors: Path | None = flag(None, "Vectors to initialize training with, for the words that they contain.")

    def start(self, matrix: Floats, counts: WordCounts) -> None:
        """Replace random initial vectors with those of `start_vectors`.

        Raises InputError if they cannot be read, have other dimensions, or share almost no word with the notes.
        """
        if self.start_vectors is None:
            return
        given = load_vectors(self.start_vectors)
        if given.dim != self.dim:
            message = f"its vectors have {given.dim} dimensions, not {self.dim}"
            raise InputError(message, where=self.start_vectors.name, hint=f"pass --dim {given.dim}")
        rows = [i for i in shared_words(given, counts).tolist() if i < len(matrix)]
        matrix[rows] = given.matrix[[given.ids[counts.words[i]] for i in rows]]

    def description(self, notes: Notes, epochs: int, library: str, workers: int | None = None) -> dict[str, Any]:
        """Return the meta data of the vectors; pass `workers` if the bits depend on them."""
        return {
            "algorithm": self.name,
            **{name: getattr(self, name) for name in ("dim", "window", "negative", "min_count")},
            "seed": notes.seed,
            **({"workers": workers} if workers else {}),
            "determinism": "bitwise" if workers in (None, 1) else "statistical",
            **({"started_from": self.start_vectors.name} if self.start_vectors else {}),
            "library": library,
            "n_notes": notes.counts.n_notes,
            "n_tokens": notes.counts.n_tokens,
            "epochs": epochs,
        }
