"""MedText: what the script writes, on invented notes and on real ones."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from papers.clinicalnlp_2019.prepare_medtext import main, read_medtext, spacy_splitter
from papers.clinicalnlp_2019.split import PARTS

from clinveil import open_corpus
from clinveil.corpus import DEIDENTIFIED, UNK, medtext
from clinveil.corpus.demo import demo_notes

SECRET = "zyqquavex"
SIZES = ["--train", "60", "--valid", "12", "--test", "10"]
FILES = {f"{part}.{kind}" for part in PARTS for kind in ("txt", "parquet")} | {"vocabulary.txt"}


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """The demo's notes in the working folder: several a patient."""
    monkeypatch.chdir(tmp_path)
    table = pa.Table.from_batches(demo_notes(60, 9)).select(
        ["note_id", "patient_id", "text", "diagnosis_group"]
    )
    pq.write_table(table, "notes.parquet")
    return table.to_pylist()


def prepare(*flags, source="notes.parquet", out="out", seed="3", sizes=SIZES):
    assert main([source, "-o", out, "--seed", seed, *sizes, *flags]) == 0
    return {part: pq.read_table(f"{out}/{part}.parquet").to_pylist() for part in PARTS}


def written(folder):
    """Relative name -> bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_parts_hold_the_notes_of_other_patients(notes, tmp_path):
    parts = prepare()
    assert set(written(tmp_path / "out")) == FILES | {"counts.json", "hashes.json", "SECRET.txt"}
    assert [
        len(parts[name]) >= wanted for name, wanted in zip(PARTS, (60, 12, 10), strict=True)
    ] == [True] * 3
    sides = [{row["patient_id"] for row in parts[name]} for name in PARTS]
    assert sum(map(len, sides)) == len(set.union(*sides))
    source = {row["note_id"]: row for row in notes}
    for row in (row for name in PARTS for row in parts[name]):
        own = source[row["note_id"]]
        assert row["patient_id"] == own["patient_id"]
        whole = medtext(own["text"]).split()
        assert [a for a, b in zip(row["text"].split(), whole, strict=True) if a != b] == [UNK] * (
            sum(a != b for a, b in zip(row["text"].split(), whole, strict=True))
        )


def test_rare_words_are_those_below_three_in_all_parts(notes, tmp_path):
    parts = prepare()
    source = {row["note_id"]: medtext(row["text"]) for row in notes}
    rows = [row for name in PARTS for row in parts[name]]
    counts = Counter(word for row in rows for word in source[row["note_id"]].split())
    for row in rows:
        expected = [word if counts[word] >= 3 else UNK for word in source[row["note_id"]].split()]
        assert row["text"].split() == expected
    kept = {word for word, count in counts.items() if count >= 3}
    assert set((tmp_path / "out/vocabulary.txt").read_text().split("\n")[:-1]) == kept | {
        UNK,
        "<eos>",
    }


def test_counts_are_those_of_the_files(notes, tmp_path, capsys):
    parts = prepare()
    said = capsys.readouterr()
    about = json.loads((tmp_path / "out/counts.json").read_text())
    (counts,) = about["corpora"]
    assert about["seed"] == 3
    for name in PARTS:
        rows = parts[name]
        own = counts["parts"][name]
        assert own["notes"] == len(rows) and own["patients"] == len(
            {row["patient_id"] for row in rows}
        )
        assert own["words"] == sum(len(row["text"].split()) for row in rows)
        assert own["lines"] == sum(row["text"].count("\n") + 1 for row in rows)
    words = [word for name in PARTS for row in parts[name] for word in row["text"].split()]
    assert counts["vocabulary"] == len(set(words)) + 1
    assert counts["oov"] == pytest.approx(words.count(UNK) / len(words))
    assert f"{counts['vocabulary']:,}" in said.out and f"{counts['oov']:.1%}" in said.out


def test_the_same_seed_writes_the_same_bytes(notes, tmp_path):
    for out, seed in (("one", "5"), ("two", "5"), ("three", "6")):
        prepare(out=out, seed=seed)
    one, two, three = (written(tmp_path / out) for out in ("one", "two", "three"))
    assert one == two
    assert one["test.txt"] != three["test.txt"]


def test_all_is_both_sizes_with_the_same_test_notes(notes, tmp_path, capsys):
    assert main(["notes.parquet", "-o", "out", "--size", "all", *SIZES, "--seed", "1"]) == 0
    ids = {}
    for size in ("small", "large"):
        assert {path.name for path in (tmp_path / "out" / size).iterdir()} == FILES
        for name in PARTS:
            ids[size, name] = pq.read_table(f"out/{size}/{name}.parquet")["note_id"].to_pylist()
    assert (
        ids["small", "test"] == ids["large", "test"]
        and ids["small", "valid"] == ids["large", "valid"]
    )
    assert set(ids["small", "train"]) < set(ids["large", "train"])
    assert sum(len(ids["large", name]) for name in PARTS) == len(notes)
    assert "MedText small" in capsys.readouterr().out
    small, large = json.loads((tmp_path / "out/counts.json").read_text())["corpora"]
    assert small["oov"] > large["oov"]  # words rare in the small one only


def test_min_patients_leaves_no_word_of_one_patient(notes, tmp_path):
    prepare("--min-patients", "2")
    parts = {name: pq.read_table(f"out/{name}.parquet").to_pylist() for name in PARTS}
    owners: dict[str, set[str]] = {}
    for row in (row for name in PARTS for row in parts[name]):
        for word in row["text"].split():
            owners.setdefault(word, set()).add(row["patient_id"])
    assert min(len(of) for word, of in owners.items() if word != UNK) == 2


def test_everything_is_private(notes, tmp_path):
    prepare()
    for path in [tmp_path / "out", *(tmp_path / "out").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0


MIMIC = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "CATEGORY", "ISERROR", "TEXT"]


def mimic(path, kinds=("Discharge summary", "Radiology", "Discharge summary ")):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(MIMIC)
        for i in range(60):
            error = "1" if i == 0 else ""
            writer.writerow(
                [i, i % 20, 7, kinds[i % 3], error, f"[**Name, J.**] {SECRET} was here. He left."]
            )


def test_mimics_discharge_summaries_unless_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    mimic("NOTEEVENTS.csv")
    command = ["NOTEEVENTS.csv", "--size", "large", "--valid", "3", "--test", "3", "--seed", "0"]
    assert main([*command, "-o", "one"]) == 0
    said = capsys.readouterr().err
    assert "CATEGORY=Discharge summary" in said and "not of the notes asked for: 20" in said
    assert "entered in error: 1" in said and SECRET not in said
    rows = [row for part in PARTS for row in pq.read_table(f"one/{part}.parquet").to_pylist()]
    assert len(rows) == 39 and {int(row["note_id"]) % 3 for row in rows} == {0, 2}
    assert rows[0]["text"].split("\n")[0].split()[0] == "<deidentified>"
    published = ["--only", "CATEGORY=Radiology", "--tags", "published"]
    assert main([*command, "-o", "two", *published]) == 0
    rows = [row for part in PARTS for row in pq.read_table(f"two/{part}.parquet").to_pylist()]
    assert len(rows) == 20
    assert rows[0]["text"].startswith("[ ** Name , J .\n** ]")


def refused(arguments, capsys, code=3):
    assert main([*arguments, "-o", "out", "--seed", "0"]) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert SECRET not in said
    return said


def test_refusals_are_one_line_and_leave_nothing(notes, tmp_path, capsys):
    before = sorted(tmp_path.iterdir())
    assert "too few; the parts need 1536" in refused(["notes.parquet"], capsys)
    many = ["--words", "9000000", "--valid", "9", "--test", "9"]
    assert "words are left" in refused(["notes.parquet", *many], capsys)
    assert "COLUMN=VALUE" in refused(["notes.parquet", "--only", "x"], capsys, 2)
    assert "no column" in refused(["notes.parquet", "--only", "x=1"], capsys)
    assert "no note is left" in refused(["notes.parquet", "--only", "diagnosis_group=none"], capsys)
    assert sorted(tmp_path.iterdir()) == before


def test_notes_without_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(
        pa.table({"note_id": ["1", "2"], "text": pa.array(["\n \n", None])}), "empty.parquet"
    )
    assert "no note is left (no word in it: 2)" in refused(["empty.parquet"], capsys)


def test_an_existing_folder_is_kept(notes, tmp_path, capsys):
    prepare()
    capsys.readouterr()
    before = written(tmp_path / "out")
    assert "already exists" in refused(["notes.parquet", *SIZES], capsys, 2)
    assert written(tmp_path / "out") == before


def test_without_spacy_the_message_says_how_to_install_it(notes, tmp_path, monkeypatch, capsys):
    spacy_splitter.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    message = refused(["notes.parquet", *SIZES, "--tokenizer", "spacy"], capsys, 6)
    assert "spaCy is not installed (pip install spacy)" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.slow  # spaCy takes seconds to import
def test_spacy_splits_into_tokens():
    pytest.importorskip("spacy", reason="spaCy is not installed")
    made = medtext("Dr. [**Name**] said: don't. He left.", split=spacy_splitter())
    assert made == f"Dr. {DEIDENTIFIED} said :\ndo n't .\nHe left ."


def test_what_was_read_shows_no_word(notes, tmp_path):
    found = read_medtext(open_corpus(tmp_path / "notes.parquet"))
    assert len(found) == len(notes)
    assert re.fullmatch(r"MedTextNotes\(skipped=.*\)", repr(found))


@pytest.mark.real
def test_real_notes(real_data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    source = str(real_data("notes/mtsamples.csv.gz"))
    with gzip.open(source, "rt", encoding="utf-8", newline="") as file:
        table = [(row["doc_id"], row["transcription"]) for row in csv.DictReader(file)]
    with open("notes.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("note_id", "text"), *table])
    assert main(["notes.csv", "-o", "out", "--seed", "1"]) == 0
    assert "each note counts as its own patient" in capsys.readouterr().err
    (counts,) = json.loads((tmp_path / "out/counts.json").read_text())["corpora"]
    assert [counts["parts"][part]["notes"] for part in PARTS] == [1280, 128, 128]
    assert 700_000 < counts["parts"]["train"]["words"] < 800_000
    assert 0.01 < counts["oov"] < 0.03 and 10_000 < counts["vocabulary"] < 15_000
    raw = dict(table)
    for row in pq.read_table("out/test.parquet").to_pylist():
        own = medtext(raw[row["note_id"]])
        assert "".join(own.split()) == "".join(raw[row["note_id"]].split())
        assert len(row["text"].split()) == len(own.split())
