"""`NewNotes`: what of some notes did not leave before, as a corpus.

A note that left under the same id and says the same, letter for letter, is left out. One that says something else now
(an addendum) is a note of its own, under an id that its text is part of: draws are keyed by the note's id, and two
texts must not share them.
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
    """What the last pass over the notes met."""

    left_out: int = 0
    changed: int = 0
    patients: list[Hashes] = field(default_factory=list, repr=False)


@dataclass(frozen=True)
class NewNotes:
    """The notes of a source that did not leave in a release, or in those that it was added to.

    Attributes:
        beside: whether the notes that left are at hand, and heard with these.

    Raises InputError where the source names no patients and the release has them, or the other way round.
    """

    source: OpenedCorpus
    base: ParentRelease
    beside: bool = False
    _last: _Pass = field(default_factory=_Pass, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.columns.patient_id is None) != (self.base.manifest["notes"]["patient"] is None):
            some, none = "names patients", "names no patients"
            mine, theirs = (none, some) if self.columns.patient_id is None else (some, none)
            hint = "both must do the same: --patient names their column"
            what = f"it {mine}, and the release that is added to {theirs}"
            raise InputError(what, where=self.source.name, hint=hint)

    @property
    def columns(self) -> Columns:
        """The roles of the source's columns."""
        return self.source.columns

    @property
    def suffix(self) -> str:
        """The format of the source."""
        return self.source.suffix

    @property
    def skipped(self) -> Counter[str]:
        """Rows that the last pass left out, by reason."""
        return self.source.skipped + Counter({LEFT_BEFORE: self._last.left_out})

    @property
    def changed(self) -> int:
        """Notes of the last pass that left before with another text."""
        return self._last.changed

    def patients(self) -> tuple[int, int]:
        """How many patients of the last pass have released notes already, and how many have none."""
        met = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._last.patients]))
        known = int(np.isin(met, self.base.known.patients, assume_unique=True).sum())
        return known, met.size - known

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them, from the start, in source order. Raises InputError where there is none."""
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
            what = f"all {last.left_out} notes left before, in release {self.base.run}"
            raise InputError(what, where=self.source.name, hint="there is nothing to add")

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
    """The patient of each note; a note without one is its own."""
    both = zip(*(batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID)), strict=True)
    return [note if patient is None else patient for note, patient in both]
