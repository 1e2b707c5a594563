"""What `clinveil synthesize` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import model_validator

from clinveil.core.settings import FORCE, QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.lm.recipe import ModelSettings


class SynthesisSettings(Settings):
    """Everything that `clinveil synthesize` can be told; the vault's manifest records it."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    workers: int = flag(1, "Threads of PyTorch in training; with one, the same seed gives the same bits.", ge=1)
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    count: int | None = flag(
        None, "Notes to write (default: until they have as many words as the training notes).", ge=1
    )
    temperature: float = flag(
        1.0, "1 draws from the model as it is; less is more usual, and repeats more.", gt=0, le=10
    )
    top_p: float = flag(1.0, "Draw only from the likeliest words that make up this share (1: from all).", gt=0, le=1)
    longest: int = flag(4_000, "Tokens of a note at most; a longer one is cut, and counted.", ge=1, le=1_000_000)
    batch: int = flag(64, "Notes written at once; changes nothing but speed and memory.", ge=1, le=100_000)
    exact: bool = flag(True, "Write in double precision: the same notes for any --batch. --no-exact is faster.")
    min_patients: int = flag(5, "A word of fewer training patients is written as <unk>.", ge=1)
    held_out: float = flag(
        0.1, "Share of the patients kept from training: validation, and control of the copy scan.", gt=0, lt=1
    )
    span: int = flag(
        50, "So many words in a row count as a copy; other patients' notes say how many there may be.", ge=5
    )
    patients: Path | None = flag(None, "Known patients (patients.parquet): their names are looked for.")
    prepared: bool = flag(False, "NOTES are in MedText's form already (clinveil prepare medtext).")

    @model_validator(mode="after")
    def _writes(self) -> Self:
        if self.lm.model == "ngram":
            raise ValueError("--model ngram scores notes and writes none; unigram, lstm or gpt")
        return self
