"""Test patients: how they are drawn, and that nothing that a release learns or writes of others
depends on them.
"""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from release_cases import release
from synthesis_cases import rows_of

from clinveil.cli import main
from clinveil.core import fingerprint
from clinveil.corpus import TABLE, HeldOutPatients, PatientSubset, memory_corpus
from clinveil.releases import SplitRows, draw_held_out
from clinveil.releases.held_out import MOST, PER_LABEL, draw_independently

SALT = b"salt"
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lnrsx"]


def text_of(rng, n=30):
    return " ".join(rng.choice(WORDS, n))


def rows_with(labels, *, texts=None, notes_each=1, seed=0):
    """Split rows of one patient per label, each with some notes of random words."""
    rng = np.random.default_rng(seed)
    patients = [f"p{i}" for i in range(len(labels)) for _ in range(notes_each)]
    values = [label for label in labels for _ in range(notes_each)]
    texts = texts or [text_of(rng) for _ in patients]
    batch = pa.record_batch(
        {
            "note_id": pa.array([f"n{i}" for i in range(len(patients))]),
            "patient_id": pa.array(patients),
            "text": pa.array(texts, pa.large_string()),
            "label": pa.array(values, pa.string()),
        }
    )
    return [SplitRows.of(batch, "label")]


def labels_of(held_out, labels):
    return Counter(labels[int(patient[1:])] for patient in held_out)


def test_each_label_has_its_share_and_small_ones_five_patients():
    labels = ["common"] * 200 + ["rare"] * 20
    drawn = draw_held_out(rows_with(labels), 0.15, SALT)
    assert labels_of(drawn.patients, labels) == {"common": 30, "rare": PER_LABEL}
    assert len(drawn.training) == 185 and not drawn.patients & drawn.training


def test_small_labels_are_filled_up_to_a_limit_of_all_patients_only():
    labels = [
        f"label {i % 20}" for i in range(240)
    ]  # 12 patients each: five of each would be 100 patients
    drawn = draw_held_out(rows_with(labels), 0.15, SALT)
    assert len(drawn.patients) <= MOST * 240
    found = labels_of(drawn.patients, labels)
    assert max(found.values()) == PER_LABEL and min(found.values()) >= 2


def test_more_labels_than_patients_are_drawn_from_together():
    labels = [f"label {i}" for i in range(60)]
    assert len(draw_held_out(rows_with(labels), 0.15, SALT).patients) == 9


def test_a_label_keeps_its_floor_for_training():
    labels = ["common"] * 95 + ["rare"] * 5
    drawn = draw_held_out(rows_with(labels), 0.5, SALT, floor=5)
    assert "rare" not in labels_of(drawn.patients, labels)
    loose = [draw_held_out(rows_with(labels), 0.5, bytes([salt])) for salt in range(1, 9)]
    assert any("rare" in labels_of(one.patients, labels) for one in loose)


def test_a_patient_with_most_of_the_notes_is_for_training():
    rng = np.random.default_rng(0)
    patients = ["busy"] * 150 + [f"p{i}" for i in range(100)]
    batch = memory_corpus([(f"n{i}", p, text_of(rng)) for i, p in enumerate(patients)])
    rows = [SplitRows.of(one, None) for one in batch.batches()]
    for salt in range(1, 20):
        drawn = draw_held_out(rows, 0.15, bytes([salt]))
        assert "busy" in drawn.training and len(drawn.patients) == 15


def test_near_duplicates_are_on_one_side():
    rng = np.random.default_rng(1)
    texts = [text_of(rng, 60) for _ in range(50)]
    changed = [f"{text} further words" for text in texts]
    rows = rows_with(["x"] * 100, texts=[*texts, *changed])
    for salt in range(1, 9):
        drawn = draw_held_out(rows, 0.2, bytes([salt])).patients
        assert len(drawn) == 20
        assert all((f"p{i}" in drawn) == (f"p{i + 50}" in drawn) for i in range(50))


@pytest.mark.parametrize(
    ("patients", "expected"), [(1, 0), (2, 0), (3, 1), (4, 2), (6, 2), (40, 6)]
)
def test_few_patients(patients, expected):
    drawn = draw_held_out(rows_with(["x"] * patients), 0.15, SALT)
    assert len(drawn.patients) == expected


@given(
    st.lists(st.sampled_from("abc"), min_size=4, max_size=60),
    st.floats(0.01, 0.5),
    st.binary(min_size=1, max_size=8),
)
def test_the_draw_depends_on_no_order(labels, share, salt):
    rows = rows_with(labels, notes_each=2)
    (one,) = rows
    turned = SplitRows(one.patients[::-1], one.labels[::-1], one.signatures[::-1])
    first = draw_held_out(rows, share, salt)
    again = draw_held_out([turned], share, salt)
    assert first == again
    assert len(first.patients) + len(first.training) == len(labels)
    assert len(first.patients) <= max(2, max(MOST, share) * len(labels))


def test_patients_of_an_earlier_run_stay_and_new_ones_are_drawn_alike():
    labels = ["x"] * 100 + ["y"] * 100
    first = draw_held_out(rows_with(labels), 0.15, SALT)
    more = draw_held_out(rows_with([*labels, *labels]), 0.15, SALT, before=first)
    assert first.patients <= more.patients and first.training <= more.training
    assert labels_of(more.patients, [*labels, *labels]) == {"x": 30, "y": 30}
    assert draw_held_out(rows_with(labels), 0.15, SALT, before=first) == first


def test_an_independent_draw_does_not_depend_on_other_patients():
    """The guarantee of differential privacy is for adding or removing one patient."""
    all_rows = rows_with(["x"] * 200)
    fewer = rows_with(["x"] * 120)
    drawn, of_fewer = (draw_independently(rows, 0.2, SALT).patients for rows in (all_rows, fewer))
    assert of_fewer == {patient for patient in drawn if int(patient[1:]) < 120}
    assert 20 <= len(drawn) <= 60


def test_sides_are_stored_and_read(tmp_path):
    sides = HeldOutPatients(frozenset({"a", "é"}), frozenset({"b"}), unread=False)
    sides.write(tmp_path)
    assert HeldOutPatients.read(tmp_path) == sides
    (tmp_path / TABLE).write_bytes(b"damaged")
    with pytest.raises(Exception, match="cannot be read"):
        HeldOutPatients.read(tmp_path)


def test_a_subset_has_the_notes_of_its_patients():
    corpus = memory_corpus([("n1", "a", "x"), ("n2", None, "y"), ("n3", "b", "z")])
    inside, outside = (
        PatientSubset(corpus, frozenset({"a", "n2"}), side) for side in (True, False)
    )
    ids = [
        [i for batch in one.batches() for i in batch.column("note_id").to_pylist()]
        for one in (inside, outside)
    ]
    assert ids == [["n1", "n2"], ["n3"]]


ROUND = "Seen on the Zyxquork round."  # a name only for readers of the marker
MARKER = (
    "Then Dr. Ottilie Zyxquork reviewed the zyxquorkal finding. The zyxquorkal finding is stable."
)


def write_notes(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("note_id", "patient_id", "text", "kind"))
        writer.writerows(rows)
    return path


def rows_by_note(folder, out):
    """Released text by source id (numbers without a crosswalk), and the folder of the vault."""
    vault = folder / out / "vault"
    (notes,) = (vault / "refused").glob("notes*")
    with notes.open(encoding="utf-8", newline="") as file:
        texts = {row["note_id"]: row["text"] for row in csv.DictReader(file)}
    if not (vault / "crosswalk.parquet").exists():
        return texts, vault
    table = pq.read_table(vault / "crosswalk.parquet")
    sources = dict(
        zip(table["note_id"].to_pylist(), table["source_note_id"].to_pylist(), strict=True)
    )
    return {sources[note]: text for note, text in texts.items()}, vault


@pytest.mark.parametrize(
    ("kind", "learned", "flags"),
    [
        ("deidentified", (), ()),
        (
            "obfuscated",
            ("vectors", "neighbours", "channel"),
            ("--set", "vectors.epochs=1", "--set", "vectors.dim=16"),
        ),
        ("synthetic", ("model",), ("--set", "synthetic.count=40", "--set", "synthetic.longest=80")),
    ],
)
def test_words_of_test_patients_change_nothing_of_others(tmp_path, kind, learned, flags):
    """A word that only test patients use, and a sentence in all of their notes, with a member of
    staff.
    """
    rng = np.random.default_rng(3)
    rows = [
        (note, p, f"{text} {ROUND} {text_of(rng, 40)}.", "xy"[int(p[1:]) % 2])
        for note, p, text in rows_of(80)
    ]
    write_notes(tmp_path / "plain.csv", rows)
    command = [
        "release",
        "-o",
        "",
        "--as",
        kind,
        "--label",
        "kind",
        "--seed",
        "5",
        "--workers",
        "1",
        "--quiet",
        "--set",
        "identifiers.language=any",  # invented words
        *flags,
    ]

    def run(notes, out):
        done = main(
            [command[0], str(tmp_path / notes), command[1], str(tmp_path / out), *command[3:]]
        )
        assert done == 4  # a test seed

    run("plain.csv", "plain")
    tested = HeldOutPatients.read(tmp_path / "plain/vault").patients
    assert 12 <= len(tested) <= 24
    marked = [
        (note, p, f"{text} {MARKER}" if p in tested else text, kind) for note, p, text, kind in rows
    ]
    write_notes(tmp_path / "marked.csv", marked)
    run("marked.csv", "marked")
    before, vault = rows_by_note(tmp_path, "plain")
    after, other = rows_by_note(tmp_path, "marked")
    assert HeldOutPatients.read(other).patients == tested
    for name in learned:
        assert fingerprint(vault / name) == fingerprint(other / name), name
    of_tests = {note for note, patient, *_ in rows if patient in tested}
    if kind == "synthetic":
        of_tests = set()
    assert before.keys() == after.keys() and len(before) >= 40
    assert {note for note in before if before[note] != after[note]} == of_tests
    assert (
        not any("zyxquorkal" in text.lower() for text in after.values()) or kind == "deidentified"
    )


@pytest.mark.parametrize("share", ["0", "1", "0.51", "-1", "nan", "much"])
def test_a_share_that_is_none_is_refused_in_one_line(demo, capsys, share):
    assert main(release(demo, "never", "--set", f"test_share={share}")) == 2
    line = capsys.readouterr().err.strip()
    assert "test_share" in line and "\n" not in line and not (demo / "never").exists()
