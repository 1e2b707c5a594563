"""Settings of an audit, its folder, and the data shared by its models: encoded notes, vocabulary,
left-out units.

The folder records the settings of its findings, so that findings of other settings do not replace
them unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.random import Generator
from pydantic import model_validator

from clinveil.core import (
    FORCE,
    QUIET,
    SEED,
    WORKERS,
    FolderKind,
    InputError,
    Ints,
    LabelledNotesSettings,
    Settings,
    UsageError,
    files_in,
    group,
    private_folder,
    private_text,
    read_json,
    refuse_more,
    remove,
    run_folder,
    save_array,
    setting,
)
from clinveil.lm import (
    PRETRAINED,
    EncodedNotes,
    Ids,
    ModelSettings,
    PlainNotes,
    Recipe,
    Vocabulary,
    encode,
    joined,
    make_vocabulary,
    vocabulary_of,
)
from clinveil.scale import Store

NAMES = ("ids", "offsets", "characters")
FINDINGS = "findings.json"
RUN = "run.json"
_TABLES = ("units-model.csv", "units-text.csv")
ADDED = ("from_text", "reseeds", "seeds")  # may change: the models of an earlier run are used again
SECRET = """SECRET: all of this folder. It must not leave.

tasks/ contains the encoded notes with their vocabulary, the left-out units, the log-probability
that each of the language models gives every word of the audited patients and, with from_text, notes
that the models generated. findings.json and units-*.csv (one row per unit) contain only numbers,
but they show how well the attack works on these notes. run.json contains settings and hashes.
"""
AUDIT = FolderKind(
    "folder of `attack leaveout`",
    notes={"SECRET.txt": SECRET},
    known=lambda is_marked, names: is_marked and (not names or "tasks" in names),
)
Mode = Literal["exact", "compat", "unigram"]


@dataclass(frozen=True)
class AuditData:
    """The notes of an audit."""

    encoded: EncodedNotes  # of training
    vocabulary: Vocabulary
    units: tuple[Ints, ...] = field(repr=False)  # rows of the notes of each audited unit
    validation: EncodedNotes | None = None  # held out for paper C's training

    def notes_of(self, unit: int) -> list[Ids]:
        """Return the notes of a unit."""
        return [self.encoded.note(int(row)) for row in self.units[unit]]

    def without(self, unit: int | None) -> EncodedNotes:
        """Return the training notes; with a unit, the others in their order."""
        if unit is None:
            return self.encoded
        kept = np.setdiff1d(np.arange(len(self.encoded)), self.units[unit])
        return joined([self.encoded.note(int(row)) for row in kept], self.encoded.characters[kept])

    @property
    def digest(self) -> str:
        """Return a hash of all data."""
        hashed = hashlib.sha256(json.dumps(self._plain(), sort_keys=True).encode())
        for notes in (self.encoded, self.validation):
            for name in NAMES if notes is not None else ():
                hashed.update(getattr(notes, name).tobytes())
        return hashed.hexdigest()[:32]

    def _plain(self) -> dict[str, object]:
        units = [rows.tolist() for rows in self.units]
        return {"units": units, "vocabulary": self.vocabulary.as_dict()}

    def save(self, root: Path) -> Path:
        """Write to the folder of its digest below `root`, unless it exists; returns that folder."""
        folder = root / self.digest
        if not (folder / "data.json").exists():
            private_folder(folder)
            for part, notes in (("training", self.encoded), ("validation", self.validation)):
                for name in NAMES if notes is not None else ():
                    save_array(folder / f"{part}-{name}.npy", getattr(notes, name))
            private_text(folder / "data.json", json.dumps(self._plain()))
        return folder


def load_data(folder: Path) -> AuditData:
    """Read the output of `AuditData.save`. Raises InputError if it does not exist."""
    try:
        plain = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        validation = (
            _notes(folder, "validation") if (folder / "validation-ids.npy").exists() else None
        )
        units = tuple(np.array(rows, dtype=np.int64) for rows in plain["units"])
        vocabulary = vocabulary_of(plain["vocabulary"])
        return AuditData(_notes(folder, "training"), vocabulary, units, validation)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        raise InputError(
            "contains no audit data", where=folder.name, hint="run again with --force"
        ) from None


def _notes(folder: Path, part: str) -> EncodedNotes:
    return EncodedNotes(
        *(np.load(folder / f"{part}-{name}.npy", allow_pickle=False) for name in NAMES)
    )


def pick_units(notes: PlainNotes, n: int, rng: Generator) -> list[list[int]]:
    """Select random patients to leave out, as the rows of their notes, at evenly spaced lengths.

    Patients are sorted by length, split into `n` groups of equal size, and one is drawn from each.

    Raises:
        InputError: no unit would remain for training.
    """
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(patient, []).append(row)
    if len(groups) <= n:
        raise InputError(
            f"{len(groups)} patients are too few to leave {n} out", hint="use smaller units"
        )
    lengths = {name: sum(len(notes.texts[row]) for row in rows) for name, rows in groups.items()}
    order = sorted(groups, key=lambda name: (lengths[name], name))
    strata = np.array_split(np.arange(len(order)), n)
    return [groups[order[int(rng.choice(stratum))]] for stratum in strata]


def hold_out(notes: PlainNotes, units: Sequence[Sequence[int]], rng: Generator) -> list[int]:
    """Return rows of patients who are not audited, about a tenth of all: validation notes of paper
    C's training.
    """
    audited = {notes.patients[row] for rows in units for row in rows}
    free = sorted(set(notes.patients) - audited)
    if not free:
        raise InputError(
            "no patient remains for validation", hint="use smaller units, or --mode exact"
        )
    wanted = max(1, round(len(set(notes.patients)) / 10))
    chosen = {free[i] for i in rng.permutation(len(free))[:wanted]}
    return [row for row, patient in enumerate(notes.patients) if patient in chosen]


def prepare(
    notes: PlainNotes,
    units: Sequence[Sequence[int]],
    settings: LeaveOutSettings,
    rng: Generator,
    *,
    vocabulary: Vocabulary | None = None,
    validation: PlainNotes | None = None,
) -> AuditData:
    """Encode the notes; the vocabulary is that of all notes, as in paper C.

    Args:
        units: rows of the notes of each audited unit, from `pick_units`.
        vocabulary: to use instead of one made from the notes.
        validation: for paper C's training, instead of a tenth of the patients, who are then not
            trained on.

    Raises:
        InputError: too few patients. MissingExtra: byte pairs without `tokenizers`.
    """
    recipe = settings.audit_recipe()
    annealed = recipe is not None and recipe.plan == "stream"
    aside = hold_out(notes, units, rng) if annealed and validation is None else []
    if vocabulary is None:
        vocabulary = make_vocabulary(notes, settings.lm)
    kept = sorted(set(range(len(notes))) - set(aside))
    place = {row: new for new, row in enumerate(kept)}
    return AuditData(
        encode(notes.rows(kept).texts, vocabulary),
        vocabulary,
        tuple(np.array([place[row] for row in rows], dtype=np.int64) for rows in units),
        encode((validation or notes.rows(aside)).texts, vocabulary) if annealed else None,
    )


class LeaveOutSettings(Settings):
    """Settings of the S-PDTP measurement."""

    lm: ModelSettings = group(ModelSettings)
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    workers: int = WORKERS
    seed: int | None = SEED
    quiet: bool = QUIET
    force: bool = FORCE
    mode: Mode = setting(
        "exact",
        "Exact, as in paper C (compat), or the closed form of a unigram.",
        flag="variant",
    )
    units: int = setting(30, "Patients to leave out, one at a time (paper: 30 notes).", ge=2)
    reseeds: int = setting(3, "Models of all notes with other seeds: the reseed floor.", ge=0)
    seeds: int = setting(
        2, "Training seeds per left-out unit, across which the effect is measured.", ge=1
    )
    from_text: bool = setting(False, "Also score by n-grams of notes generated with each model.")
    prepared: bool = setting(False, "NOTES are in MedText form already.")
    max_hours: float = setting(8.0, "Maximum estimated training time in hours.", gt=0)

    @model_validator(mode="after")
    def _can_be_left_out(self) -> Self:
        if self.lm.model == PRETRAINED:
            raise ValueError(f"lm.model {PRETRAINED} is for releases with synthetic.init only")
        if self.mode == "unigram" and self.from_text:
            hint = "use mode=exact with lm.model=unigram"
            raise ValueError(f"from_text is not available with mode=unigram (closed form): {hint}")
        return self

    def audit_recipe(self) -> Recipe | None:
        """Return the training recipe: independent notes, or paper C's stream; None for counts."""
        if not self.lm.neural:
            return None
        recipe = self.lm.recipe()
        if self.mode == "exact":
            return replace(recipe, plan="rows")
        return replace(recipe, plan="stream")


def run_spec(notes: PlainNotes, settings: LeaveOutSettings, seed: int) -> dict[str, Any]:
    """Return everything that the findings of an audit depend on, ready for JSON.

    Raises UsageError for an inconsistent recipe.
    """
    recipe = settings.audit_recipe()
    words = settings.lm.word_vocabulary
    own: dict[str, Any] = {
        "mode": settings.mode,
        "model": settings.lm.model,
        "units": settings.units,
        "device": settings.lm.device,
        "seed": seed,
        "notes": _hash(notes),
        "vocabulary": "words" if words else "bytes",
    }
    size = "min_count" if words else "vocabulary_size"
    own[size] = getattr(settings.lm, size)
    own |= {
        name: value
        for name, value in (recipe.as_dict() if recipe else {}).items()
        if name != "kind"
    }
    return own | {
        "from_text": settings.from_text,
        "reseeds": settings.reseeds,
        "seeds": settings.seeds,
    }


def _hash(notes: PlainNotes) -> str:
    rows = [notes.texts, notes.note_ids, notes.patients]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]


@contextmanager
def audit_folder(out: Path, spec: dict[str, Any], *, force: bool = False) -> Iterator[Store]:
    """Open a folder for one audit (`run_spec`): a new one, or that of the same settings except
    `ADDED`.

    Args:
        force: start over: remove models and findings of an earlier audit, and nothing else.

    Raises:
        UsageError: the folder is not an audit's, contains findings of other settings or foreign
            files, or is in use by another run.
    """
    noted = json.dumps(spec, indent=1) + "\n"
    with run_folder(out, AUDIT):
        if force:
            _refuse_foreign_tasks(out)
            for name in ("tasks", FINDINGS, RUN, *_TABLES):
                remove(out / name)
        elif (out / FINDINGS).exists():
            _refuse_other(out, spec)
        if not (out / RUN).exists():
            private_text(out / RUN, noted)
        yield Store(private_folder(out / "tasks"))
        private_text(out / RUN, noted)


def _refuse_foreign_tasks(out: Path) -> None:
    """Raise UsageError for foreign files among the tasks or in the folder of a finished task."""
    tasks = out / "tasks"
    names = {item.name for item in tasks.iterdir()} if tasks.is_dir() else set()
    refuse_more(out, names, filter(re.compile("[0-9a-f]{32}").fullmatch, names))
    for done in tasks.glob("*/done"):
        listed = read_json(done)
        written = map(str, listed) if isinstance(listed, list) else ()
        refuse_more(done.parent, files_in(done.parent), {"done", *written})


def _refuse_other(out: Path, spec: dict[str, Any]) -> None:
    """Raise UsageError if settings differ, except for `ADDED`."""
    recorded = _recorded(out)
    others = [
        name
        for name in {**spec, **recorded}
        if name not in ADDED and spec.get(name) != recorded.get(name)
    ]
    if others:
        what = (
            f"of other settings: {', '.join(others)}" if recorded else "without recorded settings"
        )
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
    """Return the seed of an earlier run in the folder, so that the same command resumes it; None
    without one.
    """
    seed = _recorded(out).get("seed")
    return seed if type(seed) is int else None
