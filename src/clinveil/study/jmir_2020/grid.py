"""The embeddings of the grid: algorithm × window × dimensions × smallest count (× variant of GloVe)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal, cast

from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.vectors.settings import VectorSettings

NAMES = {"skipgram": "skip-gram", "cbow": "CBOW", "glove": "GloVe"}


@dataclass(frozen=True, order=True)
class Model:
    """One embedding of the grid.

    Attributes:
        variant: of GloVe, "pair" or "single"; "" for the others.
    """

    algorithm: str
    window: int
    dim: int
    min_count: int
    epochs: int
    variant: str = ""

    @property
    def label(self) -> str:
        """The model in words."""
        variant = ", one vector a word" if self.variant == "single" else ""
        return f"{NAMES[self.algorithm]}{variant}, window {self.window}, {self.dim} d, count {self.min_count}+"

    @property
    def series(self) -> tuple[str, str, int, int]:
        """What all models of one line of a figure share: everything but the window."""
        return (self.algorithm, self.variant, self.dim, self.min_count)

    def vector_settings(self) -> VectorSettings:
        """How it is trained."""
        shared = {name: getattr(self, name) for name in ("window", "dim", "min_count", "epochs")}
        algorithm = cast(Literal["cbow", "skipgram", "glove"], self.algorithm)
        variant = cast(Literal["pair", "single"], self.variant or "pair")
        return VectorSettings(algorithm=algorithm, glove_variant=variant, **shared)

    def identity(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)


FIGURE_3 = Model("glove", window=10, dim=100, min_count=1, epochs=15, variant="single")


def models(settings: StudySettings) -> list[Model]:
    """The grid, in the order of the tables: algorithms, then windows."""
    return [
        Model(algorithm, window, dim, least, _epochs(settings, algorithm), variant)
        for dim, least, algorithm in product(settings.dim, settings.min_count, settings.algorithm)
        for variant in (settings.glove_variant if algorithm == "glove" else ("",))
        for window in settings.window
    ]


def main_models(settings: StudySettings) -> list[Model]:
    """Those that the paper's tables have room for: the first of the dimensions, counts and variants."""
    first = (settings.dim[0], settings.min_count[0])
    return [
        model
        for model in models(settings)
        if (model.dim, model.min_count) == first and model.variant in ("", settings.glove_variant[0])
    ]


def _epochs(settings: StudySettings, algorithm: str) -> int:
    return settings.glove_epochs if algorithm == "glove" else settings.epochs
