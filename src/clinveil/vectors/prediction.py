"""What algorithms that predict words have in common: their settings, first vectors, and what is said of them."""

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
    """Vectors that predict words from their context, or the context from the word, against negative samples.

    The rest are gensim's defaults. Source: Mikolov et al. 2013; paper A: CBOW, 100 dimensions, window 5, 5 negative,
    5 passes.
    """

    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(40, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples for each positive one.", ge=1, le=100)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int | None = flag(None, "Passes over the notes (default: by their words).", ge=1, le=1000)
    start_vectors: Path | None = flag(None, "Vectors to go on training from, where they know a word.")

    def start(self, matrix: Floats, counts: WordCounts) -> None:
        """Put vectors of another training where the random ones stand.

        Raises InputError for vectors that cannot be read, do not fit, or share next to no word.
        """
        if self.start_vectors is None:
            return
        given = load_vectors(self.start_vectors)
        if given.dim != self.dim:
            said = f"its vectors have {given.dim} dimensions, not {self.dim}"
            raise InputError(said, where=self.start_vectors.name, hint=f"--dim {given.dim}")
        rows = [i for i in shared_words(given, counts).tolist() if i < len(matrix)]
        matrix[rows] = given.matrix[[given.ids[counts.words[i]] for i in rows]]

    def said(self, notes: Notes, epochs: int, library: str, workers: int | None = None) -> dict[str, Any]:
        """What is known of vectors trained so; `workers` where the bits depend on them."""
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
