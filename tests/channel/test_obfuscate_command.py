"""`clinveil obfuscate` from the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.channel.apply import Obfuscator
from clinveil.channel.files import channel_digest, load_channel
from clinveil.cli.main import main
from clinveil.core.files import locked
from clinveil.core.keys import Key
from clinveil.core.tokens import words
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.neighbours import load_neighbours

COMMON = [
    "patient", "denies", "chest", "pain", "fever", "cough", "nausea", "and", "reports", "mild",
    "headache", "with", "no", "change", "in", "vision", "today",
]  # fmt: skip
SECRETS = ["qvortle", "zebulonski", "José-Ñ"]


def notes_table(n: int = 120, *, patients: bool = True) -> pa.Table:
    """Notes of 60 patients; three invented names occur with one patient each."""
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(COMMON, 40)) + f" on 12/{i}." for i in range(n)]
    for i, name in enumerate(SECRETS):
        texts[i] = f"Mr. {name} was seen. {texts[i]}"
    columns = {"ward": [f"W{i % 3}" for i in range(n)], "note_id": [f"n{i:03d}" for i in range(n)], "text": texts}
    if patients:
        columns["patient_id"] = [f"p{i % 60}" for i in range(n)]
    return pa.table(columns)


@pytest.fixture(scope="module")
def notes(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("notes") / "notes.parquet"
    pq.write_table(notes_table(), path)
    return path


def run(notes: Path, out: Path, *more: str) -> int:
    return main(
        [
            "obfuscate",
            str(notes),
            "-o",
            str(out),
            "--set",
            "dim=8",
            "--set",
            "epochs=1",
            "--set",
            "window=5",
            "--workers",
            "1",
            *more,
        ]
    )


@pytest.fixture(scope="module")
def made(notes, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("made") / "out.parquet"
    assert run(notes, out, "--keep", "ward", "--seed", "4") == 0
    return out


def test_ids_columns_and_order_are_kept(made):
    before, after = notes_table(), pq.read_table(made)
    assert after.column_names == ["ward", "note_id", "text", "patient_id"]
    for name in ("ward", "note_id", "patient_id"):
        assert after[name].to_pylist() == before[name].to_pylist()
    for old, new in zip(before["text"].to_pylist(), after["text"].to_pylist(), strict=True):
        assert len(words(new)) == len(words(old))
        assert all(a != b for a, b in zip(words(old), words(new), strict=True))


def test_every_policy_has_its_flags(notes, tmp_path):
    flags = [
        "--set",
        "scope=corpus",
        "--set",
        "scope_names=true",
        "--set",
        "shuffle=sentence",
        "--set",
        "vary_length=0.5",
        "--set",
        "drop_stop_words=true",
    ]
    assert run(notes, tmp_path / "out.parquet", "--seed", "4", *flags) == 0
    manifest = json.loads((tmp_path / "out.parquet.vault" / "manifest.json").read_text())
    assert manifest["settings"]["shuffle"] == "sentence"
    assert manifest["tokens"]["subsampled"] > 0 and manifest["tokens"]["doubled"] > 0
    assert run(notes, tmp_path / "other.parquet", "--set", "vary_length=0.95") == 2


def test_names_of_one_patient_do_not_come_out(made):
    released = " ".join(pq.read_table(made)["text"].to_pylist())
    assert not {"qvortle", "zebulonski", "josé", "ñ"} & set(words(released))


def test_the_vault_holds_what_made_it(made):
    vault = made.with_name("out.parquet.vault")
    assert stat.S_IMODE(vault.stat().st_mode) == 0o700
    names = {p.relative_to(vault).as_posix() for p in vault.rglob("*") if p.is_file()}
    assert {"key.bin", "manifest.json", "README.txt", "channel/meta.json", "vectors/meta.json"} <= names
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in vault.rglob("*") if p.is_file())
    channel, manifest = load_channel(vault / "channel"), json.loads((vault / "manifest.json").read_text())
    assert manifest["channel_sha256"] == channel_digest(channel)
    assert manifest["key_commitment"] == Key.load(vault / "key.bin").commitment
    assert manifest["tokens"]["self_replaced"] == 0 and manifest["tokens"]["notes"] == 120
    assert len(load_vectors(vault / "vectors")) == len(load_neighbours(vault / "neighbours")) == len(channel.words)


def test_key_and_channel_of_the_vault_make_the_same_notes(made, notes):
    vault = made.with_name("out.parquet.vault")
    obfuscator = Obfuscator(load_channel(vault / "channel"), Key.load(vault / "key.bin"))
    table = notes_table().select(["note_id", "patient_id", "text"])
    batch = table.combine_chunks().to_batches()[0]
    assert obfuscator(batch).batch.column("text").to_pylist() == pq.read_table(made)["text"].to_pylist()


def test_a_test_seed_is_said_everywhere(notes, tmp_path, capsys):
    assert run(notes, tmp_path / "o.parquet", "--seed", "4") == 0
    assert "TEST SEED: not for release" in capsys.readouterr().err
    assert pq.read_schema(tmp_path / "o.parquet").metadata[b"clinveil"] == b"TEST SEED: not for release"
    assert json.loads((tmp_path / "o.parquet.vault" / "manifest.json").read_text())["warning"].startswith("TEST SEED")


def test_without_a_seed_every_run_differs_and_says_nothing_of_a_test(notes, tmp_path, capsys):
    for name in ("a", "b"):
        assert run(notes, tmp_path / f"{name}.parquet") == 0
    one, other = (pq.read_table(tmp_path / f"{n}.parquet") for n in "ab")
    assert one["text"] != other["text"]
    assert "TEST SEED" not in capsys.readouterr().err
    assert b"clinveil" not in (pq.read_schema(tmp_path / "a.parquet").metadata or {})
    assert "warning" not in json.loads((tmp_path / "a.parquet.vault" / "manifest.json").read_text())


def test_a_seed_repeats_and_given_vectors_are_used(made, notes, tmp_path):
    vectors = made.with_name("out.parquet.vault") / "vectors"
    for workers in ("1", "3"):
        out = tmp_path / f"o{workers}.parquet"
        more = ("--keep", "ward", "--seed", "4", "--vectors", str(vectors), "--workers", workers)
        assert run(notes, out, *more, "--vault", str(tmp_path / f"safe{workers}")) == 0
        assert pq.read_table(out).equals(pq.read_table(made))
        assert not (tmp_path / f"safe{workers}" / "vectors").exists()
    assert not list(tmp_path.glob("*.vault"))


def test_imported_vectors_are_counted_on_the_notes(made, notes, tmp_path):
    save_vectors(load_vectors(made.with_name("out.parquet.vault") / "vectors"), tmp_path / "v.vec")
    assert run(notes, tmp_path / "o.parquet", "--seed", "4", "--vectors", str(tmp_path / "v.vec")) == 0
    assert load_channel(tmp_path / "o.parquet.vault" / "channel").eligible.sum() == len(set(COMMON)) + 1  # and "on"


def test_options_reach_the_channel_and_the_notes(notes, tmp_path, capsys):
    keep = tmp_path / "keep.txt"
    keep.write_text("Pain\ncough\n")
    out = tmp_path / "o.parquet"
    more = [
        "--set",
        "layout=keep",
        "--set",
        "numbers=mask",
        "--set",
        "scope=patient",
        "--set",
        "n=3-5",
        "--set",
        "n_per=type",
    ]
    assert run(notes, out, *more, "--set", f"keep_words={keep}", "--set", "unknown=drop", "--min-patients", "2") == 0
    before, after = notes_table()["text"].to_pylist(), pq.read_table(out)["text"].to_pylist()
    assert all(new.endswith(".") and "##/#" in new for new in after)
    pairs = [pair for old, new in zip(before, after, strict=True) for pair in zip(words(old), words(new), strict=True)]
    assert {old for old, new in pairs if old == new} == {"pain", "cough"}
    assert all(old == new for old, new in pairs if old in ("pain", "cough"))
    channel = load_channel(tmp_path / "o.parquet.vault" / "channel")
    assert channel.kept == {"pain", "cough"}
    assert dict(channel.parameters) == {"low": 3, "high": 5, "n_per": "type"}
    assert channel.row(channel.unknown)[0].size == 0
    assert "kept on request" in capsys.readouterr().err


def test_no_word_of_a_note_stands_on_stderr_or_stdout(notes, tmp_path, capsys):
    assert run(notes, tmp_path / "o.parquet") == 0
    said = "".join(capsys.readouterr())
    assert not [name for name in ("qvortle", "zebulonski", "josé", "headache") if name in said.lower()]


def test_what_is_there_is_refused_and_forced(notes, tmp_path):
    out = tmp_path / "o.parquet"
    assert run(notes, out, "--seed", "1") == 0
    first = out.read_bytes()
    assert run(notes, out, "--seed", "2") == 2
    assert out.read_bytes() == first
    assert run(notes, out, "--seed", "2", "--force") == 0
    assert out.read_bytes() != first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.parquet", "o.parquet.vault"]


def test_too_many_null_texts_leave_nothing(tmp_path, capsys):
    table = notes_table()
    texts = [None if i < 2 else t for i, t in enumerate(table["text"].to_pylist())]
    for n_null, code in ((1, 0), (2, 4)):
        path, out = tmp_path / f"in{n_null}.parquet", tmp_path / f"out{n_null}"
        column = pa.array([t or (None if i >= 2 - n_null else "pain") for i, t in enumerate(texts)])
        pq.write_table(table.set_column(2, "text", column), path)
        assert run(path, out, "--seed", "1") == code
        assert out.exists() == (code == 0) == (tmp_path / f"out{n_null}.vault").exists()
    assert "2 of 120 notes cannot be written: 2 null text" in capsys.readouterr().err
    assert pq.read_table(tmp_path / "out1" / "notes.parquet").num_rows == 119
    assert not list(tmp_path.glob("*.part"))


def test_too_few_patients_is_exit_3(tmp_path, capsys):
    pq.write_table(notes_table(40), tmp_path / "in.parquet")
    assert run(tmp_path / "in.parquet", tmp_path / "out") == 3
    assert "--set allow_small=true" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet"]
    assert run(tmp_path / "in.parquet", tmp_path / "out", "--set", "allow_small=true", "--min-patients", "2") == 0


def test_without_a_patient_column_it_says_so(tmp_path, capsys):
    pq.write_table(notes_table(patients=False), tmp_path / "in.parquet")
    assert run(tmp_path / "in.parquet", tmp_path / "out.csv") == 0
    assert "each note counts as a separate patient" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_text().replace('"', "").startswith("note_id,text\n")


def test_real_notes(real_data, tmp_path):
    out = tmp_path / "out.parquet"
    more = ["--set", "id=doc_id", "--text", "transcription", "--set", "label=doc_type", "--seed", "1"]
    assert run(real_data("notes/mtsamples.csv.gz"), out, *more) == 0
    tokens = json.loads((tmp_path / "out.parquet.vault" / "manifest.json").read_text())["tokens"]
    assert (tokens["notes"], tokens["self_replaced"], tokens["unknown"]) == (1796, 0, 0)
    assert tokens["words"] == tokens["replaced"] > 800_000


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("out", "more", "said"),
    [
        ("x", ["--vault", "x"], "OUT and the vault are the same path"),
        ("x", ["--vault", "x/v"], "the vault is inside OUT"),
        ("v/x", ["--vault", "v"], "OUT is inside the vault"),
        ("in.parquet", [], "OUT and NOTES are the same path"),
        ("x", ["--vault", "in.parquet"], "the vault and NOTES are the same path"),
        ("vectors", ["--vectors", "vectors"], "OUT and --vectors are the same path"),
        ("x", ["--vault", "home"], "home: not an output folder of clinveil obfuscate --vault"),
        ("x", ["--vault", "file"], "file: the output folder exists as a file"),
    ],
)
def test_places_that_would_destroy_one_another_are_refused(tmp_path, monkeypatch, capsys, out, more, said):
    monkeypatch.chdir(tmp_path)
    for name in ("in.parquet", "file", "home/letter", "vectors/meta.json"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("mine")
    before = files(tmp_path)
    assert run(Path("in.parquet"), Path(out), *more, "--force") == 2
    assert said in capsys.readouterr().err
    assert files(tmp_path) == before


def test_a_vault_in_use_is_refused(notes, tmp_path, capsys):
    with locked(tmp_path / ".o.vault.lock"):
        assert run(notes, tmp_path / "o", "--force") == 2
    assert "o.vault: another run is using this folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_can_become_the_vault(notes, tmp_path):
    (tmp_path / "v").mkdir()
    assert run(notes, tmp_path / "o.parquet", "--vault", str(tmp_path / "v"), "--force") == 0
    assert stat.S_IMODE((tmp_path / "v").stat().st_mode) == 0o700
    assert (tmp_path / "v" / "key.bin").is_file()
