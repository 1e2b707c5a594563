"""Columns of synthetic notes: read the label columns of the source, and write notes under the
source's column names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import Any

import pyarrow as pa

from clinveil.core import NO_MARKS, InputError
from clinveil.corpus import NOTE_ID, PATIENT_ID, ROLE_FIELDS, Corpus
from clinveil.lm import RARE, PlainNotes, SyntheticNote, numbered, read_notes

MOST_VALUES = 50  # of a column
BATCH = 100
Label = tuple[str, ...]


@dataclass(frozen=True)
class LabelColumns:
    """The label columns of the source.

    Attributes:
        fields: of each column, in order. values: by column name, the source's value of each text
            value.
        labels: shared combinations of values, by number. of_note: number of the label by note id,
            or RARE.
    """

    fields: tuple[pa.Field, ...]
    values: dict[str, dict[str, Any]] = field(repr=False)
    labels: tuple[Label, ...]
    of_note: dict[str, int] = field(repr=False)

    @classmethod
    def read(
        cls, corpus: Corpus, floor: int, *, apart: AbstractSet[str] = frozenset()
    ) -> LabelColumns:
        """Read the kept columns of all notes.

        apart: test patients, who do not count for the patient floor of a combination of values.

        Raises InputError for a column with empty values, lists, too many values, or values of fewer
        than `floor` patients.
        """
        names = corpus.columns.keep
        fields = dict[str, pa.Field]()
        ids = list[str]()
        patients = list[str]()
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for batch in corpus.batches():
            fields |= {name: batch.schema.field(name) for name in names}
            ids += batch.column(NOTE_ID).to_pylist()
            owners = batch.column(PATIENT_ID).to_pylist()
            patients += [
                note if owner is None else owner
                for note, owner in zip(ids[-len(owners) :], owners, strict=True)
            ]
            for name in names:
                columns[name] += batch.column(name).to_pylist()
        for name, values in columns.items():
            _refuse(name, values, patients, floor)
        written = {
            name: {str(value): value for value in values} for name, values in columns.items()
        }
        rows = list(
            zip(*([str(v) for v in values] for values in columns.values()), strict=True)
        ) or [()] * len(ids)
        kept, of = numbered(rows, patients, floor if names else 1, apart=apart)
        labels = tuple(row for row in kept if isinstance(row, tuple))
        return cls(
            tuple(fields[name] for name in names), written, labels, dict(zip(ids, of, strict=True))
        )

    def notes(self, corpus: Corpus, *, placeholders: bool) -> PlainNotes:
        """Return the notes of the treated corpus with their labels; without `placeholders`, their
        marks are removed.
        """
        plain = read_notes(corpus, layout=True)
        texts = (
            plain.texts if placeholders else tuple(text.translate(NO_MARKS) for text in plain.texts)
        )
        return replace(
            plain,
            texts=texts,
            labels=tuple(self.of_note.get(note, RARE) for note in plain.note_ids),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of names and values in order, for a model that has the numbers of the labels
        only.
        """
        return sha256(repr(([one.name for one in self.fields], self.labels)).encode()).hexdigest()

    def named(self, label: int) -> dict[str, str]:
        """Return the values of a label by column name."""
        return {one.name: value for one, value in zip(self.fields, self.labels[label], strict=True)}

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Text before the notes of each label, for models that are conditioned by text."""
        return tuple(
            "".join(f"{name}: {value}\n" for name, value in self.named(label).items())
            for label in range(len(self.labels))
        )

    def batches(self, notes: Iterable[SyntheticNote]) -> Iterator[pa.RecordBatch]:
        """Yield notes as batches with new note and patient ids and the columns of the source."""
        rest = iter(notes)
        number = 0
        while some := list(islice(rest, BATCH)):
            ids = [f"synthetic-{number + row:06d}" for row in range(1, len(some) + 1)]
            number += len(some)
            columns: list[list[Any]] = [ids, [f"patient-{note.patient + 1:06d}" for note in some]]
            columns.append([note.text for note in some])
            columns += [
                [self.values[one.name][note.labels[one.name]] for note in some]
                for one in self.fields
            ]
            schema = pa.schema([*ROLE_FIELDS, *self.fields])
            arrays = [pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)]
            yield pa.record_batch(arrays, schema=schema)


def _refuse(name: str, values: list[Any], patients: list[str], floor: int) -> None:
    """Raise InputError for a column that cannot be a label; the message shows no value."""
    where = f"column '{name}'"
    # NaN.
    if empty := sum(
        value is None or value != value or str(value).strip() == "" for value in values
    ):
        raise InputError(
            f"{empty:,} notes have no value",
            where=where,
            hint="fill it in, or leave the column out",
        )
    if any(isinstance(value, list | dict) for value in values):
        raise InputError(
            "contains lists", where=where, hint="pass a column with one value per note"
        )
    holders: dict[Any, set[str]] = defaultdict(set)
    for value, patient in zip(values, patients, strict=True):
        holders[value].add(patient)
    if len(holders) > MOST_VALUES:
        message = (
            f"has {len(holders):,} different values; a label of synthetic notes has at most"
            f" {MOST_VALUES}"
        )
        raise InputError(message, where=where, hint="group the values, or leave the column out")
    if rare := sum(len(who) < floor for who in holders.values()):
        message = (
            f"{rare} of {len(holders)} values occur with fewer than {floor} patients"
            " (channel.min_patients)"
        )
        raise InputError(message, where=where, hint="merge these values, or leave the column out")
