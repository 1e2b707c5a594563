"""The streams: the same rows for any chunk, worker count or consumer; batches and schemas;
restartable corpora.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from clinveil.core import InputError
from clinveil.corpus import ROLE_FIELDS
from clinveil.corpus.demo import (
    NOTES_SCHEMA,
    demo_chunks,
    demo_notes,
)
from clinveil.corpus.demo.notes import patient_notes


def rows(batches) -> list[dict]:
    return pa.Table.from_batches(batches).to_pylist()


def test_chunk_size_changes_no_row():
    whole = [chunk for chunk in demo_chunks(40, 3, chunk=40)]
    small = [chunk for chunk in demo_chunks(40, 3, chunk=7)]
    assert len(small) == 6
    assert rows([c.notes for c in small]) == rows([c.notes for c in whole])
    assert [p for c in small for p in c.patients] == whole[0].patients
    assert "".join(c.spans for c in small) == whole[0].spans


def test_workers_change_no_row():
    alone = [c for c in demo_chunks(60, 3, chunk=15)]
    together = [c for c in demo_chunks(60, 3, chunk=15, workers=2)]
    assert [c.notes.to_pylist() for c in together] == [c.notes.to_pylist() for c in alone]
    assert [c.patients for c in together] == [c.patients for c in alone]
    assert [c.spans for c in together] == [c.spans for c in alone]


def test_a_patient_does_not_depend_on_how_many_there_are():
    few = rows(demo_notes(5, 9))
    many = rows(demo_notes(25, 9))
    assert many[: len(few)] == few
    last, notes = patient_notes(9, 24)
    assert [note.text for note in notes] == [
        row["text"] for row in many if row["patient_id"] == last.patient_id
    ]


def test_the_schema_begins_with_the_roles():
    batch = next(demo_notes(3, 1))
    assert batch.schema == NOTES_SCHEMA
    assert list(batch.schema)[: len(ROLE_FIELDS)] == list(ROLE_FIELDS)
    assert not any(batch.column(name).null_count for name in batch.schema.names)


def test_note_ids_are_unique_and_belong_to_their_patient():
    found = rows(demo_notes(80, 1))
    assert len({row["note_id"] for row in found}) == len(found)
    assert all(row["note_id"].rpartition("-")[0] == row["patient_id"] for row in found)
    order = [row["patient_id"] for row in found]
    assert order == sorted(order)


@pytest.mark.parametrize("arguments", [(0, 1), (-1, 1), (5, -1)])
def test_impossible_sizes_are_refused(arguments: tuple[int, int]):
    with pytest.raises(InputError):
        list(demo_notes(*arguments))
