"""Data shared by all models of one audit, in a folder: encoded notes, vocabulary, and left-out units."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.random import Generator

from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.core.errors import InputError
from clinveil.core.files import private_folder, private_text, save_array
from clinveil.core.types import Ints
from clinveil.lm.notes import EncodedNotes, PlainNotes, encode, joined
from clinveil.lm.train import make_vocabulary
from clinveil.lm.vocabulary import Ids, Vocabulary, vocabulary_of

BEGINNING = "Patient name :"  # of a planted line
NAMES = ("ids", "offsets", "characters")


@dataclass(frozen=True)
class AuditData:
    """The notes of an audit."""

    encoded: EncodedNotes  # of training
    vocabulary: Vocabulary
    units: tuple[Ints, ...] = field(repr=False)  # rows of the notes of each audited unit
    validation: EncodedNotes | None = None  # held out for an annealed schedule
    # Per unit, the first token of its planted name and one past the last; empty without one.
    planted: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

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
        return {"units": units, "planted": [list(p) for p in self.planted], "vocabulary": self.vocabulary.as_dict()}

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
        validation = _notes(folder, "validation") if (folder / "validation-ids.npy").exists() else None
        units = tuple(np.array(rows, dtype=np.int64) for rows in plain["units"])
        planted = tuple(tuple(p) for p in plain["planted"])
        vocabulary = vocabulary_of(plain["vocabulary"])
        return AuditData(_notes(folder, "training"), vocabulary, units, validation, planted)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        raise InputError("contains no audit data", where=folder.name, hint="run again with --force") from None


def _notes(folder: Path, part: str) -> EncodedNotes:
    return EncodedNotes(*(np.load(folder / f"{part}-{name}.npy", allow_pickle=False) for name in NAMES))


def pick_units(notes: PlainNotes, n: int, rng: Generator, *, by_note: bool = False) -> list[list[int]]:
    """Select random units to leave out, as rows: patients at evenly spaced lengths, or single notes.

    Units are sorted by length, split into `n` groups of equal size, and one is drawn from each.

    Raises:
        InputError: no unit would remain for training.
    """
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(str(row) if by_note else patient, []).append(row)
    if len(groups) <= n:
        what = f"{len(groups)} {'notes' if by_note else 'patients'} are too few to leave {n} out"
        raise InputError(what, hint="use smaller --units")
    lengths = {name: sum(len(notes.texts[row]) for row in rows) for name, rows in groups.items()}
    order = sorted(groups, key=lambda name: (lengths[name], name))
    strata = np.array_split(np.arange(len(order)), n)
    return [groups[order[int(rng.choice(stratum))]] for stratum in strata]


def hold_out(notes: PlainNotes, units: Sequence[Sequence[int]], rng: Generator, share: float = 0.1) -> list[int]:
    """Return rows of patients who are not audited, about `share` of all: validation notes of an annealed schedule."""
    audited = {notes.patients[row] for rows in units for row in rows}
    free = sorted(set(notes.patients) - audited)
    if not free:
        raise InputError("no patient remains for validation", hint="use smaller --units, or --schedule fixed")
    wanted = max(1, round(share * len(set(notes.patients))))
    chosen = {free[i] for i in rng.permutation(len(free))[:wanted]}
    return [row for row, patient in enumerate(notes.patients) if patient in chosen]


def invented_names(texts: Sequence[str], n: int, rng: Generator) -> list[tuple[str, str]]:
    """Return full names of words that occur in no note, each word used once. Raises InputError if too few exist."""
    from clinveil.lexicons.names import all_given_names, surnames

    known = {word.lower() for text in texts for word in text.split()}
    pools = []
    for names in (all_given_names(), surnames()):
        free = [name.capitalize() for name in sorted(names) if name.lower() not in known and name.isalpha()]
        if len(free) < n:
            raise InputError("there are not enough names that occur in no note", hint="use smaller --units")
        pools.append([free[i] for i in rng.permutation(len(free))[:n]])
    return list(zip(*pools, strict=True))


@dataclass(frozen=True)
class Planted:
    """A planted name: the text of its note before the name, and to the end of the name."""

    name: tuple[str, str] = field(repr=False)
    before: str = field(repr=False)
    until: str = field(repr=False)

    def place(self, vocabulary: Vocabulary) -> tuple[int, int]:
        """Return the tokens of the name, first and one past the last."""
        closing = 2 if vocabulary.kind == "words" else 1  # end of line and end of note
        return vocabulary.encode(self.before).size - closing, vocabulary.encode(self.until).size - closing


def plant(notes: PlainNotes, units: Sequence[Sequence[int]], rng: Generator) -> tuple[PlainNotes, list[Planted | None]]:
    """Plant a line that names the patient, in the first note of a random half of the units.

    Returns the notes, and for each unit what was planted, or None.
    """
    n = len(units) // 2
    chosen = sorted(int(i) for i in rng.permutation(len(units))[:n])
    planted: list[Planted | None] = [None] * len(units)
    texts = list(notes.texts)
    for unit, name in zip(chosen, invented_names(notes.texts, n, rng), strict=True):
        row = units[unit][0]
        lines = texts[row].split("\n")
        at = int(rng.integers(len(lines) + 1))
        before = "\n".join([*lines[:at], BEGINNING])
        until = f"{before} {' '.join(name)}"
        texts[row] = "\n".join([f"{until} .", *lines[at:]])
        planted[unit] = Planted(name, before, until)
    return PlainNotes(tuple(texts), notes.note_ids, notes.patients), planted


def prepare(
    notes: PlainNotes,
    units: Sequence[Sequence[int]],
    settings: LeaveOutSettings,
    rng: Generator,
    *,
    vocabulary: Vocabulary | None = None,
    validation: PlainNotes | None = None,
) -> AuditData:
    """Plant names if requested, and encode; the vocabulary is that of all notes, as in paper C.

    Args:
        units: rows of the notes of each audited unit, from `pick_units`.
        vocabulary: to use instead of one made from the notes.
        validation: for an annealed schedule, instead of a tenth of the patients, who are then not trained on.

    Raises:
        InputError: too few patients. MissingExtra: byte pairs without `tokenizers`.
    """
    planted: list[Planted | None] = []
    if settings.plant_names:
        notes, planted = plant(notes, units, rng)
    recipe = settings.audit_recipe()
    annealed = recipe is not None and recipe.schedule == "annealed"
    aside = hold_out(notes, units, rng) if annealed and validation is None else []
    if vocabulary is None:
        always = [word for one in planted if one for word in one.name]
        vocabulary = make_vocabulary(notes, settings.lm, always=always)
    kept = sorted(set(range(len(notes))) - set(aside))
    place = {row: new for new, row in enumerate(kept)}
    return AuditData(
        encode(notes.rows(kept).texts, vocabulary),
        vocabulary,
        tuple(np.array([place[row] for row in rows], dtype=np.int64) for rows in units),
        encode((validation or notes.rows(aside)).texts, vocabulary) if annealed else None,
        tuple(one.place(vocabulary) if one else () for one in planted),
    )
