"""Columns of synthetic releases: names, format, labels and sequences of the source; one clear line
for bad labels.
"""

from __future__ import annotations

import shlex
from collections import Counter
from itertools import islice, pairwise

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
import pytest
from synthesis_cases import rows_of

from clinveil.cli import main
from clinveil.core import Key
from clinveil.lm import RARE, LabelSequences, numbered

ROLES = ("--text", "body", "--id", "num", "--patient", "who")
SYNTHETIC = ("--as", "synthetic", "--set", "phi=false", "--again", "--seed", "1")
TYPES = ("admission", "progress")


def table(**columns):
    """80 notes of 40 patients, each an admission and then a progress note."""
    rows = rows_of()
    found = {
        "num": [r[0] for r in rows],
        "stay": [7] * 80,
        "body": [r[2] for r in rows],
        "who": [r[1] for r in rows],
    }
    return pa.table(
        {**found, "kind": TYPES * 40, "grade": [i % 4 // 2 for i in range(80)], **columns}
    )


def release(folder, *flags, name="notes.parquet", labels=("kind", "grade")):
    given = [part for label in labels for part in ("--label", label)]
    model = ("--set", "lm.model=unigram")
    return main(
        [
            "release",
            str(folder / name),
            "-o",
            str(folder / "out"),
            *ROLES,
            *given,
            *SYNTHETIC,
            *model,
            *flags,
        ]
    )


def write(path, notes):
    if path.suffix == ".csv":
        pc.write_csv(notes, path)
    elif path.suffix == ".jsonl":
        path.write_text(
            "".join(
                f"{row}\n"
                for row in notes.to_pandas().to_json(orient="records", lines=True).split("\n")
            )
        )
    else:
        pq.write_table(notes, path)


READ = {".parquet": pq.read_table, ".csv": pc.read_csv, ".jsonl": pj.read_json}


@pytest.mark.parametrize("suffix", READ)
def test_columns_types_and_order_of_labels_as_in_the_source(tmp_path, suffix):
    write(tmp_path / f"notes{suffix}", table())
    assert release(tmp_path, "--set", "synthetic.count=31", name=f"notes{suffix}") == 4
    made = READ[suffix](tmp_path / f"out/vault/refused/notes{suffix}")
    assert made.schema.names == ["num", "body", "who", "kind", "grade"] and len(made) == 31
    assert pa.types.is_integer(made.schema.field("grade").type)
    assert not set(made["num"].to_pylist()) & set(table()["num"].to_pylist())
    rows = made.to_pylist()
    for patient in {row["who"] for row in rows[:-1]}:
        own = [row for row in rows[:-1] if row["who"] == patient]
        assert [row["kind"] for row in own] == list(TYPES) and len(
            {row["grade"] for row in own}
        ) == 1
    assert {row["grade"] for row in rows} == {0, 1}


@pytest.mark.parametrize(
    "columns, line",
    [
        ({"kind": [None, "a"] * 40}, "column 'kind': 40 notes have no value"),
        ({"kind": [" "] + ["a"] * 79}, "column 'kind': 1 notes have no value"),
        ({"grade": pa.array([float("nan"), 1.0] * 40)}, "column 'grade': 40 notes have no value"),
        ({"kind": [f"v{i}" for i in range(80)]}, "column 'kind': has 80 different values"),
        (
            {"kind": ["rare"] * 8 + ["a"] * 72},
            "column 'kind': 1 of 2 values occur with fewer than 5 patients",
        ),
    ],
)
def test_a_label_that_cannot_be_released_is_one_line(tmp_path, capsys, columns, line):
    write(tmp_path / "notes.parquet", table(**columns))
    assert release(tmp_path) == 3
    error = capsys.readouterr().err
    assert line in error and "rare" not in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("sign", ["\ue003NAME 1\ue004", "\ue003NONE 1\ue004"])
def test_what_looks_like_a_placeholder_in_a_note_is_text(tmp_path, sign):
    write(
        tmp_path / "notes.parquet",
        table(body=[f"{text} {sign}" for text in table()["body"].to_pylist()]),
    )
    assert release(tmp_path) == 4
    written = " ".join(
        pq.read_table(tmp_path / "out/vault/refused/notes.parquet")["body"].to_pylist()
    )
    assert sign[1:5] in written and not set(written) & set("[]\ue003\ue004")


def test_a_label_that_does_not_exist_is_one_line(tmp_path, capsys):
    write(tmp_path / "notes.parquet", table())
    assert release(tmp_path, labels=("missing",)) in (2, 3)
    assert "missing" in capsys.readouterr().err


def test_attacks_read_the_columns_of_the_release(tmp_path, capsys):
    write(tmp_path / "notes.parquet", table())
    assert release(tmp_path) == 4
    made = tmp_path / "out/vault/refused/notes.parquet"
    source = tmp_path / "notes.parquet"
    sides = [str(tmp_path / name) for name in ("in.parquet", "out.parquet")]
    for path, rows in zip(sides, (table().slice(0, 40), table().slice(40)), strict=True):
        pq.write_table(rows, path)
    roles = [
        part
        for role in ("notes.text=body", "notes.id=num", "notes.patient=who")
        for part in ("--set", role)
    ]
    roles += ["--seed", "1", "--set", "quiet=true"]
    assert (
        main(
            ["attack", "copies", str(made), "--training", sides[0], "--held-out", sides[1], *roles]
        )
        == 0
    )
    assert main(["attack", "membership", *sides, "--synthetic", str(made), *roles]) == 0
    assert (
        main([*shlex.split(f"attack canaries {made} --set lm.model=unigram --set each=1"), *roles])
        == 0
    )
    assert (
        main(
            [
                "attack",
                "copies",
                str(made),
                "--training",
                str(source),
                "--held-out",
                sides[1],
                *roles,
            ]
        )
        == 3
    )
    assert "patients are on both sides" in capsys.readouterr().err


def drawn(sequences, n=400):
    """Label sequences of the first n synthetic patients."""
    rows = {}
    for note in sequences.plan(Key.from_seed(1)):
        if note.patient == n:
            return [tuple(row) for row in rows.values()]
        rows.setdefault(note.patient, []).append(note.label)


def test_only_shared_sequences_and_transitions_are_drawn():
    real = [(0, 1)] * 30 + [(0, 1, 2)] * 10 + [(2, 2, 2, 2)] + [(1, 0)] * 2
    patients = [f"p{row}" for row, labels in enumerate(real) for _ in labels]
    sequences = LabelSequences.of(patients, [label for labels in real for label in labels], 5)
    counts = Counter(drawn(sequences))
    assert counts[0, 1] / 400 == pytest.approx(30 / 43, abs=0.08)
    pairs = {pair for row in counts for pair in pairwise(row)}
    assert (
        (2, 2, 2, 2) not in counts
        and (1, 0) not in pairs | set(counts)
        and all(row[0] == 0 for row in counts)
    )


@pytest.mark.parametrize("seed", range(10))
def test_first_labels_have_the_shares_of_the_source(seed):
    """Of 200 patients 6 have the label 2: independent draws would give 1 to 12 of them."""
    owners, labels = zip(
        *[(f"p{i}-{n}", i) for i, times in enumerate((120, 74, 6)) for n in range(times)],
        strict=True,
    )
    sequences = LabelSequences.of(owners, labels, 5)
    drawn = Counter(note.label for note in islice(sequences.plan(Key.from_seed(seed)), 200))
    assert all(abs(drawn[label] - n) <= 3 for label, n in enumerate((120, 74, 6)))


def test_labels_of_few_patients_are_never_drawn():
    values, labels = numbered(["a", "b", "a", "c"] * 5, [f"p{i % 8}" for i in range(20)], 4)
    assert values == ["a"] and labels[1] == RARE
    assert {
        label
        for row in drawn(LabelSequences.of([f"p{i % 8}" for i in range(20)], labels, 4))
        for label in row
    } == {0}
