"""`clinveil deidentify` over part files: the notes of one file, whatever the parts, and what a
broken part does.
"""

from __future__ import annotations

import json
import zlib

import pyarrow.parquet as pq
import pytest
from part_cases import copied, cut, rows

from clinveil.cli import main
from clinveil.phi import Finder, audit_checks
from clinveil.phi.treatment import part_passes

HOW = ["--set", "identifiers.no_tagger=true", "--quiet", "--seed", "5", "--keep-ids"]


@pytest.fixture(scope="module")
def one(dealt):
    """The notes, de-identified as one file."""
    out = dealt / "one.parquet"
    people = ["--patients", str(dealt / "demo/patients.parquet")]
    assert (
        main(
            [
                "deidentify",
                str(dealt / "demo/notes.parquet"),
                "-o",
                str(out),
                *people,
                *HOW,
                "--workers",
                "1",
            ]
        )
        == 0
    )
    return out


def of_parts(dealt, out, *flags, parts="parts"):
    people = ["--patients", str(dealt / "demo/patients.parquet")]
    return ["deidentify", str(dealt / parts), "-o", str(out), *people, *HOW, *flags]


def test_parts_give_the_notes_of_one_file_under_their_own_names(dealt, one, tmp_path, capsys):
    flags = ["--workers", "2", "--spans", "--crosswalk"]
    assert main(of_parts(dealt, tmp_path / "out", *flags)) == 0
    assert rows(tmp_path / "out") == rows(one)
    assert sorted(p.name for p in (tmp_path / "out").glob("*.parquet")) == [
        f"ward-{n}.parquet" for n in range(3)
    ]
    source = pq.read_table(dealt / "parts/ward-1.parquet")["note_id"]
    assert pq.read_table(tmp_path / "out/ward-1.parquet")["note_id"].equals(source)
    vault = tmp_path / "out.vault"
    assert {path.name for path in vault.iterdir()} & {"tasks", "work", "lock"} == set()
    assert json.loads((vault / "deidentify.json").read_text())["notes_written"] == len(rows(one))
    assert (vault / "spans.jsonl").stat().st_size > 10_000
    assert all(check.passed for check in audit_checks(vault))


def test_notes_patients_and_parts_have_new_names_by_default(dealt, tmp_path):
    command = of_parts(dealt, tmp_path / "out", "--workers", "1")
    command.remove("--keep-ids")
    assert main(command) == 0
    names = [path.name for path in (tmp_path / "out").glob("*.parquet")]
    assert len(names) == 3 and not any("ward" in name for name in names)
    source = pq.read_table(dealt / "demo/notes.parquet").to_pylist()
    written = [row for name in names for row in pq.read_table(tmp_path / "out" / name).to_pylist()]
    for column in ("note_id", "patient_id"):
        old, new = ({row[column] for row in table} for table in (source, written))
        assert len(old) == len(new) and not old & new


def test_what_was_found_outlives_a_run_that_is_stopped(dealt, one, tmp_path, monkeypatch):
    out = tmp_path / "out"
    looked = []

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(part_passes.PartTask, "treated", stopped)
        assert main(of_parts(dealt, out, "--workers", "1")) == 130
    vault = tmp_path / "out.vault"
    assert not out.exists() and not (vault / "work").exists()
    spans = b"".join(zlib.decompress(path.read_bytes()[24:]) for path in vault.rglob("spans.bin"))
    people = pq.read_table(dealt / "demo/patients.parquet")["name"].to_pylist()
    words = {word for name in people for word in name.split() if len(word) > 4}
    assert len(words) > 50 and spans and not any(word.encode() in spans for word in words)
    monkeypatch.setattr(Finder, "detect", lambda *_: looked.append(1))
    assert main(of_parts(dealt, out, "--workers", "1")) == 0
    assert not looked
    assert rows(out) == rows(one)


def test_a_broken_part_is_named_the_rest_is_done_and_the_same_command_goes_on(
    dealt, one, tmp_path, capsys, monkeypatch
):
    parts = copied(dealt, tmp_path)
    whole = (parts / "ward-1.parquet").read_bytes()
    cut(parts / "ward-1.parquet")
    command = [*of_parts(dealt, tmp_path / "out", "--workers", "1")]
    command[1] = str(parts)
    assert main(command) == 5
    said = capsys.readouterr().err
    assert (
        "1 of 3 parts cannot be read: ward-1.parquet" in said
        and len(said.strip().splitlines()) <= 3
    )
    assert not (tmp_path / "out").exists()
    (parts / "ward-1.parquet").write_bytes(whole)
    looked = []
    real = Finder.detect
    monkeypatch.setattr(
        Finder, "detect", lambda finder, view: looked.append(view) or real(finder, view)
    )
    assert main(command) == 0
    assert len(looked) == len(pq.read_table(parts / "ward-1.parquet"))
    assert rows(tmp_path / "out") == rows(one)


def test_an_id_in_two_parts_names_both(dealt, tmp_path, capsys):
    parts = copied(dealt, tmp_path)
    pq.write_table(pq.read_table(parts / "ward-0.parquet").slice(2, 1), parts / "ward-9.parquet")
    assert (
        main(["deidentify", str(parts), "-o", str(tmp_path / "out"), *HOW, "--workers", "1"]) == 3
    )
    said = capsys.readouterr().err
    assert "ward-9.parquet, row 1" in said and "ward-0.parquet, row 3" in said
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.vault").exists()


def test_parts_are_written_as_one_file_where_out_is_named_so(dealt, one, tmp_path):
    assert main(of_parts(dealt, tmp_path / "out.parquet", "--workers", "1")) == 0
    assert rows(tmp_path / "out.parquet") == rows(one)
