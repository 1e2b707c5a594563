"""The three kinds of release, each made once from the same small corpus: what leaves, what stays,
what is refused.
"""

from __future__ import annotations

import csv
import json

import pytest
from kind_cases import KINDS, LAST, WORDS, arguments, released, write_notes

from clinveil.cli import main
from clinveil.core import words
from clinveil.corpus import open_corpus, rows


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder with the notes and one finished release of each kind."""
    folder = write_notes(tmp_path_factory.mktemp("kinds"))
    codes = {kind: released(folder, kind, kind) for kind in KINDS}
    assert codes == dict.fromkeys(KINDS, 0)
    return folder


def notes_in(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def manifest(desk, kind):
    return json.loads((desk / kind / "release" / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_leaves_the_same_files_and_verifies(desk, kind, capsys):
    names = {path.name for path in (desk / kind / "release").iterdir()}
    signed = {"manifest.sig", "signing-key.pem"}
    assert names == {
        "notes.csv",
        "README.md",
        "manifest.json",
        "report.html",
        "SHA256SUMS",
        *signed,
    }
    assert {"key.bin", "manifest.json", "findings.json", "report.html", "ledger.parquet"} <= {
        path.name for path in (desk / kind / "vault").iterdir()
    }
    assert main(["verify", str(desk / kind / "release")]) == 0
    made = manifest(desk, kind)
    assert (made["kind"], made["schema"]) == (kind, "clinveil.manifest/4")
    assert made["notes"]["rows"] == len(notes_in(desk / kind / "release" / "notes.csv")) > 0
    assert made["settings"]["kind"] == kind
    assert not [name for name in made["settings"] if name.startswith("lm.")] or kind == "synthetic"


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_lets_out_a_source_identifier_or_a_rare_word(desk, kind):
    source = notes_in(desk / "notes.csv")
    secret = {row["note_id"] for row in source} | {name.lower() for name in LAST}
    secret |= {word for row in source for word in words(row["text"]) if word.startswith("rareword")}
    allowed = (
        {word for word in secret if word.startswith("rareword")}
        if kind == "deidentified"
        else set()
    )
    for path in (desk / kind / "release").iterdir():
        found = {word for word in words(path.read_text(encoding="utf-8", errors="replace"))} & (
            secret - allowed
        )
        assert not found, (kind, path.name)


def test_obfuscated_keeps_one_word_per_word_and_sentence_ends(desk):
    source, target = ({row.note_id: row.text for row in rows(open_corpus(desk / path))}
        for path in (
        "notes.csv", "obfuscated/release/notes.csv",
    ))  # fmt: skip
    assert sorted(len(words(text)) for text in source.values()) == sorted(
        len(words(t)) for t in target.values()
    )
    assert all(text.count(".") == 8 and text.endswith(".") for text in target.values())
    assert set("".join(target.values())) <= set("abcdefghijklmnopqrstuvwxyz .")
    assert (
        manifest(desk, "obfuscated")["settings"]["channel.min_patients"] == 5
    )  # one in 40, at least 5


def test_deidentified_writes_the_text(desk):
    texts = [row["text"] for row in notes_in(desk / "deidentified/release/notes.csv")]
    kept = {word for text in texts for word in words(text)}
    assert set(WORDS) <= kept and all("Patient name: " in text for text in texts)


def test_synthetic_writes_notes_of_nobody(desk):
    texts = notes_in(desk / "synthetic/release/notes.csv")
    assert [row["note_id"] for row in texts] == [f"synthetic-{i:06d}" for i in range(1, 61)]
    assert list(texts[0]) == ["note_id", "patient_id", "text", "kind"]
    made = manifest(desk, "synthetic")
    assert made["model"]["kind"] == "unigram" and made["counts"]["notes"] == 60
    gates = {gate["name"] for gate in made["gates"]}
    assert {
        "no long copies",
        "no note copied whole",
        "rare-word floor held",
        "enough different words",
    } <= gates
    assert (desk / "synthetic/vault/model/model.json").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_three_excerpts_are_released_text(desk, kind):
    record = json.loads((desk / kind / "vault" / "record.json").read_text(encoding="utf-8"))
    texts = [
        " ".join(row["text"].split()) for row in notes_in(desk / kind / "release" / "notes.csv")
    ]
    assert record["kind"] == kind and len(record["excerpts"]) == 3
    for excerpt in record["excerpts"]:
        assert any(excerpt.removesuffix(" …") in text for text in texts)
        assert len(excerpt.split()) <= 26
    assert (desk / kind / "vault" / "sample.html").exists() == (kind != "synthetic")


@pytest.mark.parametrize(
    ("kind", "flags", "message"),
    [
        (
            "deidentified",
            ["--set", "channel.background=0.3"],
            "channel.background applies to kind obfuscated",
        ),
        (
            "synthetic",
            ["--set", "channel.n=5"],
            "channel.n applies to kind obfuscated, not to",
        ),
        (
            "obfuscated",
            ["--set", "lm.size=tiny"],
            "lm.size applies to kind synthetic, not to kind obfuscated",
        ),
        ("obfuscated", ["--set", "vectors.windw=3"], "did you mean vectors.window?"),
        ("deidentified", ["--vectors", "x"], "--vectors applies to kind obfuscated"),
        (
            "synthetic",
            ["--set", "lm.vocabulary=words"],
            "this command has no setting lm.vocabulary",
        ),
    ],
)
def test_options_of_another_kind_are_usage_errors(desk, kind, flags, message, capsys):
    assert released(desk, "never", kind, *flags) == 2
    assert message in capsys.readouterr().err and not (desk / "never").exists()


def test_without_the_extra_a_neural_model_ends_before_any_work(desk, capsys, monkeypatch):
    monkeypatch.setattr("clinveil.core.neural.find_spec", lambda name: None)
    assert main(arguments(desk, "never", "synthetic", "--set", "lm.model=lstm")) == 6
    assert (
        "pip install 'clinveil[neural]'" in capsys.readouterr().err
        and not (desk / "never").exists()
    )


@pytest.mark.parametrize("kind", ["deidentified", "synthetic"])
def test_an_interrupted_run_goes_on_and_a_seed_repeats(desk, kind, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("clinveil.releases.pipeline.attacked", stop)
        assert released(desk, f"{kind}-one", kind, "--seed", "3") == 130
    assert not (desk / f"{kind}-one" / "release").exists()
    assert [released(desk, f"{kind}-{name}", kind, "--seed", "3") for name in ("one", "two")] == [
        4,
        4,
    ]
    one, two = (
        (desk / f"{kind}-{name}/vault/refused/notes.csv").read_bytes() for name in ("one", "two")
    )
    assert one == two


def test_a_release_of_two_words_is_refused(tmp_path, capsys):
    texts = "".join(f'n{i},p{i},"date and date date {"and date" * (i % 3)}"\n' for i in range(80))
    (tmp_path / "notes.csv").write_text("note_id,patient_id,text\n" + texts, encoding="utf-8")
    how = ["--as", "deidentified", "--workers", "1", "--quiet"]
    assert main(["release", str(tmp_path / "notes.csv"), "-o", str(tmp_path / "out"), *how]) == 4
    said = capsys.readouterr().out
    assert (
        "NOT HELD enough different words: " in said and not (tmp_path / "out" / "release").exists()
    )


def test_a_foreign_folder_is_left_alone(desk, tmp_path, capsys):
    old = tmp_path / "out"
    (old / "release").mkdir(parents=True)
    (old / "release" / "notes.csv").write_text("x")
    for flags in ([], ["--force"]):
        command = ["release", str(desk / "notes.csv"), "-o", str(old), "--as", "deidentified"]
        assert main([*command, *flags]) == 2
        assert "already exists and is not a" in capsys.readouterr().err
    assert (old / "release" / "notes.csv").read_text() == "x"
