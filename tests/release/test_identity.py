"""New ids and the crosswalk."""

from __future__ import annotations

from clinveil.core import Key
from clinveil.corpus import memory_corpus
from clinveil.releases.crosswalk import Renamer

NOTES = [("n1", "p1", "a"), ("n2", "p2", "b"), ("n3", "p1", "c")]


def renamed(key, notes=NOTES, *, patients=True):
    batch = next(memory_corpus(notes).batches())
    return Renamer(key, patients=patients)(batch)


def test_ids_are_new_distinct_and_follow_the_patient():
    batch, crosswalk = renamed(Key.from_seed(1))
    notes = batch.column("note_id").to_pylist()
    patients = batch.column("patient_id").to_pylist()
    assert len(set(notes)) == 3
    assert patients[0] == patients[2] != patients[1]
    assert not set(notes + patients) & {"n1", "n2", "n3", "p1", "p2"}
    assert batch.column("text").to_pylist() == ["a", "b", "c"]
    assert crosswalk.column("source_note_id").to_pylist() == ["n1", "n2", "n3"]
    assert crosswalk.column("note_id").to_pylist() == notes
    assert crosswalk.column("source_patient_id").to_pylist() == ["p1", "p2", "p1"]
    assert crosswalk.column("patient_id").to_pylist() == patients


def test_ids_depend_on_the_key_not_on_the_order():
    one, _ = renamed(Key.from_seed(1))
    reverse, _ = renamed(Key.from_seed(1), NOTES[::-1])
    other, _ = renamed(Key.from_seed(2))
    assert one.column("note_id").to_pylist() == reverse.column("note_id").to_pylist()[::-1]
    assert not set(one.column("note_id").to_pylist()) & set(other.column("note_id").to_pylist())


def test_without_patients_a_note_is_its_own_patient():
    batch, _ = renamed(Key.from_seed(1), [("n1", "n1", "a")], patients=False)
    assert batch.column("note_id").to_pylist() == batch.column("patient_id").to_pylist()
    batch, _ = renamed(Key.from_seed(1), [("x", "x", "a")])
    assert batch.column("note_id").to_pylist() != batch.column("patient_id").to_pylist()
