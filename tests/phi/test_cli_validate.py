"""`clinveil validate`: a run, its folder, a stop and going on, the judged sample, and what is
refused in one line.
"""

from __future__ import annotations

import json
import shlex
import shutil
import stat
from collections import defaultdict

import pytest

from clinveil.cli import main
from clinveil.core import InputError, read_findings
from clinveil.corpus import open_corpus, rows, write_demo
from clinveil.corpus.demo import demo_chunks
from clinveil.phi import STRATA, decisions_of, open_desk, review_of, review_queue
from clinveil.phi.validation import run as validation
from clinveil.phi.validation.marks import (
    UNSURE,
    judged_parts,
    planted_range,
    read_design,
    read_marks,
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notes")
    write_demo(folder / "demo", 8, 5)
    return folder / "demo"


@pytest.fixture(scope="module")
def finished(demo, tmp_path_factory):
    out = tmp_path_factory.mktemp("validated") / "out"
    assert validate(demo, out, "--patients", str(demo / "patients.parquet")) == 0
    return out


@pytest.fixture()
def done(finished, tmp_path):
    """A copy of the finished run, without decisions."""
    return shutil.copytree(finished, tmp_path / "out")


def validate(demo, out, *more):
    return main(
        [
            *shlex.split(
                f"validate {demo / 'notes.parquet'} -o {out} --set locations=60 -q --workers 1"
            ),
            *more,
        ]
    )


def judge(folder, verdicts_of, reviewer="first", most=1000):
    """Let a reviewer judge the sample; `verdicts_of` an entry returns None to leave it open."""
    run = review_of(folder)
    entries = review_queue(run.entries(), most, "given")
    with open_desk(run, entries, reviewer) as desk:
        for at, entry in enumerate(entries):
            if (verdicts := verdicts_of(entry)) is not None:
                desk.act(at, verdicts, done=True)
    return decisions_of(folder, reviewer)


def keep(start, end):
    return {"place": [start, end], "verdict": "keep", "span": [start, end, "ID"]}


def none(entry):
    """Reject the location; a passage has no span to reject."""
    return [{"place": [s.start, s.end], "verdict": "drop"} for s in entry.spans]


def unsure(entry):
    return []


def is_passage(sample):
    return not STRATA[sample.stratum].detected


def gold_of(folder, finds_planted=True):
    """Return verdicts as the gold spans have them: hits of a place, and the spans of a passage."""
    gold = defaultdict(list)
    for line in next(demo_chunks(8, 5)).spans.splitlines():
        span = json.loads(line)
        gold[span["note_id"]].append((span["start"], span["end"]))
    samples = read_design(folder).samples

    def verdicts(entry):
        sample = samples[entry.number]
        shown = zip(sample.parts, judged_parts(sample), strict=True)
        missed = [
            keep(first + max(start, a) - a, first + min(end, b) - a)
            for (a, b), (first, _) in shown
            for start, end in gold[sample.note_id]
            if a < end and start < b
        ]
        if is_passage(sample):
            planted = planted_range(sample) if finds_planted else []
            return [*missed, *(keep(*one) for one in planted)]
        (place,) = entry.spans
        return [keep(place.start, place.end)] if missed else none(entry)

    return verdicts


def test_the_folder_is_private_and_whole(done):
    assert stat.S_IMODE(done.stat().st_mode) == 0o700
    files = [path for path in done.rglob("*") if path.is_file()]
    assert {"design.json", "findings.json", "report.md"} <= {path.name for path in files}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert len(read_design(done).samples) == 60


def test_the_findings_hold_all_parts(done):
    findings = read_findings(done / "findings.json")
    measures = {finding.measure for finding in findings}
    assert measures == {f"validate.{m}" for m in ("known_patients", "known_mentions")}
    feeds = {f.labels[0]: f.value for f in findings if f.measure == "validate.known_patients"}
    assert feeds["with the patient list"] == 0.0 <= feeds["without the patient list"]


def test_the_folder_contains_no_text(done, demo):
    judge(done, gold_of(done))
    texts = {n.note_id: n.text for n in rows(open_corpus(demo / "notes.parquet"))}
    sampled = {
        texts[sample.note_id][start:end]
        for sample in read_design(done).samples
        for start, end in sample.parts
        if end - start > 6
    }
    written = "".join(path.read_text() for path in done.rglob("*") if path.is_file())
    assert len(sampled) > 30
    assert not [text for text in sampled if text in written]


def test_the_queue_shows_each_location_with_its_context_in_the_notes(done, demo):
    texts = {n.note_id: n.text for n in rows(open_corpus(demo / "notes.parquet"))}
    design = read_design(done)
    entries = list(review_of(done).entries())
    assert len(entries) == 60
    for entry, sample in zip(entries, design.samples, strict=True):
        if not sample.planted:
            assert entry.note.text in texts[sample.note_id]
        shown = [(span.start, span.end) for span in entry.spans] or list(entry.suspects)
        assert [entry.note.text[start:end] for start, end in judged_parts(sample)] == [
            texts[sample.note_id][start:end] for start, end in sample.parts
        ]
        judged = {i for start, end in judged_parts(sample) for i in range(start, end)}
        judged |= {i for start, end in planted_range(sample) for i in range(start, end)}
        assert {i for start, end in shown for i in range(start, end)} == judged


def test_who_judges_does_not_see_what_was_detected(done):
    run = review_of(done)
    with open_desk(run, list(run.entries()), "first") as desk:
        queue = desk.queue()
        assert queue["blind"]
        assert {tuple(entry) for entry in queue["notes"]} == {("id", "done", "decided")}
        shown = [desk.note(at) for at in range(60)]
    assert {tuple(note["pieces"]) for note in shown} == {()}
    places = [span for note in shown for span in note["spans"]]
    seen = ("label", "state", "detector", "score", "why")
    assert {tuple(span[name] for name in seen) for span in places} == {
        ("ID", "open", "sample", 1.0, "")
    }
    assert {is_passage(sample) for sample in read_design(done).samples} == {True, False}


def test_marks_are_what_was_decided(done):
    samples = read_design(done).samples
    passage = next(n for n, sample in enumerate(samples) if sample.planted)
    place, other, third = [n for n, s in enumerate(samples) if not is_passage(s)][:3]

    def verdicts(entry):
        if entry.number == passage:
            start, end = judged_parts(samples[passage])[0]
            outside = [] if start == 0 else [keep(0, 1)]  # belongs to another location
            planted = planted_range(samples[passage])  # is no identifier of the notes
            return [
                keep(start, start + 1),
                keep(end - 1, end),
                *outside,
                *(keep(*one) for one in planted),
            ]
        if entry.number == place:
            (span,) = entry.spans
            return [keep(span.start, span.end)]
        return {other: none, third: unsure}.get(entry.number, lambda _: None)(entry)

    marks = read_marks(judge(done, verdicts), read_design(done))
    assert marks.counts == {passage: 2, place: 1, other: 0, third: UNSURE}
    assert marks.planted == {passage: True}


def test_marks_give_recall(done):
    marks = judge(done, gold_of(done))
    assert main(["validate", str(done), "--marked", str(marks)]) == 0
    findings = {
        f.measure: f for f in read_findings(done / "recall.json") if f.measure != "validate.places"
    }
    recall = findings["validate.recall"]
    assert recall.value > 0.9 and recall.low < recall.value <= recall.high and recall.n == 60
    assert findings["validate.precision"].value > 0.9
    assert "Recall, from the annotated" in (done / "report.md").read_text()


def test_unsure_widens_both_ways(done, tmp_path):
    sure = gold_of(done)

    def doubtful(entry):
        return unsure(entry) if entry.spans and entry.number % 2 == 0 else sure(entry)

    for name, verdicts in {"a": sure, "b": doubtful}.items():
        path = str(judge(done, verdicts, reviewer=name))
        main(["validate", str(done), "--marked", path, "--json", str(tmp_path / f"{name}.json")])
    a, b = (read_findings(tmp_path / f"{name}.json")[0] for name in "ab")
    assert b.numbers["unsure"] >= 3
    assert b.low < a.low and b.value <= a.value and b.high >= a.high - 1e-3


def test_two_who_judge_the_sample_are_compared(done, tmp_path):
    judge(done, gold_of(done))
    judge(done, none, reviewer="second")
    path = tmp_path / "agreement.json"
    assert main(["evaluate", "agreement", str(done), "--json", str(path)]) == 0
    words, spans = read_findings(path)
    assert words.numbers["notes"] == 60
    assert words.value < 0.2 and spans.value < 0.2


BAD = {
    "another run": (none, {"run": "0123456789ab"}, 2, "belongs to another run"),
    "no marks": (lambda entry: None, {}, 2, "no marks"),
    "one stratum only": (
        lambda entry: none(entry) if entry.number == 0 else None,
        {},
        2,
        "no marks in stratum",
    ),
    "no design": (none, {"schema": "clinveil.locations/0"}, 3, "not the folder of a finished"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_marks_are_one_line(case, done, capsys):
    verdicts, changed, code, message = BAD[case]
    path = judge(done, verdicts)
    design = done / "design.json"
    design.write_text(json.dumps(json.loads(design.read_text()) | changed))
    capsys.readouterr()
    assert main(["validate", str(done), "--marked", str(path)]) == code
    shown = capsys.readouterr().err.strip()
    assert message in shown and len(shown.splitlines()) == 1


def test_changed_notes_are_not_judged(done, demo, tmp_path, capsys):
    moved = tmp_path / "notes.parquet"
    moved.write_bytes((demo / "notes.parquet").read_bytes())
    assert len(list(review_of(done, notes=moved).entries())) == 60
    write_demo(tmp_path / "more", 3, 6)
    with pytest.raises(InputError, match="not the notes of this run"):
        next(review_of(done, notes=tmp_path / "more" / "notes.parquet").entries())
    with pytest.raises(InputError, match="notes not found"):
        review_of(done, notes=tmp_path / "nowhere.parquet")


def test_a_finished_run_a_wrong_folder_and_a_missing_place(done, demo, tmp_path, capsys):
    assert validate(demo, done) == 2
    assert "finished run" in capsys.readouterr().err
    marks = str(judge(done, none))
    assert validate(demo, done, "--force") == 2  # it would delete the reviewer's work
    assert (done / "review" / "first.jsonl").exists()
    assert main(["validate", str(demo / "notes.parquet")]) == 2
    assert main(["validate", str(tmp_path), "--marked", marks]) == 3
    assert main(["validate", str(done), "--marked", marks, "-o", str(tmp_path / "x")]) == 2


def test_a_stopped_run_goes_on_and_comes_out_the_same(demo, done, tmp_path, monkeypatch):
    feed = ("--patients", str(demo / "patients.parquet"))

    def stop(*_):
        raise KeyboardInterrupt

    out = tmp_path / "again"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(validation, "_known", stop)
        validation.validate_notes(demo / "notes.parquet", out, settings(demo), say=lambda _: None)
    assert (out / "stages" / "locations.json").exists()
    assert not (out / "stages" / "known.json").exists()
    kept = (out / "design.json").stat().st_mtime_ns
    assert validate(demo, out, *feed) == 0
    assert (out / "design.json").stat().st_mtime_ns == kept
    for name in ("findings.json", "design.json"):
        assert (out / name).read_bytes() == (done / name).read_bytes()


def settings(demo):
    from clinveil.phi import ValidateSettings

    return ValidateSettings.model_validate(
        {
            "identifiers": {"patients": demo / "patients.parquet"},
            "locations": 60,
            "workers": 1,
        }
    )
