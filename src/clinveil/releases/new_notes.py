"""`NewNotes`: the notes of a source that were not released before.

A note released under the same id with the same letters is left out. A note with a changed text (an addendum) gets an
id derived from its text: draws are keyed by note id, and two texts must not share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns
from clinveil.corpus.open import OpenedCorpus
from clinveil.corpus.uniqueness import hashes
from clinveil.releases.ledger import Hashes, text_hashes
from clinveil.releases.parent import ParentRelease

LEFT_BEFORE = "released before"


@dataclass
class _Pass:
    """Counts of the last pass over the notes."""

    left_out: int = 0
    changed: int = 0
    patients: list[Hashes] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class NewNotes:
    """The notes of a source that are not part of a series of releases.

    Attributes:
        joint: whether the earlier source notes are available and searched together with these.

    Raises InputError if only one of source and release has patient ids.
    """

    source: OpenedCorpus
    base: ParentRelease
    joint: bool = False
    _last: _Pass = field(default_factory=_Pass, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.columns.patient_id is None) != (self.base.manifest["notes"]["patient"] is None):
            some, none = "has patient ids", "has none"
            mine, theirs = (none, some) if self.columns.patient_id is None else (some, none)
            what = f"the file {mine}, the release that it is added to {theirs}"
            raise InputError(what, where=self.source.name, hint="pass --patient COLUMN to choose the patient id")

    @property
    def columns(self) -> Columns:
        """Column roles of the source."""
        return self.source.columns

    @property
    def suffix(self) -> str:
        """File suffix of the source."""
        return self.source.suffix

    @property
    def skipped(self) -> Counter[str]:
        """Rows left out in the last pass, by reason."""
        return self.source.skipped + Counter({LEFT_BEFORE: self._last.left_out})

    @property
    def changed(self) -> int:
        """Notes of the last pass that were released before with another text."""
        return self._last.changed

    def patients(self) -> tuple[int, int]:
        """Return the numbers of patients with and without released notes in the last pass."""
        met = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._last.patients]))
        known = int(np.isin(met, self.base.known.patients, assume_unique=True).sum())
        return known, met.size - known

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all new notes in source order. Raises InputError if there are none."""
        last = self._last
        last.left_out, last.changed, rows = 0, 0, 0
        last.patients.clear()
        for batch in self.source.batches():
            new = self._new(batch)
            if new.num_rows:
                last.patients.append(np.unique(hashes(_patients(new))))
                rows += new.num_rows
                yield new
        if not rows and last.left_out:
            what = f"all {last.left_out} notes were released before, in release {self.base.run}"
            raise InputError(what, where=self.source.name, hint="pass a file with new notes")

    def _new(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch.column(NOTE_ID).to_pylist()
        known = np.flatnonzero(np.isin(hashes(ids), self.base.known.notes))
        if not known.size:
            return batch
        stays = np.ones(len(ids), dtype=np.bool_)
        texts = batch.column(TEXT).take(pa.array(known)).to_pylist()
        for row, text in zip(known.tolist(), texts, strict=True):
            letters = text_hashes([text])
            if not letters.size or self.base.left.holds(letters)[0]:
                stays[row] = False
            else:
                ids[row] = f"{ids[row]}#{self.base.key.digest('changed note', ids[row], str(letters[0])):016x}"
        self._last.left_out += int((~stays).sum())
        self._last.changed += int(stays[known].sum())
        place = batch.schema.get_field_index(NOTE_ID)
        renamed = batch.set_column(place, batch.schema.field(place), pa.array(ids, batch.schema.field(place).type))
        return renamed.filter(pa.array(stays))


def _patients(batch: pa.RecordBatch) -> list[str]:
    """Return the patient id of each note; the note id where it is missing."""
    both = zip(*(batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID)), strict=True)
    return [note if patient is None else patient for note, patient in both]
