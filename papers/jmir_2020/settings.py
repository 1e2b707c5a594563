"""Settings of paper B, and the embeddings of its grid."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clinveil.core import NotesSettings, Settings, group

NAMES = {"skipgram": "skip-gram", "cbow": "CBOW", "glove": "GloVe"}
PAPER_WINDOWS = (1, 3, 5, 7, 9)

Algorithm = Literal["skipgram", "cbow", "glove"]
Metric = Literal["cosine", "cityblock", "euclidean"]
Variant = Literal["pair", "single"]


def _ascending(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if min(numbers) < 1:
        raise ValueError("must be whole numbers from 1")
    return tuple(sorted(set(numbers)))


Positive = Annotated[int, Field(ge=1)]
Numbers = Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(_ascending)]


class GridSettings(Settings):
    """Settings of the script; `settings.toml` has their values and describes them."""

    notes: NotesSettings = group(NotesSettings)
    seed: int = Field(ge=0, lt=2**63)
    workers: Positive
    algorithm: tuple[Algorithm, ...] = Field(min_length=1)
    window: Numbers
    dim: Numbers
    min_count: Numbers
    glove_variant: tuple[Variant, ...] = Field(min_length=1)
    epochs: Positive
    glove_epochs: Positive
    metric: tuple[Metric, ...] = Field(min_length=1)
    mode: Literal["remove", "replace", "none"]
    miss_rate: float = Field(gt=0, le=1)
    redrawn: bool
    k: int = Field(ge=0)
    draws: int = Field(ge=19)
    permutations: int = Field(ge=99)
    patient_draws: int = Field(ge=0)
    scenario_draws: Positive
    target: tuple[str, ...]
    figure_3: bool

    def for_page(self) -> dict[str, object]:
        """Return the settings that affect the results, without the columns of the notes."""
        return self.model_dump(exclude={"notes", "workers"})


@dataclass(frozen=True)
class EmbeddingModel:
    """One embedding of the grid; the fields are those of `clinveil.embed`."""

    algorithm: Algorithm
    window: int
    dim: int
    min_count: int
    epochs: int
    glove_variant: Variant = "pair"

    @property
    def label(self) -> str:
        """Name in tables."""
        single = self.algorithm == "glove" and self.glove_variant == "single"
        variant = ", one vector per word" if single else ""
        return (
            f"{NAMES[self.algorithm]}{variant}, window {self.window}, {self.dim} d, count"
            f" {self.min_count}+"
        )


FIGURE_3 = EmbeddingModel(
    algorithm="glove", window=10, dim=100, min_count=1, epochs=15, glove_variant="single"
)


def models(settings: GridSettings) -> list[EmbeddingModel]:
    """Return the embeddings of the grid in the order of the tables: algorithms, then windows."""
    grid = []
    for dim, min_count, algorithm in product(settings.dim, settings.min_count, settings.algorithm):
        variants: tuple[Variant, ...] = ("pair",)
        epochs = settings.epochs
        if algorithm == "glove":
            variants = settings.glove_variant
            epochs = settings.glove_epochs
        for variant, window in product(variants, settings.window):
            grid.append(EmbeddingModel(algorithm, window, dim, min_count, epochs, variant))
    return grid


def main_models(settings: GridSettings) -> list[EmbeddingModel]:
    """Return the models of the paper's tables: the first dimension, count and variant."""
    variant_of: dict[str, Variant] = {"glove": settings.glove_variant[0]}
    return [
        model
        for model in models(settings)
        if model.dim == settings.dim[0]
        and model.min_count == settings.min_count[0]
        and model.glove_variant == variant_of.get(model.algorithm, "pair")
    ]
