"""Test patients of a run: the table in its vault, and the notes without theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clinveil.core import InputError, atomic
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, Columns, Corpus

TABLE = "test_patients.parquet"
SCHEMA = pa.schema([("patient_id", pa.string()), ("held_out", pa.bool_())])
UNREAD = b"clinveil.unread"


@dataclass(frozen=True)
class PatientSubset:
    """The notes of a corpus by patient; a note without a patient id is a patient of its own.

    Attributes:
        patients: patient ids. inside: whether the notes of these patients, or all others, are in
            the subset.
    """

    corpus: Corpus
    patients: frozenset[str] = field(repr=False)
    inside: bool

    @property
    def columns(self) -> Columns:
        """Roles of the source's columns."""
        return self.corpus.columns

    @property
    def suffix(self) -> str:
        """Format of the source."""
        return self.corpus.suffix

    @property
    def skipped(self) -> Counter[str]:
        """Rows that the last pass over the source left out, by reason."""
        return self.corpus.skipped

    @cached_property
    def parts(self) -> tuple[PatientSubset, ...]:
        """The same subset of each part file; empty for a corpus without parts."""
        parts = getattr(self.corpus, "parts", ())
        return tuple(PatientSubset(part, self.patients, self.inside) for part in parts)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the subset, from the start, in source order."""
        wanted = pa.array(sorted(self.patients), pa.string())
        for batch in self.corpus.batches():
            owners = pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID))
            is_held_out = pc.is_in(owners, value_set=wanted)
            yield batch.filter(is_held_out if self.inside else pc.invert(is_held_out))


@dataclass(frozen=True)
class HeldOutPatients:
    """The test patients of a run.

    Attributes:
        patients: source ids of the test patients. training: those of all others.
        unread: whether it is known that no model of the release has read notes of the test
            patients.
    """

    patients: frozenset[str] = field(repr=False)
    training: frozenset[str] = field(repr=False)
    unread: bool = True

    def without(self, corpus: Corpus) -> Corpus:
        """Return the notes for training."""
        return PatientSubset(corpus, self.patients, inside=False) if self.patients else corpus

    def and_of(self, earlier: HeldOutPatients | None) -> HeldOutPatients:
        """Return the sides of these patients, and of those of an earlier run."""
        if earlier is None:
            return self
        training = self.training | (earlier.training - self.patients)
        return HeldOutPatients(
            self.patients | (earlier.patients - self.training), training, self.unread
        )

    def write(self, vault: Path) -> None:
        """Write the sides of all patients to a vault."""
        ids = [*sorted(self.patients), *sorted(self.training)]
        sides = [True] * len(self.patients) + [False] * len(self.training)
        schema = SCHEMA.with_metadata({UNREAD: b"yes" if self.unread else b"no"})
        table = pa.table({"patient_id": ids, "held_out": sides}, schema=schema)
        with atomic(vault / TABLE, force=True) as part:
            pq.write_table(table, part)

    @classmethod
    def read(cls, vault: Path) -> HeldOutPatients | None:
        """Return the split of a vault; None if it has none. Raises InputError if it cannot be
        read.
        """
        if not (vault / TABLE).exists():
            return None
        try:
            table = pq.read_table(vault / TABLE).select(SCHEMA.names)
            unread = (table.schema.metadata or {}).get(UNREAD) == b"yes"
        except (OSError, KeyError, pa.ArrowException):
            hint = "restore it from a backup"
            raise InputError(f"{TABLE} cannot be read", where=vault.name, hint=hint) from None
        sides: dict[bool, set[str]] = {True: set(), False: set()}
        for patient, held_out in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            sides[held_out].add(patient)
        return cls(frozenset(sides[True]), frozenset(sides[False]), unread)


class SourceIds(dict[str, str]):
    """Released note id -> source note id; empty for notes without a source.

    split: test patients of the run, if known.
    """

    split: HeldOutPatients | None = None
