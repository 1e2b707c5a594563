"""What the study of paper C can be told, and three sizes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.settings import flag
from clinveil.study.engine import StudySettings as AnyStudySettings
from clinveil.utility.casing import CasingSettings
from clinveil.utility.nli import NliSettings

Mode = Literal["exact", "compat"]
REAL, UNIGRAM = "real notes", "unigram"
SAME, PLANTED = f"{UNIGRAM}, of the same patients", "with planted names"


@dataclass(frozen=True)
class Scale:
    """What a size sets besides: the model, word vectors, inference, casing, and the passes of paper C's schedule."""

    model: Mapping[str, Any]
    dim: int
    nli: NliSettings
    casing: CasingSettings
    canaries: int
    annealed_epochs: int


SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        "tiny": Scale(
            {"size": "tiny", "epochs": 5},
            100,
            NliSettings(seeds=2),
            CasingSettings(size="tiny", batch=20, epochs=6, evaluate_every=500, streams=32),
            3,
            8,
        ),
        "small": Scale(
            {"size": "small", "epochs": 10},
            300,
            NliSettings(seeds=5),
            CasingSettings(size="small", batch=20, epochs=10, streams=32),
            5,
            20,
        ),
        "paper": Scale({"size": "paper"}, 300, NliSettings(), CasingSettings(streams=8), 5, 20),
    }
)


class StudySettings(AnyStudySettings):
    """Settings of `clinveil study clinicalnlp-2019`."""

    PROFILES: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {
            "tiny": {"dropout": (0.0, 0.5), "units": 8, "words": 60_000, "valid": 40, "test": 60, "min_pair_count": 3},
            "small": {
                "dropout": (0.0, 0.3, 0.5, 0.8),
                "units": 12,
                "words": 300_000,
                "valid": 100,
                "test": 150,
                "min_pair_count": 5,
            },
            "paper": {"dropout": (0.0, 0.3, 0.5, 0.7, 0.8), "units": 30, "words": 2_260_000, "valid": 128, "test": 128},
        }
    )
    size: Literal["tiny", "small", "paper"] = flag("tiny", "Profile; paper has the paper's sizes and wants a GPU.")
    dropout: tuple[float, ...] = flag((0.0, 0.5), "Dropout of the LSTM; repeatable (default: by size).")
    units: int = flag(8, "Patients left out, one after another (paper: 30 notes).", ge=2)
    reseeds: int = flag(3, "Models with other seeds: the reseed floor.", ge=1)
    seeds: int = flag(2, "Training seeds under which each patient is left out (exact mode).", ge=1)
    epochs: int | None = flag(None, "Passes of the LSTM over the notes (default: by size).", ge=1)
    compat: bool = flag(True, "Also the privacy score by paper C's recipe: annealed, notes taken out, text cut anew.")
    words: int = flag(60_000, "Words of the training notes, about.", ge=1_000)
    valid: int = flag(40, "Validation notes.", ge=2)
    test: int = flag(60, "Test notes.", ge=2)
    split: Literal["patient", "note"] = flag("patient", "By patient, or by note as in the paper.")
    min_count: int = flag(3, "A word seen fewer times, over all parts, is <unk>.", ge=1)
    pairs: tuple[Path, ...] = flag((), "Word-pair list (UMNSRS similarity, relatedness, …); repeatable.")
    min_pair_count: int = flag(
        20, "Only pairs whose words the real training notes hold so often (default: by size).", ge=1
    )
    nli: Path | None = flag(None, "Sentence pairs for inference: MedNLI, SICK or RQE.")
    general: Path | None = flag(None, "General text, a sentence a line, for the second column of Table 1.")
    device: str = flag("cpu", "cpu, cuda or cuda:1, for the language models.")
    max_hours: float = flag(8.0, "Refuse what would take longer.", gt=0)

    @field_validator("dropout")
    @classmethod
    def _ascending(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not values or not all(0 <= value < 1 for value in values):
            raise ValueError("one or several numbers from 0 to below 1")
        return tuple(sorted(set(values)))

    @property
    def scale(self) -> Scale:
        """What the size sets besides."""
        return SCALES[self.size]

    @property
    def main(self) -> Mode:
        """Whose models write the notes and fill Table 2: at the paper's size those of the paper's own recipe."""
        return "compat" if self.size == "paper" and self.compat else "exact"

    def leave_out(self, dropout: float, mode: Mode, *, names: bool = False) -> LeaveOutSettings:
        """The audit of one model: `exact` with a schedule that looks at nothing, `compat` annealed on validation."""
        own = {**self.scale.model, "model": "lstm", "vocabulary": "words", "dropout": dropout, "mode": mode}
        own |= {"units": self.units, "reseeds": self.reseeds, "seeds": self.seeds}
        own |= {"plant_names": names, "device": self.device}
        if mode == "compat":
            own |= {"schedule": "annealed", "epochs": self.scale.annealed_epochs}
        else:
            own |= {"schedule": "fixed"}
        own |= {"epochs": self.epochs} if self.epochs else {}
        own |= {"prepared": True, "max_hours": self.max_hours}
        return LeaveOutSettings.model_validate(own)


def label_of(dropout: float) -> str:
    """`lstm, dropout 0.5`."""
    return f"lstm, dropout {dropout:g}" if dropout else "lstm, dropout 0.0"
