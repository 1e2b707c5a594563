"""`clinveil obfuscate` over part files: the notes of one file, and what a stop, a full disk and a broken part do."""

from __future__ import annotations

import errno
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from part_cases import copied, cut, rows

from clinveil.channel import run_parts
from clinveil.cli.main import main
from clinveil.scale import tasks

FAST = ["--seed", "5", "--quiet"]


@pytest.fixture(scope="module")
def vectors(dealt):
    """Vectors of the notes, and the notes obfuscated by them as one file."""
    notes, place = str(dealt / "demo/notes.parquet"), dealt / "vectors"
    assert main(["embed", notes, "-o", str(place), "--dim", "8", "--set", "epochs=1", "--set", "window=3", *FAST]) == 0
    out = ["-o", str(dealt / "obfuscated.parquet"), "--vectors", str(place), "--workers", "1"]
    assert main(["obfuscate", notes, *out, *FAST]) == 0
    return place


def command(parts, out, vectors, *flags):
    return ["obfuscate", str(parts), "-o", str(out), "--vectors", str(vectors), "--workers", "1", *FAST, *flags]


def test_parts_give_the_notes_of_one_file(dealt, vectors, tmp_path):
    assert main([*command(dealt / "parts", tmp_path / "out", vectors), "--workers", "2"]) == 0
    assert rows(tmp_path / "out") == rows(dealt / "obfuscated.parquet")
    assert sorted(p.name for p in (tmp_path / "out").glob("*.parquet")) == [f"ward-{n}.parquet" for n in range(3)]
    assert not (tmp_path / "out.vault/tasks").exists()
    for path in (tmp_path / "out").glob("*.parquet"):
        assert path.stat().st_mode & 0o77 == 0
        assert pq.read_schema(path).metadata[b"clinveil"].startswith(b"TEST SEED")


def test_a_pattern_takes_some_of_the_parts(dealt, vectors, tmp_path):
    assert main(command(dealt / "parts/ward-[01].parquet", tmp_path / "out", vectors)) == 0
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 2


def test_a_full_disk_leaves_nothing_and_the_same_command_goes_on(dealt, vectors, tmp_path, monkeypatch, capsys):
    out, done = tmp_path / "out", []
    real, perform = run_parts.write_corpus, tasks.perform

    def full(*args, **more):
        if len(done) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        done.append(1)
        return real(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(run_parts, "write_corpus", full)
        assert main(command(dealt / "parts", out, vectors)) == 5
    assert "no space" in capsys.readouterr().err
    assert not out.exists() and perform
    again = []
    monkeypatch.setattr(run_parts, "write_corpus", lambda *args, **more: again.append(1) or real(*args, **more))
    assert main(command(dealt / "parts", out, vectors)) == 0
    assert len(again) == 1
    assert rows(out) == rows(dealt / "obfuscated.parquet")


def test_a_broken_part_is_named_and_nothing_is_learnt_without_it(dealt, vectors, tmp_path, capsys):
    parts = copied(dealt, tmp_path)
    cut(parts / "ward-2.parquet")
    assert main(command(parts, tmp_path / "out", vectors)) == 5
    assert "1 of 3 parts cannot be read: ward-2.parquet" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_finished_run_is_replaced_by_force_alone(dealt, vectors, tmp_path, capsys):
    assert main(command(dealt / "parts", tmp_path / "out", vectors)) == 0
    assert main(command(dealt / "parts", tmp_path / "out", vectors)) == 2
    assert main(command(dealt / "parts", tmp_path / "out", vectors, "--force")) == 0


def test_rows_that_are_left_out_are_counted_once(dealt, vectors, tmp_path):
    texts, parts = pq.read_table(dealt / "demo/notes.parquet")["text"].to_pylist(), tmp_path / "parts"
    parts.mkdir()
    for part in range(2):
        ids = [f"{part}{row}" for row in range(60)]
        kinds = {"CHARTDATE": ["2010-01-01"] * 60, "CATEGORY": ["Nursing"] * 60, "ISERROR": [None] * 59 + [1]}
        rows_ = {"ROW_ID": ids, "SUBJECT_ID": ids, **kinds, "TEXT": texts[60 * part : 60 * part + 60]}
        pq.write_table(pa.table(rows_), parts / f"part-{part}.parquet")
    assert main(command(parts, tmp_path / "out", vectors)) == 0
    told = json.loads((tmp_path / "out.vault/manifest.json").read_text())
    assert told["entered_in_error"] == 2
