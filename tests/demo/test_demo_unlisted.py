"""`clinveil generate --unlisted`: names of no list, other wordings, the same for any number of workers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clinveil.cli.main import main
from clinveil.core.files import sha256
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.unlisted import renamed, unlisted_text
from clinveil.corpus.people import read_patients
from clinveil.lexicons.ambiguity import PARTICLES, lexical_classes
from clinveil.lexicons.names import name_form, world_given, world_surnames

CUES = ("NAME", "DATE", "PHONE", "EMAIL", "MRN", "AGE")


def generate(out: Path, *more: str) -> Path:
    assert (
        main(
            [
                "demo",
                "--notes-only",
                "-o",
                str(out),
                "--set",
                "patients=12",
                "--seed",
                "5",
                "--set",
                "unlisted=true",
                "--set",
                "quiet=true",
                *more,
            ]
        )
        == 0
    )
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("unlisted") / "demo", "--set", "workers=1")


@pytest.fixture(scope="module")
def spans(made: Path) -> list[dict[str, object]]:
    texts = {row["note_id"]: row["text"] for row in pq.read_table(made / "notes.parquet").to_pylist()}
    found = [json.loads(line) for line in (made / "spans.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(texts[one["note_id"]][one["start"] : one["end"]] == one["text"] for one in found)
    return found


def test_no_name_stands_in_a_list(spans: list[dict[str, object]]):
    said = {word for one in spans if one["label"] == "NAME" for word in re.findall(r"[^\W\d_]{2,}", str(one["text"]))}
    names = {word for word in said if word.lower() not in PARTICLES}
    assert len(names) > 100
    listed = {word for word in names if lexical_classes(word) or name_form(word) in world_given() | world_surnames()}
    assert not listed


def test_the_feed_and_the_addresses_have_the_new_names(made: Path, spans: list[dict[str, object]]):
    texts = {row["note_id"]: row["text"] for row in pq.read_table(made / "notes.parquet").to_pylist()}
    for patient in read_patients(made / "patients.parquet").values():
        own = " ".join(text for note, text in texts.items() if note.startswith(patient.patient_id))
        assert patient.name[-1] in own
        assert all(mail in texts_of(spans, "EMAIL") for mail in patient.emails if mail in own)
        assert not lexical_classes(patient.name[0])


def texts_of(spans: list[dict[str, object]], label: str) -> set[object]:
    return {one["text"] for one in spans if one["label"] == label}


def test_all_kinds_of_identifiers_stand_in_other_sentences(spans: list[dict[str, object]]):
    assert {str(one["label"]) for one in spans} >= {*CUES} - {"AGE"}
    usual, other = language().rules, language(True).rules
    worded = language(True).other
    assert len(worded) > 40 and all(usual[rule] != other[rule] for rule in worded)


def test_a_name_is_the_same_everywhere_in_a_corpus_and_another_in_another():
    assert renamed(1, "Smith") == renamed(1, "SMITH") != renamed(2, "Smith")
    first, last = renamed(1, "Ana"), renamed(1, "Smith")
    assert unlisted_text(1, "Ana M. Smith-Smith") == f"{first} M. {last}-{last}"
    assert unlisted_text(1, "ana.smith7") == f"{first}.{last}7".lower()


def test_workers_change_nothing(made: Path, tmp_path: Path):
    again = generate(tmp_path / "again", "--set", "workers=2")
    assert sha256(again / "spans.jsonl") == sha256(made / "spans.jsonl")
    assert pq.read_table(again / "notes.parquet").equals(pq.read_table(made / "notes.parquet"))


@pytest.mark.slow
def test_what_is_found_of_names_that_nobody_has_heard(tmp_path: Path):
    """Issue 13: names, dates, phones, e-mails, record numbers and ages over 89, at least .99 of each."""
    from clinveil.core.finding import read_findings

    demo, out = tmp_path / "demo", tmp_path / "found.json"
    assert (
        main(
            [
                "demo",
                "--notes-only",
                "-o",
                str(demo),
                "--set",
                "patients=150",
                "--seed",
                "2",
                "--set",
                "unlisted=true",
                "--set",
                "quiet=true",
            ]
        )
        == 0
    )
    measure = ["evaluate", "deidentification", str(demo / "notes.parquet"), "--gold", str(demo / "spans.jsonl")]
    assert main([*measure, "--set", "workers=1", "--set", "quiet=true", "--json", str(out)]) == 0
    recall = {
        f.detail["label"]: f.value for f in read_findings(out) if f.measure == "phi.recall" and "label" in f.detail
    }
    assert {label: recall[label] for label in CUES if recall[label] < 0.99} == {}
