"""What is trained for an audit: its models, and first weights other than random ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.data import load_data
from clinveil.attacks.models.leaveout.models import AuditModel, CountModel, NetworkModel
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.errors import InputError
from clinveil.core.tokens import lookup_form
from clinveil.core.types import Floats
from clinveil.lm.recipe import Recipe
from clinveil.lm.train import NeuralTask
from clinveil.scale.tasks import Result, Store
from clinveil.vectors.table import Vectors

OTHER_SEEDS = 1_000  # by how much the seeds of further trainings are larger
INITIAL = "initial.safetensors"


@dataclass(frozen=True)
class Audit:
    """All models of one audit.

    Attributes:
        full: of all units. again: the same once more (None for count models). reseeded, left_out: the others.
        name: "" or how the first weights were made.
        other_seeds: what `left_out` is, under each further training seed: the effect is measured across seeds.
    """

    data: Path
    full: AuditModel
    again: AuditModel | None
    reseeded: tuple[AuditModel, ...]
    left_out: tuple[AuditModel, ...]
    name: str = ""
    other_seeds: tuple[tuple[AuditModel, ...], ...] = ()

    @property
    def models(self) -> tuple[AuditModel, ...]:
        """All of them, the full model first."""
        again = (self.again,) if self.again else ()
        others = (one for models in self.other_seeds for one in models)
        return (self.full, *again, *self.reseeded, *self.left_out, *others)

    @property
    def shared(self) -> tuple[AuditModel, ...]:
        """Those that others go on from: they are trained first."""
        return (self.full, *(one for one in self.reseeded if isinstance(one, NetworkModel) and one.shares))


def audit_of(
    folder: Path,
    settings: LeaveOutSettings,
    *,
    seed: int,
    words: int = 0,
    initial: Path | None = None,
    name: str = "",
    keep: bool = False,
) -> Audit:
    """The models that an audit needs.

    Args:
        folder: of the data. words: tokens of synthetic notes a model, 0 for none. initial: first weights.
        keep: keep the model of all units, as a checkpoint.
    """
    recipe, units = settings.audit_recipe(), range(len(load_data(folder).units))
    if recipe is None:
        counted = CountModel(data=folder, kind=settings.lm.model, mode=settings.mode, seed=seed, write=words)
        return Audit(folder, counted, None, (), tuple(replace(counted, left_out=unit) for unit in units), name)
    bare = NetworkModel(
        data=folder,
        kind=settings.lm.model,
        mode=settings.mode,
        seed=seed,
        write=words,
        recipe=recipe,
        initial=initial,
        device=settings.lm.device,
    )
    full, more = replace(bare, keep=keep, shares=True), settings.seeds - 1
    reseeded = tuple(replace(bare, seed=seed + OTHER_SEEDS + i, shares=i < more) for i in range(settings.reseeds))

    def without_each(of: NetworkModel, forks: NetworkModel | None) -> tuple[NetworkModel, ...]:
        return tuple(replace(of, left_out=unit, forks=forks) for unit in units)

    other_seeds = tuple(
        without_each(replace(bare, seed=seed + OTHER_SEEDS + i), reseeded[i] if i < len(reseeded) else None)
        for i in range(more)
    )
    again = replace(bare, repeat=1, write=0)
    return Audit(folder, full, again, reseeded, without_each(bare, full), name, other_seeds)


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
        from clinveil.lm.network import weights_of, write_tensors

        data = load_data(self.data)
        task = NeuralTask(data.encoded, data.vocabulary, self.recipe, self.seed, self.device)
        model, history = task.run()
        write_tensors(folder / INITIAL, weights_of(model.network), {})
        return history


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
        from clinveil.lm.network import build, weights_of, write_tensors
        from clinveil.vectors.files import load_vectors

        data, vectors = load_data(self.data), load_vectors(self.vectors)
        words = data.vocabulary.as_dict()["words"]
        with seeded(self.seed):
            weights = weights_of(build(data.vocabulary.size, self.recipe))
        found = _use_vectors(weights["input"].numpy(), words, vectors)
        write_tensors(folder / INITIAL, weights, {})
        return {"words": len(words), "found": found}


def _use_vectors(matrix: Floats, words: list[str], vectors: Vectors) -> int:
    """Overwrite the rows of words that have a vector; returns how many."""
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
