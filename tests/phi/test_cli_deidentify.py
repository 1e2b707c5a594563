"""`clinveil deidentify`, run as a user runs it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import Key, locked
from clinveil.corpus import Patient, write_patients
from clinveil.phi.detection import finder
from clinveil.phi.detection import finder as room
from clinveil.phi.treatment.crosswalk import read_crosswalk

ROWS = {
    "note_id": ["n1", "n2", "n3"],
    "patient_id": ["p1", "p1", "p2"],
    "text": [
        "Dr. Xiuyingsecret saw Mary Okwuosa on 3/4/2019.",
        "OKWUOSA, MARY: 3/14/2019, no. 0012345",
        "Foley catheter.",
    ],
    "kind": ["a", "b", "a"],
}


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.parquet"
    pq.write_table(pa.table(ROWS), path)
    return path


def run(*arguments):
    return main(["deidentify", *map(str, arguments), "--workers", "1"])


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_notes_in_notes_out(notes, tmp_path, capsys):
    out = tmp_path / "clean.parquet"
    assert run(notes, "-o", out, "--set", "identifiers.mode=tag", "--keep", "kind") == 0
    table = pq.read_table(out)
    assert table.column_names == list(ROWS)
    assert table["text"].to_pylist()[0] == "Dr. [NAME] saw [NAME] on [DATE]."
    assert table["kind"].to_pylist() == ROWS["kind"]
    assert mode_of(out) == 0o600
    vault = tmp_path / "clean.parquet.vault"
    assert mode_of(vault) == 0o700
    own = {
        "key.bin",
        "deidentify.json",
        "README.txt",
        "audit-0001.jsonl",
        "residues.jsonl",
        "spans.jsonl",
    }
    assert {p.name for p in vault.iterdir()} == own
    assert all(mode_of(p) == 0o600 for p in vault.iterdir())
    said = capsys.readouterr()
    assert said.out == ""
    assert "NAME" in said.err
    assert "SECRET" in said.err
    assert "Xiuyingsecret" not in said.err
    text = (vault / "deidentify.json").read_text()
    record = json.loads(text)
    assert record["notes_read"] == record["notes_written"] == 3
    assert record["spans_by_label"]["DATE"] == 2
    assert record["secret"] is True
    assert "Okwuosa" not in text


def test_a_seed_makes_the_same_notes_and_says_so(notes, tmp_path, capsys):
    for name in ("a.parquet", "b.parquet"):
        assert run(notes, "-o", tmp_path / name, "--seed", 3) == 0
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))
    assert capsys.readouterr().err.count("TEST SEED: not for release") == 2
    assert not (tmp_path / "a.parquet.vault" / "key.bin").exists()
    assert (
        json.loads((tmp_path / "a.parquet.vault" / "deidentify.json").read_text())["test_seed"] == 3
    )


def test_keys_differ_and_a_vault_is_used_again(notes, tmp_path):
    texts = []
    for name, vault in (("a", "v"), ("b", "v"), ("c", "w")):
        assert run(notes, "-o", tmp_path / f"{name}.parquet", "--vault", tmp_path / vault) == 0
        texts.append(pq.read_table(tmp_path / f"{name}.parquet")["text"].to_pylist())
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_known_patients_and_spans(notes, tmp_path):
    feed = tmp_path / "patients.parquet"
    write_patients([Patient("p1", ("Mary", "Okwuosa"), record_numbers=("00-12-345",))], feed)
    flags = ["--patients", feed, "--set", "identifiers.mode=tag", "--spans", "--keep-ids"]
    assert run(notes, "-o", tmp_path / "o.parquet", *flags) == 0
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["text"].to_pylist()[1] == "[NAME]: [DATE], no. [MRN]"
    assert table["note_id"].to_pylist() == ROWS["note_id"]
    lines = [
        json.loads(line)
        for line in (tmp_path / "o.parquet.vault" / "spans.jsonl").read_text().splitlines()
    ]
    texts = dict(zip(ROWS["note_id"], ROWS["text"], strict=True))
    assert all(
        texts[line["note_id"]][line["start"] : line["end"]] == line["text"] for line in lines
    )
    assert mode_of(tmp_path / "o.parquet.vault" / "spans.jsonl") == 0o600


def test_a_folder_of_text_and_other_formats(tmp_path):
    folder = tmp_path / "txt"
    folder.mkdir()
    (folder / "n1.txt").write_text("Mr. Okafor left.\n")
    assert run(folder, "-o", tmp_path / "out", "--set", "identifiers.mode=tag", "--keep-ids") == 0
    assert (tmp_path / "out" / "n1.txt").read_text() == "Mr. [NAME] left.\n"
    assert mode_of(tmp_path / "out") == 0o700
    assert run(folder, "-o", tmp_path / "out.csv", "--set", "identifiers.mode=remove") == 0
    assert "Mr.  left." in (tmp_path / "out.csv").read_text()


def test_ids_are_new_and_the_crosswalk_has_both(notes, tmp_path):
    out = tmp_path / "clean.parquet"
    back = tmp_path / "back.parquet"
    vault = tmp_path / "clean.parquet.vault"
    assert run(notes, "-o", out, "--crosswalk", "--keep", "kind") == 0
    source = pq.read_table(notes).to_pylist()
    written = pq.read_table(out).to_pylist()
    for column in ("note_id", "patient_id"):
        assert not {str(row[column]) for row in source} & {row[column] for row in written}
    assert len({row["note_id"] for row in written}) == len(source)
    rows = list(read_crosswalk(next(vault.glob("crosswalk-*.bin")), Key.load(vault / "key.bin")))
    assert [row.note_id for row in rows] == [str(row["note_id"]) for row in source]
    assert [row.new_note_id for row in rows] == [row["note_id"] for row in written]
    again = ["reidentify", str(out), "-o", str(back), "--vault", str(vault), "--reason", "test"]
    assert main([*again, "--set", "keep=kind"]) == 0
    assert [str(row["note_id"]) for row in pq.read_table(back).to_pylist()] == [
        row.note_id for row in rows
    ]
    assert pq.read_table(back)["text"].to_pylist() == [row["text"] for row in source]


def test_residues_are_counted_and_above_the_limit_the_exit_code_is_4(
    notes, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(finder, "DETECTORS", ())
    out = tmp_path / "out.parquet"
    vault = tmp_path / "out.parquet.vault"
    assert run(notes, "-o", out) == 4
    assert out.exists()
    error = capsys.readouterr().err
    assert (
        "notes have unchanged text like an identifier" in error
        and "clinveil review out.parquet" in error
    )
    record = json.loads((vault / "deidentify.json").read_text())
    lines = [
        json.loads(line)
        for line in (vault / "residues.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert record["notes_with_residues"] == len({line["note_id"] for line in lines}) > 0
    assert mode_of(vault / "residues.jsonl") == 0o600


def test_a_run_says_what_a_patient_list_would_find_and_what_a_partial_one_misses(
    notes, tmp_path, capsys
):
    assert run(notes, "-o", tmp_path / "none.parquet") == 0
    line = next(
        one for one in capsys.readouterr().err.splitlines() if one.startswith("no patient list")
    )
    assert "10 % to .2 %" in line and "--patients FILE" in line
    write_patients([Patient("p1", ("Mary", "Okwuosa"))], tmp_path / "people.parquet")
    assert (
        run(notes, "-o", tmp_path / "some.parquet", "--patients", tmp_path / "people.parquet") == 0
    )
    error = capsys.readouterr().err
    assert "patient list: 1 of 3 notes (1 of 2 patients) have no row in it" in error
    assert "no patient list" not in error
    record = json.loads((tmp_path / "some.parquet.vault" / "deidentify.json").read_text())
    assert record["notes_of_unlisted_patients"] == 1


def test_a_file_into_a_folder(notes, tmp_path):
    assert run(notes, "-o", tmp_path / "clean", "--set", "identifiers.mode=tag") == 0
    assert {p.name for p in (tmp_path / "clean").iterdir()} == {"notes.parquet", ".clinveil.json"}


def test_a_taken_out_is_refused_and_forced(notes, tmp_path, capsys):
    out = tmp_path / "o.parquet"
    assert run(notes, "-o", out) == 0
    assert run(notes, "-o", out) == 2
    assert "already exists" in capsys.readouterr().err
    assert run(notes, "-o", out, "--force") == 0


def test_too_many_failures_write_nothing(notes, tmp_path, monkeypatch, capsys):
    def burst(text, spans):
        raise ValueError("Okwuosa")

    monkeypatch.setattr(room, "resolve", burst)
    assert run(notes, "-o", tmp_path / "o.parquet") == 4
    assert not (tmp_path / "o.parquet").exists()
    assert not (tmp_path / "o.parquet.part").exists()
    said = capsys.readouterr().err
    assert "3 of 3" in said
    assert "Okwuosa" not in said


def everything(folder):
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


@pytest.mark.parametrize(
    ("source", "out", "vault", "said"),
    [
        ("notes.parquet", "F/out", "F/out/vault", "the vault is inside OUT"),
        ("notes.parquet", "F/v/out", "F/v", "OUT is inside the vault"),
        ("notes.parquet", "F/out", "F/out", "OUT and the vault are the same path"),
        ("notes.parquet", "notes.parquet", "v", "OUT and NOTES are the same path"),
        ("txt", "txt", "v", "OUT and NOTES are the same path"),
        ("txt", "txt/out", "v", "OUT is inside NOTES"),
        ("txt/deep", "txt", "v", "NOTES is inside OUT"),
        ("txt", "out", "txt/v", "the vault is inside NOTES"),
    ],
)
def test_places_that_would_destroy_one_another_are_refused(
    notes, tmp_path, capsys, source, out, vault, said
):
    for name in ("txt/deep", "F/out/vault", "F/v"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("txt/a.txt", "txt/deep/a.txt", "F/out/vault/key.bin"):
        (tmp_path / name).write_text("x" * 32)
    before = everything(tmp_path)
    assert run(tmp_path / source, "-o", tmp_path / out, "--vault", tmp_path / vault, "--force") == 2
    assert said in capsys.readouterr().err
    assert everything(tmp_path) == before


def test_the_feed_of_patients_is_not_overwritten(notes, tmp_path, capsys):
    feed = tmp_path / "patients.parquet"
    write_patients([Patient("p1", ("Mary", "Okwuosa"))], feed)
    before = everything(tmp_path)
    assert run(notes, "-o", feed, "--patients", feed, "--force") == 2
    assert "OUT and --patients are the same path" in capsys.readouterr().err
    assert everything(tmp_path) == before


@pytest.mark.parametrize("left", ["lock", "work/", ".01234567.part", ".spans.jsonl.01234567.part/"])
def test_a_run_goes_on_in_the_vault_of_a_killed_one(notes, tmp_path, left):
    vault = tmp_path / "vault"
    (vault / left if left.endswith("/") else vault).mkdir(parents=True, mode=0o700)
    vault.chmod(0o700)
    (vault / left).touch()
    assert run(notes, "-o", tmp_path / "o.csv", "--vault", vault) == 0
    assert not (vault / left).exists()


def test_a_run_with_a_seed_goes_on_after_its_audit_log(notes, tmp_path):
    again = [notes, "-o", tmp_path / "o.csv", "--vault", tmp_path / "vault", "--seed", "1"]
    assert run(*again) == 0
    for name in ("o.csv", "vault/deidentify.json"):  # the last to be written
        (tmp_path / name).unlink()
    assert run(*again) == 0
    assert (tmp_path / "vault" / "audit-0002.jsonl").exists()


def test_a_folder_of_others_is_not_shut(notes, tmp_path, capsys):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "theirs").touch()
    shared.chmod(0o755)
    assert run(notes, "-o", tmp_path / "o.parquet", "--vault", shared) == 2
    assert "shared: already exists and is not a vault" in capsys.readouterr().err
    assert mode_of(shared) == 0o755
    assert [p.name for p in shared.iterdir()] == ["theirs"]


def test_a_vault_in_use_is_refused(notes, tmp_path, capsys):
    vault = tmp_path / "v"
    vault.mkdir()
    with locked(vault / "lock"):
        assert run(notes, "-o", tmp_path / "o.parquet", "--vault", vault, "--force") == 2
    assert "v: another run is using this folder" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.parquet", "v"]
    assert list(vault.iterdir()) == []


def test_of_runs_at_the_same_time_the_record_fits_the_key(notes, tmp_path):
    out = tmp_path / "o.parquet"
    line = [
        sys.executable,
        "-m",
        "clinveil",
        "deidentify",
        notes,
        "-o",
        out,
        "--force",
        "--workers",
        "1",
        "--quiet",
    ]
    runs = [subprocess.Popen(line, stderr=subprocess.PIPE) for _ in range(2)]
    said = [each.communicate()[1].decode() for each in runs]
    codes = [each.returncode for each in runs]
    assert 0 in codes and set(codes) <= {0, 2}, said
    assert all(
        "another run is using" in text for code, text in zip(codes, said, strict=True) if code
    )
    vault = tmp_path / "o.parquet.vault"
    record = json.loads((vault / "deidentify.json").read_text())
    assert record["key_commitment"] == Key.load(vault / "key.bin").commitment


def test_a_failed_gate_leaves_no_spans_and_no_vault(notes, tmp_path, monkeypatch):
    resolve = room.resolve

    def burst(text, spans):
        if text.startswith("Foley"):
            raise ValueError
        return resolve(text, spans)

    monkeypatch.setattr(room, "resolve", burst)
    assert run(notes, "-o", tmp_path / "o.parquet", "--spans") == 4
    assert [p.name for p in tmp_path.iterdir()] == ["notes.parquet"]


def test_a_failed_gate_leaves_an_earlier_vault_as_it_was(notes, tmp_path, monkeypatch):
    out = tmp_path / "o.parquet"
    assert run(notes, "-o", out, "--spans") == 0
    before = everything(tmp_path)

    def burst(text, spans):
        raise ValueError

    monkeypatch.setattr(room, "resolve", burst)
    assert run(notes, "-o", out, "--spans", "--force") == 4
    assert everything(tmp_path) == before


def test_a_refused_run_leaves_no_vault(notes, tmp_path):
    assert (
        run(notes, "-o", tmp_path / "o.parquet", "--set", "identifiers.phi_policy=none.toml") == 2
    )
    (tmp_path / "v").mkdir()
    assert (
        run(
            notes,
            "-o",
            tmp_path / "o.parquet",
            "--set",
            "identifiers.phi_policy=none.toml",
            "--vault",
            tmp_path / "v",
        )
        == 2
    )
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == [
        "notes.parquet",
        "v",
    ]


def feed(tmp_path, *ids):
    path = tmp_path / "feed.parquet"
    write_patients([Patient(one, ("Nkembe", f"Zwiyemi{one}")) for one in ids], path)
    return path


def test_a_feed_of_other_patients_is_refused_and_nothing_is_written(notes, tmp_path, capsys):
    out = tmp_path / "o.parquet"
    assert run(notes, "-o", out, "--patients", feed(tmp_path, "x1", "x2")) == 3
    assert "none of its 2 patients has a note here" in capsys.readouterr().err
    assert not out.exists()


def test_known_patients_without_a_note_are_counted(notes, tmp_path, capsys):
    assert (
        run(notes, "-o", tmp_path / "o.parquet", "--patients", feed(tmp_path, "p1", "x1", "x2"))
        == 0
    )
    assert "2 of 3 known patients have no note here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--set", "identifiers.propagate=none"), 0),
        (("--set", "identifiers.propagate=most"), 2),
        (("--set", "identifiers.also=nothing"), 2),
        (("--set", "identifiers.also=presidio:there_is_none"), 3),
    ],
)
def test_how_finds_are_combined(notes, tmp_path, flags, code):
    assert run(notes, "-o", tmp_path / "o.parquet", *flags) == code
