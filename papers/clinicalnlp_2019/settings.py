"""Settings of paper C."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clinveil.attacks import LeaveOutSettings
from clinveil.core import NotesSettings, Settings, group
from clinveil.lm import ModelSettings
from papers.clinicalnlp_2019.casing import CasingSettings
from papers.clinicalnlp_2019.nli import InferenceSettings

AuditMode = Literal["exact", "compat"]
REAL = "real notes"
UNIGRAM = "unigram"
UNIGRAM_OF_AUDITED = f"{UNIGRAM}, of the same patients"


def _dropouts(rates: tuple[float, ...]) -> tuple[float, ...]:
    if not all(0 <= rate < 1 for rate in rates):
        raise ValueError("must be one or several numbers from 0 to below 1")
    return tuple(sorted(set(rates)))


class LstmSettings(Settings):
    """The LSTM: `size` sets `width` and `layers`, unless they are given (not 0)."""

    size: Literal["tiny", "small", "base", "paper"]
    epochs: int = Field(ge=1)
    annealed_epochs: int = Field(ge=1)
    width: int = Field(default=0, ge=0)
    layers: int = Field(default=0, ge=0)


class SyntheticSettings(Settings):
    """Settings of the script; `settings.toml` has their values and describes them."""

    notes: NotesSettings = group(NotesSettings)
    lstm: LstmSettings
    inference: InferenceSettings = group(InferenceSettings)
    casing: CasingSettings = group(CasingSettings)
    seed: int = Field(ge=0, lt=2**63)
    workers: int = Field(ge=1)
    device: str
    max_hours: float = Field(gt=0)
    words: int = Field(ge=1_000)
    valid: int = Field(ge=2)
    test: int = Field(ge=2)
    split: Literal["patient", "note"]
    min_count: int = Field(ge=1)
    dropout: Annotated[tuple[float, ...], Field(min_length=1), AfterValidator(_dropouts)]
    units: int = Field(ge=2)
    reseeds: int = Field(ge=1)
    seeds: int = Field(ge=1)
    compat: bool
    main: AuditMode
    dim: int = Field(ge=2)
    min_pair_count: int = Field(ge=1)

    @property
    def by_note(self) -> bool:
        """Whether each note counts as a patient."""
        return self.split == "note"

    @property
    def modes(self) -> tuple[AuditMode, ...]:
        """Recipes of the audits."""
        return ("exact", "compat") if self.compat else ("exact",)

    def leave_out(self, dropout: float, mode: AuditMode, model: str = "lstm") -> LeaveOutSettings:
        """Return the settings of an audit: `exact` leaves one patient out of fixed batches,
        `compat` is the recipe of the paper's code.
        """
        lstm = self.lstm
        return LeaveOutSettings(
            lm=ModelSettings(
                model=model,
                size=lstm.size,
                vocabulary="words",
                dropout=dropout,
                epochs=lstm.annealed_epochs if mode == "compat" else lstm.epochs,
                width=lstm.width or None,
                layers=lstm.layers or None,
                device=self.device,
            ),
            mode=mode,
            units=self.units,
            reseeds=self.reseeds,
            seeds=self.seeds,
            prepared=True,
            max_hours=self.max_hours,
        )

    def for_page(self) -> dict[str, object]:
        """Return the settings that affect the results, without the columns of the notes."""
        return self.model_dump(exclude={"notes", "workers", "max_hours"})


def corpus_label(name: str) -> str:
    """Return the label of a compared corpus in findings."""
    return f"corpus: {name}"


def label_of(dropout: float) -> str:
    """Return a label such as `lstm, dropout 0.5`."""
    return f"lstm, dropout {dropout:g}" if dropout else "lstm, dropout 0.0"
