"""Settings of the study of paper C, and its three sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from clinveil.attacks.models.leaveout.data import LeaveOutSettings
from clinveil.core.settings import flag
from clinveil.study.engine import CommonSettings
from clinveil.utility.evaluations.casing import CasingSettings
from clinveil.utility.evaluations.nli import NliSettings

Mode = Literal["exact", "compat"]
REAL = "real notes"
UNIGRAM = "unigram"
SAME = f"{UNIGRAM}, of the same patients"


@dataclass(frozen=True)
class Scale:
    """Settings of a size: model, word vectors, inference, casing, and the epochs of paper C's
    schedule.
    """

    model: Mapping[str, Any]
    dim: int
    nli: NliSettings
    casing: CasingSettings
    annealed_epochs: int


SCALES: Mapping[str, Scale] = {
    "tiny": Scale(
        {"size": "tiny", "epochs": 5},
        100,
        NliSettings(seeds=2),
        CasingSettings(size="tiny", batch=20, epochs=6, evaluate_every=500, streams=32),
        8,
    ),
    "small": Scale(
        {"size": "small", "epochs": 10},
        300,
        NliSettings(seeds=5),
        CasingSettings(size="small", batch=20, epochs=10, streams=32),
        20,
    ),
    "paper": Scale({"size": "paper"}, 300, NliSettings(), CasingSettings(streams=8), 20),
}


class StudySettings(CommonSettings):
    """Settings of `clinveil study clinicalnlp-2019`."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "tiny": {
            "dropout": (0.0, 0.5),
            "units": 8,
            "words": 60_000,
            "valid": 40,
            "test": 60,
            "min_pair_count": 3,
        },
        "small": {
            "dropout": (0.0, 0.3, 0.5, 0.8),
            "units": 12,
            "words": 300_000,
            "valid": 100,
            "test": 150,
            "min_pair_count": 5,
        },
        "paper": {
            "dropout": (0.0, 0.3, 0.5, 0.7, 0.8),
            "units": 30,
            "words": 2_260_000,
            "valid": 128,
            "test": 128,
        },
    }
    size: Literal["tiny", "small", "paper"] = flag(
        "tiny", "Profile; paper has the paper's sizes and needs a GPU."
    )
    dropout: tuple[float, ...] = flag(
        (0.0, 0.5), "Dropout of the LSTM; repeatable (default: by size)."
    )
    units: int = flag(8, "Patients to leave out one by one (paper: 30 notes).", ge=2)
    reseeds: int = flag(3, "Models with other seeds (reseed floor).", ge=1)
    seeds: int = flag(2, "Training seeds for each left-out patient (exact mode).", ge=1)
    epochs: int | None = flag(None, "Epochs of the LSTM (default: by size).", ge=1)
    compat: bool = flag(
        True, "Also compute the privacy score with paper C's recipe (annealed, notes removed)."
    )
    words: int = flag(60_000, "Approximate words of the training notes.", ge=1_000)
    valid: int = flag(40, "Validation notes.", ge=2)
    test: int = flag(60, "Test notes.", ge=2)
    split: Literal["patient", "note"] = flag("patient", "By patient, or by note as in the paper.")
    min_count: int = flag(3, "Words with fewer occurrences in all parts become <unk>.", ge=1)
    pairs: tuple[Path, ...] = flag(
        (), "Word-pair list (UMNSRS similarity, relatedness, …); repeatable."
    )
    min_pair_count: int = flag(
        20,
        "Minimum occurrences of both words of a pair in the real training notes (default: by"
        " size).",
        ge=1,
    )
    nli: Path | None = flag(None, "Sentence pairs for inference: MedNLI, SICK or RQE.")
    device: str = flag("cpu", "Language models: cpu, cuda or cuda:1.")
    max_hours: float = flag(8.0, "Refuse a study that takes longer.", gt=0)

    @field_validator("dropout")
    @classmethod
    def _ascending(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not values or not all(0 <= value < 1 for value in values):
            raise ValueError("must be one or several numbers from 0 to below 1")
        return tuple(sorted(set(values)))

    @property
    def scale(self) -> Scale:
        """Settings of the size."""
        return SCALES[self.size]

    @property
    def main(self) -> Mode:
        """Mode of the models in Table 2: at the paper's size, the paper's recipe."""
        return "compat" if self.size == "paper" and self.compat else "exact"

    def leave_out(self, dropout: float, mode: Mode) -> LeaveOutSettings:
        """Return the settings of an audit: `exact` has a fixed schedule, `compat` anneals on
        validation notes.
        """
        own = {
            **self.scale.model,
            "model": "lstm",
            "vocabulary": "words",
            "dropout": dropout,
            "mode": mode,
        }
        own |= {"units": self.units, "reseeds": self.reseeds, "seeds": self.seeds}
        own["device"] = self.device
        if mode == "compat":
            own |= {"epochs": self.scale.annealed_epochs}
        own |= {"epochs": self.epochs} if self.epochs else {}
        own |= {"prepared": True, "max_hours": self.max_hours}
        return LeaveOutSettings.model_validate(own)


def label_of(dropout: float) -> str:
    """Return a label such as `lstm, dropout 0.5`."""
    return f"lstm, dropout {dropout:g}" if dropout else "lstm, dropout 0.0"
