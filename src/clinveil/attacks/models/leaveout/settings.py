"""What `clinveil attack leaveout` can be told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from clinveil.core.settings import FORCE, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.lm.recipe import ModelSettings, Recipe

Mode = Literal["exact", "compat", "unigram"]


class LeaveOutSettings(Settings):
    """How S-PDTP is measured."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    mode: Mode = flag(
        "exact", "exact: left-out notes weigh 0; compat: paper C's, re-packed and annealed; unigram: closed form."
    )
    unit: Literal["patient", "note"] = flag("patient", "What is left out: all notes of a patient, or one note.")
    units: int = flag(30, "How many of them are left out, one after another (paper: 30).", ge=2)
    reseeds: int = flag(3, "Models of all notes with other seeds: the reseed floor.", ge=0)
    seeds: int = flag(2, "Training seeds under which each unit is left out: the effect is measured across them.", ge=1)
    from_text: bool = flag(False, "Also from released notes alone: synthesize under each model, and score by n-grams.")
    plant_names: bool = flag(False, "Plant an invented full name in a random half of the audited units.")
    pretrain: Path | None = flag(None, "Train on these public notes first; measured with and without.")
    init_vectors: Path | None = flag(None, "Begin with these word vectors; measured with and without.")
    prepared: bool = flag(False, "NOTES are in MedText's form already (clinveil prepare medtext).")
    max_hours: float = flag(8.0, "Refuse what would take longer.", gt=0)

    @model_validator(mode="after")
    def _can_be_left_out(self) -> Self:
        if self.mode == "compat" and self.lm.model == "gpt":
            raise ValueError("--mode compat is of the LSTM: a GPT reads each note by itself")
        if self.mode == "unigram":
            self._refuse_beside_unigram()
        if self.init_vectors and not self.lm.word_vocabulary:
            raise ValueError("--init-vectors needs --vocabulary words")
        if (self.pretrain or self.init_vectors) and not self.lm.neural:
            raise ValueError("--pretrain and --init-vectors are of the networks: --model lstm or gpt")
        return self

    def _refuse_beside_unigram(self) -> None:
        names = ("plant_names", "from_text", "pretrain", "init_vectors")
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]
        if given:
            networks = bool(self.pretrain or self.init_vectors)
            remedy = "--mode exact" if networks else "--mode exact --model unigram"
            are = "is" if len(given) == 1 else "are"
            raise ValueError(f"{' and '.join(given)} {are} not for --mode unigram, a closed form: take {remedy}")

    def audit_recipe(self) -> Recipe | None:
        """The recipe that the mode asks for: fixed schedule and rows, or paper C's stream, annealed; --schedule wins.

        None for count models.
        """
        if not self.lm.neural:
            return None
        recipe = self.lm.recipe()
        if self.mode == "exact":
            return replace(recipe, plan="rows", schedule="fixed")
        return replace(recipe, plan="stream", schedule=self.lm.schedule or "annealed")
