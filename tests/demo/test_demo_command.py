"""`clinveil generate`: four private files, whole or not at all, the same for any number of
workers.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import clinveil.corpus.demo as demo_files
from clinveil.cli import main
from clinveil.core import UsageError, sha256
from clinveil.corpus import read_codes, read_names, read_patients, write_demo
from clinveil.corpus.demo import demo_chunks, demo_codes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("generate") / "demo"
    assert main(shlex.split(f"demo --notes-only -o {out} --patients 30 --seed 5 --workers 1")) == 0
    return out


def test_the_four_files_are_private(made: Path):
    assert sorted(path.name for path in made.iterdir()) == [
        ".clinveil.json",
        "codes.csv",
        "notes.parquet",
        "patients.parquet",
        "spans.jsonl",
    ]
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o600}


def test_spans_are_the_text_at_their_place(made: Path):
    texts = {
        row["note_id"]: row["text"] for row in pq.read_table(made / "notes.parquet").to_pylist()
    }
    lines = [
        json.loads(line) for line in (made / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert {line["note_id"] for line in lines} == set(texts)
    for line in lines:
        assert set(line) == {"note_id", "start", "end", "label", "text"}
        assert texts[line["note_id"]][line["start"] : line["end"]] == line["text"]


def test_patients_and_codes_read_back(made: Path):
    patients = read_patients(made / "patients.parquet")
    assert list(patients.values()) == next(demo_chunks(30, 5)).patients
    notes = pq.read_table(made / "notes.parquet").to_pylist()
    assert {note["patient_id"] for note in notes} == set(patients)
    codes = read_codes(made / "codes.csv")
    assert codes == demo_codes()
    assert {code for patient in patients.values() for code in patient.codes} <= set(codes)
    assert read_names(made / "patients.parquet") == [patient.name for patient in patients.values()]


def test_the_same_seed_makes_the_same_bytes(made: Path, tmp_path: Path):
    write_demo(tmp_path / "again", 30, 5)
    for name in ("notes.parquet", "patients.parquet", "codes.csv", "spans.jsonl"):
        assert sha256(tmp_path / "again" / name) == sha256(made / name)


def test_the_places_are_printed_and_the_seed_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert (
        main(
            ["demo", "--notes-only", "-o", str(tmp_path / "d"), "--patients", "2", "--workers", "1"]
        )
        == 0
    )
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        str(tmp_path / "d" / name)
        for name in ("notes.parquet", "patients.parquet", "codes.csv", "spans.jsonl")
    ]
    assert "seed 1, 2 invented patients" in said.err
    assert "TEST SEED" not in said.err


def test_an_existing_folder_is_kept_unless_forced(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "d"
    write_demo(out, 2, 1)
    before = sha256(out / "notes.parquet")
    assert main(["demo", "--notes-only", "-o", str(out), "--patients", "3", "--workers", "1"]) == 2
    assert "--force" in capsys.readouterr().err
    assert sha256(out / "notes.parquet") == before
    with pytest.raises(UsageError):
        write_demo(out, 3, 1)
    assert (
        main(
            ["demo", "--notes-only", "-o", str(out), "--patients", "3", "--workers", "1", "--force"]
        )
        == 0
    )
    assert len(read_patients(out / "patients.parquet")) == 3


@pytest.mark.parametrize("flags", [["--patients", "0"], ["--patients", "many"], ["--seed", "-1"]])
def test_wrong_settings_end_with_2_and_leave_nothing(flags: list[str], tmp_path: Path):
    assert main(["demo", "--notes-only", "-o", str(tmp_path / "d"), *flags]) == 2
    assert not os.listdir(tmp_path)


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(codes: dict[str, str], path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_files, "write_codes", fail)
    with pytest.raises(OSError, match="No space"):
        write_demo(tmp_path / "d", 3, 1)
    assert not os.listdir(tmp_path)
