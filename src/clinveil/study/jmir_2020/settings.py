"""What the study of paper B can be told: its grid, its setting, its draws; and three sizes of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import field_validator, model_validator

from clinveil.core.settings import FORCE, QUIET, WORKERS, NotesSettings, Settings, flag, group

ALGORITHMS = ("skipgram", "cbow", "glove")
METRICS = ("cosine", "cityblock", "euclidean")
PAPER_WINDOWS = (1, 3, 5, 7, 9)
# `paper` has 44 embeddings, as many as the paper's 88 models: its own list is lost, but for what its tables show.
SIZES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
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
        "paper": {"dim": (100,), "window": tuple(range(1, 12)), "glove_variant": ("pair", "single")},
    }
)


class StudySettings(Settings):
    """Everything that `clinveil study jmir-2020` can be told."""

    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    quiet: bool = QUIET
    force: bool = FORCE
    size: Literal["tiny", "small", "paper"] = flag("small", "Profile: what is not given otherwise comes from it.")
    algorithm: tuple[str, ...] = flag(ALGORITHMS, "skipgram, cbow or glove; repeatable (default: all).")
    window: tuple[int, ...] = flag(PAPER_WINDOWS, "Context words on either side; repeatable (default: 1 3 5 7 9).")
    metric: tuple[str, ...] = flag(METRICS[:2], "cosine, cityblock or euclidean; repeatable (default: the first two).")
    dim: tuple[int, ...] = flag((50,), "Dimensions of a vector; repeatable.")
    min_count: tuple[int, ...] = flag((1,), "Words with fewer occurrences get no vector; repeatable.")
    glove_variant: tuple[str, ...] = flag(("pair",), "pair or single; repeatable.")
    epochs: int = flag(5, "Passes of skip-gram and CBOW over the notes.", ge=1, le=1000)
    glove_epochs: int = flag(15, "Passes of GloVe over its word pairs.", ge=1, le=1000)
    mode: Literal["remove", "replace", "none"] = flag(
        "remove", "Remove the names that are not missed, replace them, or leave all (positive control)."
    )
    miss_rate: float = flag(0.01, "Share of the patients whose names the remover misses (paper: 0.01).", gt=0, le=1)
    redrawn: bool = flag(False, "Negative control of attack 1: missed names are dealt out anew in every note.")
    k: int | None = flag(None, "Pairs that the attacker takes for names (default: 600, or as many as are true).", ge=1)
    draws: int = flag(9_999, "Re-pairings of the names.", ge=19)
    permutations: int = flag(9_999, "Permutations of names over patients.", ge=99)
    patient_draws: int | None = flag(None, "Random groups of diagnoses a patient (default: patients / 0.05).", ge=1)
    scenario_draws: int = flag(1_000, "Random sets of 30 target diagnoses (paper: 1,000).", ge=1)
    target: tuple[str, ...] = flag((), "Diagnosis or code that attack 3 is after; repeatable (default: the paper's).")
    figure_3: bool = flag(True, "Also Figure 3: GloVe of 100 dimensions and window 10 on notes with all names.")
    on: Literal["processes", "ray"] = flag("processes", "What runs the tasks; ray needs the extra [ray].")
    seed: int = flag(1, "Public seed of who is missed, of training and of all draws.", ge=0, le=2**63 - 1)

    @model_validator(mode="before")
    @classmethod
    def _profile(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {**SIZES.get(values.get("size", "small"), {}), **values}

    @field_validator("algorithm", "metric", "glove_variant")
    @classmethod
    def _known(cls, values: tuple[str, ...], info: Any) -> tuple[str, ...]:
        known = {"algorithm": ALGORITHMS, "metric": METRICS, "glove_variant": ("pair", "single")}[info.field_name]
        if not values or set(values) - set(known):
            raise ValueError("one or several of " + ", ".join(known))
        return tuple(name for name in known if name in values)

    @field_validator("window", "dim", "min_count")
    @classmethod
    def _ascending(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if not values or min(values) < 1:
            raise ValueError("one or several whole numbers from 1")
        return tuple(sorted(set(values)))
