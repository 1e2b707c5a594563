"""`clinveil release` over part files: the rows of one file, and what a stop and a broken part
do.
"""

from __future__ import annotations

import json
import shlex
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from part_cases import (
    copied,
    cut,
    measured_release,
    release_command,
    rows,
    small_vectors,
    without_attacks,
)

from clinveil.cli import main
from clinveil.corpus import NotesCorpus
from clinveil.phi import PartTask
from clinveil.releases import attacked_release, pipeline, writing
from clinveil.releases.crosswalk import VaultTable
from clinveil.releases.producers import _channel
from clinveil.scale import serial


@pytest.fixture(autouse=True)
def no_attacks(monkeypatch):
    without_attacks(monkeypatch)


@pytest.fixture(scope="module")
def vectors(dealt):
    return small_vectors(dealt, "of release")


@pytest.fixture
def one(dealt, vectors):
    """A release of the notes as one file; a test seed keeps it in the vault."""
    out = dealt / "released as one"
    if not out.exists():
        assert main(release_command(dealt, out, vectors, "demo/notes.parquet")) == 4
    return out / "vault"


def test_parts_have_the_rows_of_one_file_and_names_that_tell_nothing(dealt, vectors, one, tmp_path):
    assert main(release_command(dealt, tmp_path / "out", vectors)) == 4
    vault = tmp_path / "out/vault"
    made = vault / "refused/notes"
    assert rows(made) == rows(one / "refused/notes.parquet")
    names = [path.name for path in made.iterdir()]
    assert len(names) == 3 and not any("ward" in name for name in names)
    for path in made.iterdir():
        ids = pq.read_table(path)["note_id"].to_pylist()
        assert ids == sorted(ids)
    told = [json.loads((place / "manifest.json").read_text()) for place in (vault, one)]
    assert told[0]["tokens"] == told[1]["tokens"] and told[0]["accounting"] == told[1]["accounting"]
    assert told[0]["notes"]["file"] == "notes" and len(told[0]["files"]) == 5
    gates = [{gate["name"]: gate["passed"] for gate in one["gates"]} for one in told]
    assert gates[0] == gates[1]
    assert not (vault / "tasks").exists() and not (vault / "work").exists()
    walk = pa.concat_tables(
        pq.read_table(p) for p in sorted((vault / "crosswalk.parquet").iterdir())
    )
    sources = [pq.read_table(p)["note_id"].to_pylist() for p in sorted((dealt / "parts").iterdir())]
    assert walk["source_note_id"].to_pylist() == [note_id for part in sources for note_id in part]


def test_what_a_stop_left_is_gone_on_with(dealt, vectors, one, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_channel, "opened", stopped)
        assert main(release_command(dealt, out, vectors)) == 130
    assert not (out / "vault/work").exists() and not (out / "vault/staging").exists()
    done = {path: path.stat().st_mtime_ns for path in (out / "vault/tasks").rglob("notes.parquet")}
    assert len(done) == 3
    with monkeypatch.context() as patch:
        patch.setattr(PartTask, "__call__", stopped)  # neither look nor draw again
        patch.setattr(writing.Target, "write", stopped)
        assert main(release_command(dealt, out, vectors)) == 4
    assert rows(out / "vault/refused/notes") == rows(one / "refused/notes.parquet")


def test_a_broken_part_is_named_the_rest_is_done_and_mended_the_same_command_makes_the_release(
    dealt, vectors, one, tmp_path, capsys, monkeypatch
):
    parts = copied(dealt, tmp_path)
    out = tmp_path / "out"
    whole = (parts / "ward-0.parquet").read_bytes()
    cut(parts / "ward-0.parquet")
    asked = release_command(dealt, out, vectors, parts)
    assert main(asked) == 5
    assert "1 of 3 parts cannot be read: ward-0.parquet" in capsys.readouterr().err
    assert not (out / "release").exists() and not (out / "vault/channel").exists()
    where = asked.index("-o")
    assert main([*asked[:where], *asked[where + 2 :]]) == 5
    (parts / "ward-0.parquet").write_bytes(whole)
    looked = []
    real = PartTask.__call__
    monkeypatch.setattr(
        PartTask, "__call__", lambda task, *rest: looked.append(real(task, *rest)) or looked[-1]
    )
    assert main(asked) == 4
    assert looked == [{"notes": len(pq.read_table(parts / "ward-0.parquet"))}]
    assert rows(out / "vault/refused/notes") == rows(one / "refused/notes.parquet")


def test_parts_without_a_note_or_a_text_do_not_stop_the_others(dealt, vectors, one, tmp_path):
    parts = copied(dealt, tmp_path)
    out = tmp_path / "out"
    some = pq.read_table(parts / "ward-0.parquet")
    pq.write_table(some.slice(0, 0), parts / "ward-8.parquet")
    null = {
        "note_id": pa.array(["n of no text"]),
        "text": pa.nulls(1, some.schema.field("text").type),
    }
    columns = [null.get(name, some[name].slice(0, 1)) for name in some.column_names]
    pq.write_table(pa.table(columns, schema=some.schema), parts / "ward-9.parquet")
    assert main(release_command(dealt, out, vectors, parts)) == 4
    told = json.loads((out / "vault/manifest.json").read_text())
    assert [gate["name"] for gate in told["gates"] if not gate["passed"]] == ["no test seed"]
    assert told["accounting"]["skipped"] == {"null text": 1}
    assert rows(out / "vault/refused/notes") == rows(one / "refused/notes.parquet")


def test_a_real_release_of_parts_is_verified_and_attacked(dealt, vectors, tmp_path, capsys):
    out = tmp_path / "out"
    asked = [one for one in release_command(dealt, out, vectors) if one not in ("--seed", "5")]
    assert main(asked) == 0
    assert main(["verify", str(out / "release")]) == 0
    people = dealt / "demo/patients.parquet"
    both = attacked_release(
        out / "release", out / "vault", dealt / "parts", patients=people, workers=1
    )
    assert len(both.notes) == len(rows(out / "release/notes"))
    assert "are in one released part" in (out / "release/report.html").read_text()
    part = next((out / "release/notes").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    assert main(["verify", str(out / "release")]) == 4


def test_deidentified_parts_have_the_rows_of_one_file(dealt, tmp_path):
    how = shlex.split(
        f"--patients {dealt / 'demo/patients.parquet'} --as deidentified --seed 5 --quiet"
    )
    for notes, out in (("parts", "parts"), ("demo/notes.parquet", "one")):
        assert (
            main(
                [
                    *shlex.split(
                        f"release {dealt / notes} -o {tmp_path / out} --workers 1 --again"
                    ),
                    *how,
                ]
            )
            == 4
        )
    parts, one = (tmp_path / name / "vault/refused" for name in ("parts/", "one"))
    assert rows(parts / "notes") == rows(one / "notes.parquet")
    assert len(list((parts / "notes").iterdir())) == 3


def test_the_driver_reads_no_part_and_finds_the_same(dealt, tmp_path, monkeypatch):
    """All reads of part files are those of tasks that the executor's map runs."""
    read = []
    at_work = []
    batches = NotesCorpus.batches
    rows_of = VaultTable.batches

    def over(function, items):
        for item in items:
            at_work.append(function)
            result = function(item)
            at_work.clear()
            yield result

    def reads(name):
        if not at_work:
            read.append(name)

    monkeypatch.setattr(
        NotesCorpus, "batches", lambda corpus: reads(corpus.name) or batches(corpus)
    )
    monkeypatch.setattr(
        VaultTable, "batches", lambda table: reads(table.path.name) or rows_of(table)
    )
    made = []
    for name, used in (("tasks", over), ("here", serial)):
        out = tmp_path / name
        monkeypatch.setattr(pipeline, "opened_for", lambda *_, used=used: nullcontext(used))
        made.append(measured_release(dealt, out, monkeypatch))
        parts = {
            path.name
            for place in (dealt / "parts", out / "vault/refused/notes")
            for path in place.iterdir()
        }
        parts |= {
            f"part-{number:05d}.parquet" for number in range(3)
        }  # of the notes with surrogates, and of tables
        assert set(read) & parts == (parts if used is serial else set())
    assert made[0] == made[1]
    controls = {one["measure"]: one["control_is"] for one in made[0]}
    assert "attack.kept_columns_unique" in controls
    assert "of sampled patients" in controls["attack.own_name"]
