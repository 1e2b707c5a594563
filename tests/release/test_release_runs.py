"""Runs of `clinveil release` that are stopped, refused, or of other notes and settings."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from release_cases import FAST, release

from clinveil.cli import main
from clinveil.corpus.demo import demo_notes
from no_limits import NO_LIMITS

# Small samples say too little for the gates on names and linkage: the risk is taken. Identifiers
# are of other files.
TAKEN = ["--limits", str(NO_LIMITS), "--set", "phi=false"]


@pytest.fixture(scope="module")
def desk(demo):
    return demo


def test_permuted_rows_give_the_same_ids_in_the_same_order(desk, tmp_path):
    notes = pq.read_table(desk / "demo/notes.parquet")
    pq.write_table(
        notes.take(np.random.default_rng(1).permutation(len(notes))), tmp_path / "permuted.parquet"
    )
    found = []
    for path in (desk / "demo/notes.parquet", tmp_path / "permuted.parquet"):
        out = tmp_path / path.stem
        assert main(["release", str(path), "-o", str(out), *FAST, *TAKEN, "--seed", "5"]) == 4
        found.append(pq.read_table(out / "vault/refused/notes.parquet")["note_id"].to_pylist())
    assert found[0] == found[1] == sorted(found[0])


def test_a_test_seed_is_refused_and_repeats_with_any_number_of_workers(desk, tmp_path, capsys):
    notes = pq.read_table(desk / "demo/notes.parquet")
    pq.write_table(notes.slice(0, 120), tmp_path / "few.parquet")
    how = [flag for flag in FAST if flag != "--quiet"] + [
        "--set",
        "channel.allow_small=true",
        "--seed",
        "5",
    ]
    for workers in ("1", "2"):
        run = [
            "release",
            str(tmp_path / "few.parquet"),
            "-o",
            str(tmp_path / workers),
            *how,
            "--workers",
            workers,
        ]
        assert main(run) == 4
    said = capsys.readouterr()
    assert "no test seed" in said.out and "TEST SEED: not for release" in said.err
    one, two = (tmp_path / workers / "vault/refused" for workers in ("1", "2"))
    assert (
        not (tmp_path / "1/release").exists() and "TEST SEED" in (two / "report.html").read_text()
    )
    assert (one / "notes.parquet").read_bytes() == (two / "notes.parquet").read_bytes()


def test_dry_run_makes_nothing(desk, capsys):
    flags = release(desk, "nothing")
    out = flags.index("-o")
    assert main([*flags[:out], *flags[out + 2 :]]) == 0
    assert not (desk / "nothing").exists()
    assert "in all roughly" in capsys.readouterr().out


def test_an_interrupted_run_goes_on_with_the_vectors_it_has(desk, monkeypatch, capsys):
    from clinveil.releases.producers import _channel as run

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_notes", stop)
        assert main(release(desk, "again", *TAKEN)) == 130
    vault = desk / "again" / "vault"
    assert not (desk / "again" / "release").exists() and not (vault / "work").exists()
    vectors = (vault / "vectors" / "matrix.npy").stat().st_mtime_ns
    assert main(release(desk, "again", *TAKEN)) == 0
    assert (vault / "vectors" / "matrix.npy").stat().st_mtime_ns == vectors
    assert main(["verify", str(desk / "again" / "release")]) == 0


def test_a_full_disk_is_said_and_can_be_resumed(desk, monkeypatch, capsys):
    from clinveil.releases.producers import _channel as run

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_notes", full)
        assert main(release(desk, "full", *TAKEN)) == 5
    assert "no space" in capsys.readouterr().err
    assert main(release(desk, "full", *TAKEN)) == 0


def test_a_gate_that_fails_leaves_no_release(desk, monkeypatch, capsys):
    """A channel that maps words to themselves, slipped under the run, is caught by reading the
    release back.
    """
    from dataclasses import fields

    from clinveil.channel import Channel
    from clinveil.releases.producers import _channel as run

    class Lying(Channel):
        def __post_init__(self):
            """It checks nothing."""

    def lying(*inputs, **settings):
        channel = run_channel(*inputs, **settings)
        n = len(channel.words)
        same = {"indptr": np.arange(n + 2), "indices": np.append(np.arange(n), 0).astype(np.int32)}
        return Lying(
            **{f.name: getattr(channel, f.name) for f in fields(channel)}
            | same
            | {"probabilities": np.ones(n + 1)}
        )

    run_channel = run.channel_of
    monkeypatch.setattr(run, "channel_of", lying)
    assert main(release(desk, "caught", *TAKEN)) == 4
    assert not (desk / "caught" / "release").exists()
    assert "rare-word floor" in capsys.readouterr().out
    assert (desk / "caught/vault/report.html").exists()


def test_dropped_words_pass(desk, tmp_path):
    """The release is read back word by word, and every word stands beside its own source in the
    report.
    """
    drop = tmp_path / "drop.txt"
    drop.write_text("pain\nzyzzyva\n")
    flags = ["--set", "channel.drop_stop_words=true", "--set", f"channel.drop_words={drop}"]
    flags += ["--set", "channel.layout=keep"]
    assert main(release(desk, "dropped", *TAKEN, *flags)) == 0
    assert main(["verify", str(desk / "dropped" / "release")]) == 0
    manifest = json.loads((desk / "dropped/release/manifest.json").read_text())
    assert manifest["tokens"]["dropped"] > 100
    assert manifest["settings"]["channel.drop_words_given"] is True


def test_unknown_words_are_replaced_or_dropped_never_passed(desk):
    for unknown in ("pool", "drop"):
        out = f"unknown-{unknown}"
        assert (
            main(
                release(
                    desk,
                    out,
                    *TAKEN,
                    "--set",
                    "vectors.min_count=4",
                    "--set",
                    "channel.background=0",
                    "--set",
                    f"channel.unknown={unknown}",
                )
            )
            == 0
        )
        tokens = json.loads((desk / out / "release/manifest.json").read_text())["tokens"]
        assert tokens["unknown"] > 0
        assert (tokens["dropped"] > 0) == (unknown == "drop")


def test_every_format_comes_back_in_its_own(desk, tmp_path):
    table = pa.Table.from_batches(demo_notes(60, 4))
    from clinveil.corpus import Columns, write_corpus

    names = Columns(
        "text",
        "note_id",
        "patient_id",
        ("diagnosis_group",),
        (),
        (),
        ("note_id", "patient_id", "text", "diagnosis_group"),
    )
    for suffix in (".csv.gz", ".jsonl"):
        notes = tmp_path / f"n{suffix}"
        rows = table.select(["note_id", "patient_id", "text", "diagnosis_group"])
        write_corpus(rows.to_batches(), notes, names, suffix)
        flags = ["--keep", "diagnosis_group"]
        assert (
            main(["release", str(notes), "-o", str(tmp_path / f"o{suffix}"), *FAST, *TAKEN, *flags])
            == 0
        )
        assert (tmp_path / f"o{suffix}" / "release" / f"notes{suffix}").exists()
        assert main(["verify", str(tmp_path / f"o{suffix}" / "release")]) == 0


def test_a_folder_of_texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for batch in demo_notes(60, 4):
        for note_id, text in zip(
            batch["note_id"].to_pylist(), batch["text"].to_pylist(), strict=True
        ):
            (folder / f"{note_id}.txt").write_text(text, encoding="utf-8")
    assert main(["release", str(folder), "-o", str(tmp_path / "out"), *FAST, *TAKEN]) == 0
    assert (tmp_path / "out/release/notes").is_dir()
    assert len(list((tmp_path / "out/release/notes").iterdir())) == len(list(folder.iterdir()))
    assert main(["verify", str(tmp_path / "out" / "release")]) == 0


def test_few_patients_are_refused(tmp_path, capsys):
    pq.write_table(pa.Table.from_batches(demo_notes(49, 4)), tmp_path / "n.parquet")
    assert (
        main(["release", str(tmp_path / "n.parquet"), "-o", str(tmp_path / "out"), *FAST, *TAKEN])
        == 3
    )
    assert "--set channel.allow_small=true" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_null_and_empty_texts_are_accounted_for(tmp_path, capsys):
    table = pa.Table.from_batches(demo_notes(60, 4)).select(["note_id", "patient_id", "text"])
    extra = pa.table(
        {"note_id": ["e", "x"], "patient_id": ["a", "b"], "text": ["", None]}, schema=table.schema
    )
    pq.write_table(pa.concat_tables([table, extra]), tmp_path / "n.parquet")
    assert (
        main(["release", str(tmp_path / "n.parquet"), "-o", str(tmp_path / "out"), *FAST, *TAKEN])
        == 0
    )
    inside = json.loads((tmp_path / "out/vault/manifest.json").read_text())["accounting"]
    assert inside == {
        "read": table.num_rows + 2,
        "written": table.num_rows + 1,
        "skipped": {"null text": 1},
    }
    outside = json.loads((tmp_path / "out/release/manifest.json").read_text())["accounting"]
    assert outside == {"read": None, "written": table.num_rows + 1, "skipped": {"null text": "<11"}}


def test_too_many_null_texts_fail_the_gate(tmp_path):
    table = pa.Table.from_batches(demo_notes(60, 4)).select(["note_id", "patient_id", "text"])
    n = table.num_rows // 20
    extra = pa.table(
        {"note_id": [f"x{i}" for i in range(n)], "patient_id": ["b"] * n, "text": [None] * n},
        schema=table.schema,
    )
    pq.write_table(pa.concat_tables([table, extra]), tmp_path / "n.parquet")
    assert (
        main(["release", str(tmp_path / "n.parquet"), "-o", str(tmp_path / "out"), *FAST, *TAKEN])
        == 4
    )
    assert not (tmp_path / "out" / "release").exists()
