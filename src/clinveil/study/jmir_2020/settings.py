"""Settings of the study of paper B, its three sizes, and the embeddings of its grid."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from clinveil.core.settings import flag
from clinveil.study.engine import CommonSettings, choices
from clinveil.vectors.settings import VectorSettings

NAMES = {"skipgram": "skip-gram", "cbow": "CBOW", "glove": "GloVe"}
METRICS = ("cosine", "cityblock", "euclidean")
VARIANTS = ("pair", "single")
PAPER_WINDOWS = (1, 3, 5, 7, 9)


class StudySettings(CommonSettings):
    """Settings of `clinveil study jmir-2020`."""

    # `paper` has 44 embeddings with two metrics, equal to the paper's 88 models; their complete
    # list is not published.
    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {
            "algorithm": ("skipgram", "cbow"),
            "window": (3,),
            "dim": (16,),
            "draws": 99,
            "permutations": 99,
            "patient_draws": 199,
            "scenario_draws": 20,
            "figure_3": False,
        },
        "small": {"dim": (50,)},
        "paper": {"dim": (100,), "window": tuple(range(1, 12)), "glove_variant": VARIANTS},
    }
    algorithm: tuple[str, ...] = flag(
        tuple(NAMES), "skipgram, cbow or glove; repeatable (default: all)."
    )
    window: tuple[int, ...] = flag(
        PAPER_WINDOWS, "Context words on either side; repeatable (default: 1 3 5 7 9)."
    )
    metric: tuple[str, ...] = flag(
        METRICS[:2], "cosine, cityblock or euclidean; repeatable (default: the first two)."
    )
    dim: tuple[int, ...] = flag((50,), "Dimensions of a vector; repeatable.")
    min_count: tuple[int, ...] = flag(
        (1,), "Words with fewer occurrences get no vector; repeatable."
    )
    glove_variant: tuple[str, ...] = flag(("pair",), "pair or single; repeatable.")
    epochs: int = flag(5, "Passes of skip-gram and CBOW over the notes.", ge=1, le=1000)
    glove_epochs: int = flag(15, "Passes of GloVe over its word pairs.", ge=1, le=1000)
    mode: Literal["remove", "replace", "none"] = flag(
        "remove", "Remove the other names, replace them, or leave all names (positive control)."
    )
    miss_rate: float = flag(0.01, "Share of patients with missed names (paper: 0.01).", gt=0, le=1)
    redrawn: bool = flag(False, "Negative control of attack 1: redraw missed names in every note.")
    k: int | None = flag(
        None, "Pairs that the attacker guesses (default: 600, or the true number).", ge=1
    )
    draws: int = flag(9_999, "Random re-pairings of names.", ge=19)
    permutations: int = flag(9_999, "Permutations of names over patients.", ge=99)
    patient_draws: int | None = flag(
        None, "Random groups of diagnoses per patient (default: patients / 0.05).", ge=1
    )
    scenario_draws: int = flag(1_000, "Random sets of 30 target diagnoses (paper: 1,000).", ge=1)
    target: tuple[str, ...] = flag(
        (), "Target diagnosis or code of attack 3; repeatable (default: the paper's)."
    )
    figure_3: bool = flag(
        True, "Also compute Figure 3: GloVe, 100 dimensions, window 10, on notes with all names."
    )

    @field_validator("algorithm", "metric", "glove_variant")
    @classmethod
    def _known(cls, values: tuple[str, ...], info: Any) -> tuple[str, ...]:
        return choices(
            values, {"algorithm": tuple(NAMES), "metric": METRICS}.get(info.field_name, VARIANTS)
        )

    @field_validator("window", "dim", "min_count")
    @classmethod
    def _ascending(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if not values or min(values) < 1:
            raise ValueError("must be one or several whole numbers from 1")
        return tuple(sorted(set(values)))


def label_of(model: VectorSettings) -> str:
    """Return the name of an embedding in tables."""
    variant = (
        ", one vector per word"
        if model.algorithm == "glove" and model.glove_variant == "single"
        else ""
    )
    return (
        f"{NAMES[model.algorithm]}{variant}, window {model.window}, {model.dim} d, count"
        f" {model.min_count}+"
    )


FIGURE_3 = VectorSettings(
    algorithm="glove", window=10, dim=100, min_count=1, epochs=15, glove_variant="single"
)


def models(settings: StudySettings) -> list[VectorSettings]:
    """Return the embeddings of the grid in the order of the tables: algorithms, then windows."""
    grid = []
    for dim, least, algorithm in product(settings.dim, settings.min_count, settings.algorithm):
        epochs = settings.glove_epochs if algorithm == "glove" else settings.epochs
        own: dict[str, Any] = {
            "algorithm": algorithm,
            "dim": dim,
            "min_count": least,
            "epochs": epochs,
        }
        for own["glove_variant"] in settings.glove_variant if algorithm == "glove" else ("pair",):
            grid += [VectorSettings(window=window, **own) for window in settings.window]
    return grid


def main_models(settings: StudySettings) -> list[VectorSettings]:
    """Return the models of the paper's tables: the first dimension, count and variant."""
    first = settings.dim[0], settings.min_count[0]
    variants = {"glove": settings.glove_variant[0]}
    return [
        model
        for model in models(settings)
        if (model.dim, model.min_count) == first
        and model.glove_variant == variants.get(model.algorithm, "pair")
    ]
