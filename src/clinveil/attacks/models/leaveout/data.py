"""What every model of one audit shares, in a folder: the notes as numbers, the vocabulary, and who is left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.files import private_folder, private_text, save_array
from clinveil.lm.notes import EncodedNotes, PlainNotes
from clinveil.lm.vocabulary import Ids, Vocabulary, vocabulary_of

Rows = NDArray[np.int64]
NAMES = ("ids", "offsets", "characters")


@dataclass(frozen=True)
class AuditData:
    """The notes of an audit.

    Attributes:
        encoded: the training notes. units: rows of the notes of each audited unit.
        validation: notes kept aside for an annealed schedule, or None.
        planted: of each unit the first token of its planted name and one past the last; empty where none was planted.
    """

    encoded: EncodedNotes
    vocabulary: Vocabulary
    units: tuple[Rows, ...] = field(repr=False)
    validation: EncodedNotes | None = None
    planted: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    def notes_of(self, unit: int) -> list[Ids]:
        """The notes of a unit."""
        return [self.encoded.note(int(row)) for row in self.units[unit]]

    @property
    def digest(self) -> str:
        """A hash of all of it."""
        hashed = hashlib.sha256(json.dumps(self._plain(), sort_keys=True).encode())
        for notes in (self.encoded, self.validation):
            for name in NAMES if notes is not None else ():
                hashed.update(getattr(notes, name).tobytes())
        return hashed.hexdigest()[:32]

    def _plain(self) -> dict[str, object]:
        units = [rows.tolist() for rows in self.units]
        return {"units": units, "planted": [list(p) for p in self.planted], "vocabulary": self.vocabulary.as_dict()}

    def save(self, folder: Path) -> None:
        """Write it, unless it is there."""
        if (folder / "data.json").exists():
            return
        private_folder(folder)
        for part, notes in (("training", self.encoded), ("validation", self.validation)):
            for name in NAMES if notes is not None else ():
                save_array(folder / f"{part}-{name}.npy", getattr(notes, name))
        private_text(folder / "data.json", json.dumps(self._plain()))


def load_data(folder: Path) -> AuditData:
    """Read what `save` wrote. Raises InputError if it is not there."""
    try:
        plain = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        validation = _notes(folder, "validation") if (folder / "validation-ids.npy").exists() else None
        units = tuple(np.array(rows, dtype=np.int64) for rows in plain["units"])
        planted = tuple(tuple(p) for p in plain["planted"])
        vocabulary = vocabulary_of(plain["vocabulary"])
        return AuditData(_notes(folder, "training"), vocabulary, units, validation, planted)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        raise InputError("holds no data of an audit", where=folder.name, remedy="run again with --force") from None


def _notes(folder: Path, part: str) -> EncodedNotes:
    return EncodedNotes(*(np.load(folder / f"{part}-{name}.npy", allow_pickle=False) for name in NAMES))


def pick_units(notes: PlainNotes, n: int, rng: Generator, *, by_note: bool = False) -> list[list[int]]:
    """Random units to leave out, as rows: patients spread evenly over their lengths, or single notes.

    Units are sorted by length, cut into `n` groups of equal size, and one is drawn from each.

    Raises:
        InputError: no unit would be left to train on.
    """
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(str(row) if by_note else patient, []).append(row)
    if len(groups) <= n:
        what = f"{len(groups)} {'notes' if by_note else 'patients'} are too few to leave {n} out"
        raise InputError(what, remedy="smaller --units")
    lengths = {name: sum(len(notes.texts[row]) for row in rows) for name, rows in groups.items()}
    order = sorted(groups, key=lambda name: (lengths[name], name))
    strata = np.array_split(np.arange(len(order)), n)
    return [groups[order[int(rng.choice(stratum))]] for stratum in strata]


def keep_aside(notes: PlainNotes, taken: Sequence[Sequence[int]], rng: Generator, share: float = 0.1) -> list[int]:
    """Rows of patients who are not audited, about `share` of all: validation notes of an annealed schedule."""
    audited = {notes.patients[row] for rows in taken for row in rows}
    free = sorted(set(notes.patients) - audited)
    if not free:
        raise InputError("no patient is left for validation", remedy="smaller --units, or --schedule fixed")
    wanted = max(1, round(share * len(set(notes.patients))))
    chosen = {free[i] for i in rng.permutation(len(free))[:wanted]}
    return [row for row, patient in enumerate(notes.patients) if patient in chosen]
