"""First weights other than random ones: pretrained on public notes, or word vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.data import load_data
from clinveil.core.errors import InputError
from clinveil.core.tokens import lookup_form
from clinveil.lm.recipe import Recipe
from clinveil.scale.tasks import Result, Store
from clinveil.vectors.table import Vectors

INITIAL = "initial.safetensors"


@dataclass(frozen=True)
class Pretrained:
    """Train on public notes (the training part of `data`), and keep the weights."""

    data: Path
    recipe: Recipe
    seed: int
    device: str = "cpu"

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.recipe.kind} of public notes"

    def identity(self) -> Mapping[str, Any]:
        """What the weights depend on."""
        return {"data": self.data.name, "recipe": self.recipe.as_dict(), "seed": self.seed, "device": self.device}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train, and write the weights."""
        from clinveil.lm.states import weights_of, write_tensors
        from clinveil.lm.train import NeuralTask

        data = load_data(self.data)
        task = NeuralTask(data.encoded, data.vocabulary, self.recipe, self.seed, self.device)
        model, went = task.run()
        write_tensors(folder / INITIAL, weights_of(model.network), {})
        return went


@dataclass(frozen=True)
class Embedded:
    """Random weights, but for the token vectors: those of word vectors where there is one, at the usual spread."""

    data: Path
    recipe: Recipe
    seed: int
    vectors: Path
    vectors_sha256: str

    @property
    def title(self) -> str:
        """For people."""
        return f"first weights from {self.vectors.name}"

    def identity(self) -> Mapping[str, Any]:
        """What the weights depend on."""
        own = {"data": self.data.name, "recipe": self.recipe.as_dict(), "seed": self.seed}
        return own | {"vectors": self.vectors_sha256}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the weights."""
        from clinveil.core.neural import seeded
        from clinveil.lm.network import build
        from clinveil.lm.states import weights_of, write_tensors
        from clinveil.vectors.files import load_vectors

        data, vectors = load_data(self.data), load_vectors(self.vectors)
        words = data.vocabulary.as_dict()["words"]
        with seeded(self.seed):
            weights = weights_of(build(data.vocabulary.size, self.recipe))
        found = _put(weights["input"].numpy(), words, vectors)
        write_tensors(folder / INITIAL, weights, {})
        return {"words": len(words), "found": found}


def _put(matrix: np.ndarray[Any, Any], words: list[str], vectors: Vectors) -> int:
    """Overwrite the rows of words that have a vector; says how many."""
    if vectors.dim != matrix.shape[1]:
        remedy = f"--width {vectors.dim}, or vectors of {matrix.shape[1]}"
        raise InputError(f"the vectors have {vectors.dim} dimensions, the model {matrix.shape[1]}", remedy=remedy)
    rows = [(row, vectors.ids[form]) for row, word in enumerate(words, 3) if (form := lookup_form(word)) in vectors.ids]
    if not rows:
        raise InputError("no word of the notes has a vector", remedy="vectors of the same language")
    to, of = (np.array(column) for column in zip(*rows, strict=True))
    own = vectors.matrix.astype(np.float64)
    spread = float(own.std())
    if not np.isfinite(spread) or spread == 0:
        raise InputError("the vectors are all alike, or too large", remedy="give vectors that were trained")
    matrix[to] = own[of] * (float(matrix.std()) / spread)
    return len(rows)
