"""Settings of `clinveil attack leaveout`, and the folder of one audit.

The folder records the settings of its findings, so that findings of other settings do not replace them unnoticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import model_validator

from clinveil.core.errors import UsageError
from clinveil.core.files import private_text, remove
from clinveil.core.settings import FORCE, QUIET, SEED, WORKERS, NotesSettings, Settings, flag, group
from clinveil.lm.notes import PlainNotes
from clinveil.lm.recipe import ModelSettings, Recipe
from clinveil.scale.tasks import Store, study_folder

FINDINGS, RUN = "findings.json", "run.json"
_TABLES = ("units-model.csv", "units-text.csv")
ADDED = ("from_text", "reseeds", "seeds")  # may change: the models of an earlier run are used again
SECRET = """SECRET: all of this folder. It must not leave.

tasks/ contains the encoded notes with their vocabulary, the left-out units, states of the language models trained on
the notes, the log-probability that each model gives every word of the audited patients and, with from_text, notes that
the models generated. findings.json and units-*.csv (one row per unit) contain only numbers, but they show how well the
attack works on these notes. run.json contains settings and hashes.
"""
Mode = Literal["exact", "compat", "unigram"]


class LeaveOutSettings(Settings):
    """Settings of the S-PDTP measurement."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    mode: Mode = flag("exact", "Exact, as in paper C (compat), or the closed form of a unigram.")
    unit: Literal["patient", "note"] = flag("patient", "Unit to leave out: all notes of a patient, or one note.")
    units: int = flag(30, "Number of units to leave out, one at a time (paper: 30).", ge=2)
    reseeds: int = flag(3, "Models of all notes with other seeds: the reseed floor.", ge=0)
    seeds: int = flag(2, "Training seeds per left-out unit, across which the effect is measured.", ge=1)
    from_text: bool = flag(False, "Also score by n-grams of notes generated with each model.")
    plant_names: bool = flag(False, "Plant an invented full name in a random half of the audited units.")
    prepared: bool = flag(False, "NOTES are in MedText's form already (clinveil prepare medtext).")
    max_hours: float = flag(8.0, "Maximum estimated training time in hours.", gt=0)

    @model_validator(mode="after")
    def _can_be_left_out(self) -> Self:
        if self.mode == "compat" and self.lm.model == "gpt":
            raise ValueError("--mode compat requires the LSTM: a GPT reads each note separately")
        if self.mode == "unigram":
            self._refuse_beside_unigram()
        return self

    def _refuse_beside_unigram(self) -> None:
        names = ("plant_names", "from_text")
        given = [f"--{name.replace('_', '-')}" for name in names if getattr(self, name)]
        if given:
            hint = "--mode exact --model unigram"
            are = "is" if len(given) == 1 else "are"
            raise ValueError(f"{' and '.join(given)} {are} not available with --mode unigram (closed form): use {hint}")

    def audit_recipe(self) -> Recipe | None:
        """Return the training recipe: fixed schedule and rows, or paper C's annealed stream; None for counts.

        `--schedule` overrides the schedule.
        """
        if not self.lm.neural:
            return None
        recipe = self.lm.recipe()
        if self.mode == "exact":
            return replace(recipe, plan="rows", schedule="fixed")
        return replace(recipe, plan="stream", schedule=self.lm.schedule or "annealed")


def run_spec(notes: PlainNotes, settings: LeaveOutSettings, seed: int) -> dict[str, Any]:
    """Return everything that the findings of an audit depend on, ready for JSON.

    Raises UsageError for an inconsistent recipe.
    """
    recipe, flat, words = settings.audit_recipe(), settings.flat(), settings.lm.word_vocabulary
    own = {name: flat[name] for name in ("mode", "model", "unit", "units", "plant_names", "device")}
    own |= {"seed": seed, "notes": _hash(notes), "vocabulary": "words" if words else "bytes"}
    size = "min_count" if words else "vocabulary_size"
    own[size] = flat[size]
    own |= {name: value for name, value in (recipe.as_dict() if recipe else {}).items() if name != "kind"}
    return own | {"from_text": settings.from_text, "reseeds": settings.reseeds, "seeds": settings.seeds}


def _hash(notes: PlainNotes) -> str:
    rows = [notes.texts, notes.note_ids, notes.patients]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]


@contextmanager
def audit_folder(out: Path, spec: dict[str, Any], *, force: bool = False) -> Iterator[Store]:
    """Open a folder for one audit (`run_spec`): a new one, or that of the same settings except `ADDED`.

    Raises:
        UsageError: it contains findings of other settings, or as in `study_folder`.
    """
    noted = json.dumps(spec, indent=1) + "\n"
    with study_folder(out, force=force, secret=SECRET) as store:
        if force:
            for name in (FINDINGS, RUN, *_TABLES):
                remove(out / name)
        elif (out / FINDINGS).exists():
            _refuse_other(out, spec)
        if not (out / RUN).exists():
            private_text(out / RUN, noted)
        yield store
        private_text(out / RUN, noted)


def _refuse_other(out: Path, spec: dict[str, Any]) -> None:
    """Raise UsageError if settings differ, except for `ADDED`."""
    recorded = _recorded(out)
    others = [name for name in {**spec, **recorded} if name not in ADDED and spec.get(name) != recorded.get(name)]
    if others:
        flags = [name if name == "notes" else f"--{name.replace('_', '-')}" for name in others]
        what = f"of other settings: {', '.join(flags)}" if recorded else "without recorded settings"
        hint = "use another folder; --force removes the existing results, including models"
        raise UsageError(f"contains findings {what}", where=out.name, hint=hint)


def _recorded(out: Path) -> dict[str, Any]:
    """Return the settings recorded by an earlier run; empty if not readable."""
    try:
        found = json.loads((out / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def seed_of(out: Path) -> int | None:
    """Return the seed of an earlier run in the folder, so that the same command resumes it; None without one."""
    seed = _recorded(out).get("seed")
    return seed if type(seed) is int else None
