"""The second kind of task: one embedding of the grid, trained on the treated notes by one worker, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.files import remove
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jmir_2020.grid import Model
from clinveil.study.jmir_2020.treat import NOTES, Treat

VECTORS = "vectors"


@dataclass(frozen=True)
class Train:
    """Train a model on what a `Treat` wrote. A model that cannot be trained says why, and the study goes on."""

    treat: Treat
    model: Model

    @property
    def title(self) -> str:
        """What it does."""
        return f"train {self.model.label}"

    def identity(self) -> dict[str, Any]:
        """The notes and the model; the seed is the treatment's."""
        return {"treat": name_of(self.treat), "model": self.model.identity(), "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the vectors."""
        from time import monotonic

        from clinveil.corpus.open import open_corpus
        from clinveil.vectors.files import save_vectors
        from clinveil.vectors.train import train

        began, corpus = monotonic(), open_corpus(store.folder(self.treat) / NOTES)
        run: dict[str, Any] = {"seed": self.treat.seed, "workers": 1, "scratch": folder / "scratch"}
        try:
            vectors = train(corpus, self.model.vector_settings(), **run)
        except InputError as error:
            return {"why": str(error)}
        save_vectors(vectors, folder / VECTORS)
        remove(folder / "scratch")
        said = {"words": len(vectors), "tokens": vectors.meta.get("n_tokens"), "library": vectors.meta.get("library")}
        return {**said, "seconds": round(monotonic() - began, 1)}
