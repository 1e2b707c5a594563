"""The mechanism `contextual`, the default of a release: parts and workers, copy gates, too few
notes.
"""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from release_cases import FAST

from clinveil.cli import main

CONTEXTUAL = [
    *FAST,
    *("--label", "note_type"),
    *("--set", "phi=false"),
    *("--set", "measure_words=20000"),
]


def texts(out):
    """Text of each released note of a run with a test seed."""
    found = {}
    for file in sorted((out / "vault/refused").rglob("*.parquet")):
        table = pq.read_table(file)
        found |= dict(zip(table["note_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    return found


@pytest.fixture(scope="module")
def whole(demo):
    notes = demo / "demo/notes.parquet"
    out = demo / "contextual"
    assert main(["release", str(notes), "-o", str(out), *CONTEXTUAL, "--seed", "5"]) == 4
    return out


def test_parts_and_workers_give_the_same_notes(demo, whole, tmp_path):
    table = pq.read_table(demo / "demo/notes.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    half = len(table) // 2
    pq.write_table(table.slice(0, half), parts / "a.parquet")
    pq.write_table(table.slice(half), parts / "b.parquet")
    out = tmp_path / "out"
    flags = [*CONTEXTUAL, "--seed", "5", "--workers", "2"]
    assert main(["release", str(parts), "-o", str(out), *flags]) == 4
    assert texts(out) == texts(whole)


def test_the_model_is_learned_without_test_patients_and_copies_are_judged(whole):
    assert (whole / "vault/channel/context/context.json").exists()
    record = json.loads((whole / "vault/record.json").read_text())
    gates = {gate["name"] for gate in record["verdicts"][0]["gates"]}
    assert {"no long copies", "no near copies", "no note copied whole"} <= gates
    assert "no patient remembered" in gates
    assert "follows the words written before" in record["about"]


def test_few_notes_are_refused_with_the_settings_that_would_allow_them(demo, tmp_path, capsys):
    table = pq.read_table(demo / "demo/notes.parquet").slice(0, 60)
    pq.write_table(table, tmp_path / "few.parquet")
    flags = [*CONTEXTUAL, "--seed", "5", "--set", "channel.allow_small=true"]
    flags += ["--min-patients", "7"]
    assert main(["release", str(tmp_path / "few.parquet"), "-o", str(tmp_path / "o"), *flags]) == 3
    said = capsys.readouterr().err
    assert "channel.min_patients" in said and "channel.mechanism=neighbours" in said


def test_settings_of_the_context_alone_are_refused(demo, tmp_path, capsys):
    flags = ["--set", "channel.ngram_patients=7", "--set", "channel.mechanism=neighbours"]
    flags += ["--as", "obfuscated"]
    notes = demo / "demo/notes.parquet"
    assert main(["release", str(notes), "-o", str(tmp_path / "o"), *flags]) == 2
    assert "have no effect with channel.mechanism=neighbours" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
