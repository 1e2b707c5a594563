"""`release --reviewed`: marked misses are replaced, the estimated recall is in the release, and
folders that do not belong to the notes are refused in one line.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from kind_cases import WORDS

from clinveil.cli import main
from clinveil.core import Finding
from clinveil.phi import STRATA, open_desk, review_of, review_queue
from clinveil.phi.validation.marks import judged_parts, planted_range, read_design
from no_limits import NO_LIMITS

NOTES = 60
MISSED = "zorvik"  # in lower case, without a cue: no detector finds it
CITY = "Quxby"
SENTENCE = "The {} was {} and the {} of the {} is now {} with {}."
QUICK = ["--workers", "1", "-q"]


def write_notes(path: Path, last: str = "") -> Path:
    """Write one note per patient: each has a date, every third one identifiers that are missed."""
    rng = np.random.default_rng(5)
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["note_id", "patient_id", "text"])
        for number in range(NOTES):
            sentences = [SENTENCE.format(*rng.choice(WORDS, 6)) for _ in range(6)]
            sentences[2:2] = [f"Seen by Dr. Smith on {number % 12 + 1}/{number % 28 + 1}/2019."]
            if number % 3 == 0:
                sentences[4:4] = [f"The {CITY} scale was {MISSED}, and the {CITY} scale is low."]
            lines.writerow([f"n{number}", f"p{number}", " ".join(sentences) + last])
    return path


def validate(notes: Path, out: Path, *more: str) -> int:
    return main(["validate", str(notes), "-o", str(out), "--set", "locations=60", *QUICK, *more])


def judge(folder: Path, most: int = 1000) -> None:
    """Mark what is missed in the first locations, as a careful person does on the page."""
    samples = read_design(folder).samples
    run = review_of(folder)
    with open_desk(run, review_queue(run.entries(), most, "given"), "first") as desk:
        for at, entry in enumerate(desk.entries):
            sample = samples[entry.number]
            if STRATA[sample.stratum].detected:
                found = [(span.start, span.end) for span in entry.spans]
            else:
                found = [*_missed(entry.note.text, sample), *planted_range(sample)]
            verdicts = [
                {"place": [a, b], "verdict": "keep", "span": [a, b, "ID"]} for a, b in found
            ]
            desk.act(at, verdicts, done=True)


def _missed(text, sample):
    """The first mention of each missed identifier in the judged parts."""
    for word in (MISSED, CITY):
        for start, end in judged_parts(sample):
            if (at := text.find(word, start, end)) >= 0:
                yield at, at + len(word)
                break


def release(notes: Path, out: Path, *more: str, kind: str = "deidentified") -> int:
    command = ["release", str(notes), "-o", str(out), "--as", kind, "--again", *QUICK]
    return main([*command, *more])


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Notes, and the judged sample of them."""
    folder = tmp_path_factory.mktemp("reviewed")
    notes = write_notes(folder / "notes.csv")
    assert validate(notes, folder / "sample") == 0
    judge(folder / "sample")
    return folder


def finding_of(out: Path, measure: str) -> Finding:
    document = json.loads((out / "vault" / "findings.json").read_text(encoding="utf-8"))
    (found,) = (one for one in document["findings"] if one["measure"] == measure)
    return Finding.from_dict(found)


def test_marked_misses_are_gone_and_the_recall_is_in_the_findings(judged, tmp_path, capsys):
    assert release(judged / "notes.csv", tmp_path / "before") == 0
    before = (tmp_path / "before" / "release" / "notes.csv").read_text(encoding="utf-8")
    assert before.count(MISSED) == NOTES // 3 and before.count(CITY) == 2 * NOTES // 3
    out = tmp_path / "out"
    corrected = ["--reviewed", str(judged / "sample"), "--limits", str(NO_LIMITS)]
    assert release(judged / "notes.csv", out, *corrected) == 0
    after = (out / "release" / "notes.csv").read_text(encoding="utf-8")
    design = read_design(judged / "sample")
    texts = {
        row["note_id"]: row["text"]
        for row in csv.DictReader((judged / "notes.csv").open(encoding="utf-8"))
    }
    marked = {
        sample.note_id
        for sample in design.samples
        if not STRATA[sample.stratum].detected
        and any(MISSED in texts[sample.note_id][a:b] for a, b in sample.parts)
    }
    assert len(marked) > 5
    assert after.count(MISSED) == NOTES // 3 - len(marked)
    # The same word elsewhere in a marked note is replaced too.
    assert after.count(CITY) == 2 * (NOTES // 3 - len(marked))
    recall = finding_of(out, "validate.recall")
    assert recall.low < recall.value < recall.high
    assert recall.numbers["replaced"] == 2 * len(marked)
    assert recall.numbers["left"] == pytest.approx(
        recall.numbers["missed"] - recall.numbers["replaced"]
    )
    assert recall.numbers["marked"] == len(design.samples)
    assert recall.remarks[0] == "The recall is that of the detection, before corrections."
    assert finding_of(out, "validate.precision").value is not None
    record = json.loads((out / "vault" / "record.json").read_text(encoding="utf-8"))
    assert "validate.recall" in {one["measure"] for one in record["findings"]}
    assert "validate.recall" not in {
        one["measure"]
        for one in json.loads((tmp_path / "before" / "vault" / "record.json").read_text())[
            "findings"
        ]
    }


def test_words_of_marked_misses_are_replaced_before_other_kinds_read_them(judged, tmp_path):
    quick = [
        "vectors.dim=12",
        "vectors.epochs=1",
        "vectors.window=5",
    ]
    settings = [flag for one in quick for flag in ("--set", one)]
    out = tmp_path / "out"
    line = ["--reviewed", str(judged / "sample"), "--limits", str(NO_LIMITS), *settings]
    assert release(judged / "notes.csv", out, *line, kind="obfuscated") in (0, 4)
    assert finding_of(out, "validate.recall").numbers["replaced"] > 0


def test_deidentify_applies_the_same_folder(judged, tmp_path):
    out = tmp_path / "out.csv"
    line = [str(judged / "notes.csv"), "-o", str(out), "--reviewed", str(judged / "sample")]
    assert main(["deidentify", *line, *QUICK, "--seed", "1"]) == 0
    assert out.read_text(encoding="utf-8").count(MISSED) < NOTES // 3


def _sample(judged: Path, folder: Path) -> Path:
    return shutil.copytree(judged / "sample", folder / "sample")


def _other_notes(judged, folder):
    write_notes(folder / "notes.csv", " The end.")
    return folder / "notes.csv", _sample(judged, folder), []


def _unjudged(judged, folder):
    sample = _sample(judged, folder)
    shutil.rmtree(sample / "review")
    return judged / "notes.csv", sample, []


def _incomplete(judged, folder):
    sample = _sample(judged, folder)
    shutil.rmtree(sample / "review")
    judge(sample, most=1)
    return judged / "notes.csv", sample, []


def _other_detection(judged, folder):
    settings = ["--set", "identifiers.no_tagger=true"]
    return judged / "notes.csv", judged / "sample", settings


def _file(judged, folder):
    return judged / "notes.csv", judged / "sample" / "review" / "first.jsonl", []


def _nothing(judged, folder):
    return judged / "notes.csv", folder, []


def _overlaps(judged, folder):
    sample = _sample(judged, folder)
    path = sample / "review" / "first.jsonl"
    step = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    step["set"] = [
        {"place": [a, b], "verdict": "keep", "span": [a, b, "ID"]} for a, b in ((0, 9), (5, 20))
    ]
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(step) + "\n")
    return judged / "notes.csv", sample, []


BAD = {
    "the sample is of other notes, or the notes changed since": _other_notes,
    "no decisions of clinveil review": _unjudged,
    "no marks in stratum": _incomplete,
    "the sample was drawn with another detection (no_tagger)": _other_detection,
    "pass the folder of the run, sample": _file,
    "pass the folder that clinveil validate wrote": _nothing,
    "decisions overlap in 1 of": _overlaps,
}


@pytest.mark.parametrize("message", BAD)
def test_a_folder_that_does_not_fit_is_one_line(message, judged, tmp_path, capsys):
    notes, reviewed, more = BAD[message](judged, tmp_path)
    capsys.readouterr()
    assert release(notes, tmp_path / "out", "--reviewed", str(reviewed), *more) == 2
    shown = capsys.readouterr().err.strip()
    assert message in shown and len(shown.splitlines()) == 1
    assert MISSED not in shown
    assert not (tmp_path / "out").exists()


def test_the_former_setting_is_named(judged, tmp_path, capsys):
    path = judged / "sample" / "review" / "first.jsonl"
    line = ["--set", f"identifiers.decisions={path}"]
    assert release(judged / "notes.csv", tmp_path / "out", *line) == 2
    assert "use identifiers.reviewed=FOLDER" in capsys.readouterr().err
    assert release(judged / "notes.csv", tmp_path / "out", "--decisions", str(path)) == 2
    assert "did you mean --reviewed" in capsys.readouterr().err


def test_two_reviewers_of_a_sample_add_up(judged, tmp_path):
    """What one of them marked is replaced, and counts."""
    from clinveil.phi import reviewed_findings

    sample = _sample(judged, tmp_path)
    (first, _) = reviewed_findings([sample])
    lines = (sample / "review" / "first.jsonl").read_text(encoding="utf-8").splitlines()
    head = json.dumps(json.loads(lines[0]) | {"reviewer": "second"})
    nothing = [json.dumps(json.loads(line) | {"set": []}) for line in lines[1:]]
    second = sample / "review" / "second.jsonl"
    second.write_text("\n".join([head, *nothing]) + "\n", encoding="utf-8")
    (both, _) = reviewed_findings([sample])
    assert both.numbers["replaced"] == first.numbers["replaced"]
    assert both.numbers["planted_marked"] == first.numbers["planted_marked"]
