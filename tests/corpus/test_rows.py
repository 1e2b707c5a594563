"""The one way to read notes row by row."""

import pyarrow as pa
import pytest

from clinveil.corpus import (
    NOTE_ID,
    PATIENT_ID,
    TEXT,
    Note,
    memory_corpus,
    rows,
    rows_with,
    with_texts,
)

NOTES = [("n1", "p1", "one"), ("n2", "p1", None), ("n3", "p2", "")]


def test_a_note_without_a_text_is_left_out_and_an_empty_one_is_not():
    corpus = memory_corpus(NOTES)
    assert list(rows(corpus)) == [("n1", "p1", "one"), ("n3", "p2", "")]
    assert list(rows(corpus.batches())) == list(rows(corpus))


@pytest.mark.parametrize("patients", [True, False])
def test_a_note_without_a_patient_is_its_own(patients):
    (batch,) = memory_corpus([("n1", None, "one")]).batches()
    assert list(rows([batch if patients else batch.drop_columns([PATIENT_ID])])) == [
        ("n1", "n1", "one")
    ]


def test_more_columns_go_along():
    (batch,) = memory_corpus(NOTES).batches()
    batch = batch.append_column("label", pa.array([1, 2, None]))
    assert [(note.note_id, values) for note, values in rows_with([batch], "label")] == [
        ("n1", (1,)),
        ("n3", (None,)),
    ]
    with pytest.raises(KeyError):
        list(rows_with([batch], "other"))


def test_other_texts_and_what_has_none_goes():
    (batch,) = memory_corpus(NOTES).batches()
    changed = with_texts(batch, [None, "two", "three"])
    assert changed.schema == batch.schema
    assert changed.select([NOTE_ID, TEXT]).to_pylist() == [
        {"note_id": "n2", "text": "two"},
        {"note_id": "n3", "text": "three"},
    ]


def test_its_repr_says_nothing():
    assert repr(Note("n1", "p1", "secret")) == "Note()"
