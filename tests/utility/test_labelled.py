"""Labelled notes: one or several labels, what is left out and counted, pairing by id, and one split
by patient.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clinveil.core import InputError
from clinveil.utility import parts_of, read_labelled
from clinveil.utility.labelled import paired, texts_of


def batches(rows, size=7):
    names = ("note_id", "patient_id", "text", "label")
    for start in range(0, len(rows), size):
        columns = zip(*rows[start : start + size], strict=True)
        yield pa.record_batch(
            dict(zip(names, (pa.array(c, type=pa.string()) for c in columns), strict=True))
        )


def read(rows, **more):
    return read_labelled(
        batches(rows), "label", np.random.default_rng(0), **{"min_class": 2, **more}
    )


def rows_of(n=60, labels=("a", "b")):
    return [
        (f"n{i}", f"p{i // 2}", f"text {'xyz'[i % 3]} {i} " * 9, labels[i % len(labels)])
        for i in range(n)
    ]


def test_classes_and_targets():
    found = read(rows_of())
    assert found.classes == ("a", "b")
    assert not found.multi
    assert [found.classes[t] for t in found.targets] == ["a", "b"] * 30
    assert found.numbers["notes"] == len(found) == 60


def test_several_labels_a_note():
    rows = [
        ("n1", "p1", "t", "a; b"),
        ("n2", "p2", "t", "b;b;"),
        ("n3", "p3", "t", "a"),
        ("n4", "p4", "t", "c;a"),
    ]
    found = read(rows, separator=";")
    assert found.multi
    assert found.classes == ("a", "b")
    assert found.targets.tolist() == [[True, True], [False, True], [True, False], [True, False]]
    assert found.numbers["classes_too_small"] == 1


def test_what_is_left_out_is_counted():
    rows = [
        *rows_of(),
        ("x1", "q", "t", None),
        ("x2", "q", "t", " "),
        ("x3", "q", None, "a"),
        ("x4", "q", "t", "rare"),
    ]
    rows += [("y1", "only", "t", "c"), ("y2", "only", "t", "c")]
    numbers = read(rows).numbers
    assert (
        numbers["without_label"],
        numbers["classes_too_small"],
        numbers["classes_of_one_patient"],
    ) == (2, 1, 1)
    assert numbers["notes_of_small_classes"] == 3


def test_numbers_as_labels():
    ids = list("abcdef")
    labels = [1.0, 2.0, float("nan"), 2.0, 1.0, None]
    table = pa.record_batch({"note_id": ids, "patient_id": ids, "text": ["t"] * 6, "label": labels})
    found = read_labelled([table], "label", np.random.default_rng(0), min_class=2)
    assert found.classes == ("1.0", "2.0")
    assert found.numbers["without_label"] == 2


@pytest.mark.parametrize("label", ["a", None])
def test_one_class_is_refused(label):
    rows = [(note, patient, text, label) for note, patient, text, _ in rows_of()]
    with pytest.raises(InputError, match="two are required"):
        read(rows)


def test_released_texts_in_the_order_of_the_original():
    labelled = read(rows_of())
    released = [(i, p, t.upper(), None) for i, p, t, _ in rows_of()][::-1][:-1]
    texts = texts_of(labelled, batches(released))
    assert texts[0] is None
    assert texts[1:] == [t.upper() for t in labelled.texts[1:]]
    kept, own = paired(labelled, texts)
    assert (len(kept), kept.numbers["not_released"], own[0]) == (59, 1, texts[1])
    assert kept.note_ids[0] == "n1"


def test_other_ids_need_the_crosswalk():
    labelled = read(rows_of())
    released = [(f"r{i}", "z", "t", None) for i in range(60)]
    with pytest.raises(InputError, match="--vault"):
        texts_of(labelled, batches(released))
    assert (
        texts_of(labelled, batches(released), {f"r{i}": f"n{i}" for i in range(60)}) == ["t"] * 60
    )
    with pytest.raises(InputError, match="crosswalk"):
        texts_of(labelled, batches(released), {"r0": "n0"})


def test_no_patient_and_no_duplicate_on_two_sides():
    rows = rows_of(200)
    words = np.random.default_rng(0).choice(
        ["pain", "fever", "cough", "left", "right", "acute"], (200, 40)
    )
    rows = [(i, p, " ".join(w), label) for (i, p, _, label), w in zip(rows, words, strict=True)]
    rows[150] = (*rows[150][:2], rows[3][2], rows[150][3])
    labelled = read(rows)
    parts = parts_of(labelled, np.random.default_rng(1))
    sides = {}
    for name, part in (("train", parts.train), ("valid", parts.valid), ("test", parts.test)):
        for i in part.tolist():
            assert sides.setdefault(labelled.patients[i], name) == name
    assert sides[labelled.patients[150]] == sides[labelled.patients[3]]
    assert sorted([*parts.learn, *parts.test]) == list(range(200))
    assert parts.duplicates == 1
    assert 40 <= len(parts.test) <= 60
    assert 20 <= len(parts.valid) <= 40


def test_too_few_patients():
    rows = [
        (note, "abc"[row % 3], text, label) for row, (note, _, text, label) in enumerate(rows_of())
    ]
    with pytest.raises(InputError, match="too few"):
        parts_of(read(rows), np.random.default_rng(0))
