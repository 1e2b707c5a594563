"""`clinveil evaluate deidentification` on notes with gold spans: what is counted, and what is
refused.
"""

from __future__ import annotations

import json
import shlex
import stat

import pytest
from numpy.random import default_rng

from clinveil.cli import main
from clinveil.core import Span, read_findings
from clinveil.stats import share_by_patient
from clinveil.utility import score
from clinveil.utility.deidentification.on_gold import (
    GoldNote,
    Survival,
    Tally,
    gold_findings,
    tally_notes,
)

TEXT = "Dr. Ada O'Neill saw Mr. Fox on 3/4/2019 for asthma."
ADA = Span(4, 15, "NAME")
FOX = Span(24, 27, "NAME")
DAY = Span(31, 39, "DATE")
GOLD = (ADA, FOX, DAY)


def _hits(found, gold=GOLD):
    done = score(TEXT, gold, found)
    return [(h.whole, h.exact, h.partly, h.named, h.tokens, h.characters) for _, h in done.gold]


def test_whole_exact_partly_named_tokens_characters():
    assert [TEXT[s.start : s.end] for s in GOLD] == ["Ada O'Neill", "Fox", "3/4/2019"]
    assert _hits(GOLD) == [(1, 1, 1, 1, 3, 9), (1, 1, 1, 1, 1, 3), (1, 1, 1, 1, 3, 6)]
    assert _hits([]) == [(0, 0, 0, 0, 0, 0)] * 3
    # The quote need not be covered; a longer span is as good as an exact one but for its ends.
    assert _hits([Span(4, 7, "NAME"), Span(8, 9, "NAME"), Span(10, 15, "NAME")])[0] == (
        1,
        0,
        1,
        1,
        3,
        9,
    )
    assert _hits([Span(0, 16, "NAME")])[0] == (1, 0, 1, 1, 3, 9)
    assert _hits([Span(4, 15, "DATE")])[0] == (1, 1, 1, 0, 3, 9)
    assert _hits([Span(5, 7, "NAME")])[0] == (0, 0, 1, 0, 0, 2)
    assert _hits([Span(7, 8, "NAME")])[0] == (0, 0, 0, 0, 0, 0)  # the blank between


def test_words_that_are_covered_without_need():
    done = score(TEXT, GOLD, [Span(0, 7, "NAME"), Span(44, 50, "NAME")])
    assert (done.words, done.touched) == (6, 2)  # Dr. saw Mr. on for asthma.
    assert (done.clinical, done.clinical_touched) == (sum(w in TEXT for w in ("asthma",)), 1)
    assert [one.right for one in done.detected] == [True, False]


def _note(patient, found, gold=GOLD, note="n"):
    return GoldNote(note, patient, TEXT, gold, found)


def _value(findings, measure, *words):
    [found] = [f for f in findings if f.measure == measure and {*words} <= {*f.labels, f.series}]
    return found


def test_a_perfect_finder_and_a_blind_one():
    perfect = gold_findings(tally_notes([_note("a", GOLD), _note("b", GOLD)]))
    assert all(
        f.value == (0.0 if "leaky" in f.measure or "touched" in f.measure else 1.0) for f in perfect
    )
    blind = gold_findings(tally_notes([_note("a", ()), _note("b", ())]))
    assert _value(blind, "phi.leaky_patients").value == 1.0
    assert all(f.value == 0.0 for f in blind if f.measure == "phi.recall")
    assert _value(blind, "phi.precision", "the same ends as an identifier").value is None


def test_shares_labels_and_intervals_are_by_patient():
    rng = default_rng(3)
    notes = []
    counts = {}
    for number in range(60):
        patient = f"p{number % 12}"
        missed = number % 12 < 3 and rng.random() < 0.7
        notes.append(_note(patient, (FOX, DAY) if missed else GOLD, note=str(number)))
        hits, things = counts.get(patient, (0, 0))
        counts[patient] = (hits + 3 - missed, things + 3)
    found = gold_findings(tally_notes(notes))
    all_of = _value(found, "phi.recall", "every letter and digit")
    import numpy as np

    expected = np.array(list(counts.values()))
    assert all_of.value == expected[:, 0].sum() / expected[:, 1].sum()
    assert (all_of.low, all_of.high) == share_by_patient(expected)
    assert _value(found, "phi.recall", "DATE").value == 1.0
    leaky = sum(len(note.detected) == 2 for note in notes)
    assert _value(found, "phi.leaky_notes").count == leaky
    assert _value(found, "phi.leaky_patients").count == 3
    assert _value(found, "phi.leaky_patients").n == 12


def test_incomplete_gold_has_no_precision():
    found = gold_findings(tally_notes([_note("a", GOLD)], complete=False))
    assert _value(found, "phi.precision").value is None
    assert not [f for f in found if f.measure == "phi.touched"]


def test_findings_hold_no_text():
    tally = Tally()
    tally.add(_note("Fox", ()))
    assert "Fox" not in json.dumps([f.as_dict() for f in gold_findings(tally)])
    assert "Fox" not in repr(_note("Fox", ()))
    assert "Fox" not in repr(tally)


def test_what_still_stands_in_a_written_note():
    survival = Survival()
    survival.add(
        _note("a", ()), "Dr. X saw mr. FOX for asthma, said ada.", other="Nothing. 3/4/2019"
    )
    found = list(survival.findings())
    assert _value(found, "phi.survives", "all identifiers").count == 1  # FOX, whatever its case
    assert _value(found, "phi.survives", "NAME").value == 0.5
    assert _value(found, "phi.survives", "words of names").count == 2  # ada too
    assert _value(found, "phi.survives", "notes").value == 1.0
    assert _value(found, "phi.survives", "DATE").chance == 1.0
    foxes = Survival()
    foxes.add(_note("a", ()), "foxes, 13/4/2019", None)
    assert all(f.value == 0.0 for f in foxes.findings())  # words, not letters


def test_an_age_that_is_any_number_is_not_looked_for():
    survival = Survival()
    note = GoldNote("n", "a", "Ada is 94.", (Span(0, 3, "NAME"), Span(7, 9, "AGE")), ())
    survival.add(note, "Pulse 94.", None)
    found = list(survival.findings())
    assert _value(found, "phi.survives", "all identifiers").n == 1
    assert not [f for f in found if "AGE" in f.labels]


NOTES = [
    {
        "note_id": "1",
        "patient_id": "a",
        "text": "Patient: Mary Smith\nSeen on 3/4/2019 by Dr. Jones.",
    },
    {"note_id": "2", "patient_id": "a", "text": "Mrs. Smith has no fever."},
    {"note_id": "3", "patient_id": "b", "text": "Zzyx came in, no pain."},
]
SPANS = [
    ("1", 9, 19, "NAME"),
    ("1", 28, 36, "DATE"),
    ("1", 44, 49, "NAME"),
    ("2", 5, 10, "NAME"),
    ("3", 0, 4, "NAME"),
]


@pytest.fixture
def site(tmp_path):
    (tmp_path / "notes.jsonl").write_text("".join(json.dumps(note) + "\n" for note in NOTES))
    keys = ("note_id", "start", "end", "label")
    (tmp_path / "gold.jsonl").write_text(
        "".join(json.dumps(dict(zip(keys, s, strict=True))) + "\n" for s in SPANS)
    )
    return tmp_path


def _run(site, *more, gold="gold.jsonl"):
    notes = shlex.split(
        f"{site / 'notes.jsonl'} --gold {site / gold} --set workers=1 --set quiet=true"
    )
    return main(["evaluate", "deidentification", *notes, *more])


def test_our_detectors_on_gold(site):
    assert _run(site, "--json", str(site / "f.json"), "--errors", str(site / "e.jsonl")) == 0
    found = read_findings(site / "f.json")
    recall = _value(found, "phi.recall", "every letter and digit")
    assert recall.n == 5
    assert recall.count >= 3
    errors = [json.loads(line) for line in (site / "e.jsonl").read_text().splitlines()]
    assert len([e for e in errors if e["error"] != "no identifier"]) == recall.n - recall.count
    assert stat.S_IMODE((site / "e.jsonl").stat().st_mode) == 0o600
    assert _run(site, "--errors", str(site / "e.jsonl")) == 2


def test_another_tools_spans(site):
    (site / "found.jsonl").write_text('{"note_id": "3", "start": 0, "end": 4, "label": "PERSON"}\n')
    assert _run(site, "--found", str(site / "found.jsonl"), "--json", str(site / "f.json")) == 0
    found = read_findings(site / "f.json")
    assert _value(found, "phi.recall", "every letter and digit").count == 1
    assert _value(found, "phi.leaky_patients").count == 1


def test_what_is_left_in_written_notes(site, capsys):
    (site / "out.jsonl").write_text(
        "".join(json.dumps(n | {"text": n["text"][5:]}) + "\n" for n in NOTES)
    )
    assert _run(site, "--output", str(site / "out.jsonl"), "--json", str(site / "f.json")) == 0
    found = read_findings(site / "f.json")
    left = _value(found, "phi.survives", "all identifiers")
    assert (left.count, left.n) == (4, 5)
    assert _value(found, "phi.survives", "notes").count == 2
    assert "Smith" not in capsys.readouterr().out


def test_a_sample_of_the_notes(site):
    lines = (site / "gold.jsonl").read_text().splitlines()
    (site / "some.jsonl").write_text(lines[4] + '\n{"note_id": "2"}\n')
    assert (
        _run(site, "--set", "listed=true", "--json", str(site / "f.json"), gold="some.jsonl") == 0
    )
    found = read_findings(site / "f.json")
    assert _value(found, "phi.recall", "every letter and digit").numbers["notes"] == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            {"note_id": "9", "start": 0, "end": 3, "label": "NAME"},
            "spans of 1 notes that are not among the notes",
        ),
        ({"note_id": "1", "start": 0, "end": 999, "label": "NAME"}, "the span ends at 999"),
        ({"note_id": "1", "start": 0, "end": 12, "label": "NAME"}, "two spans overlap"),
        ({"note_id": "1", "start": 0, "end": 3, "label": "WIZARD"}, "unknown label"),
        ({"note_id": "1", "start": 3, "end": 3, "label": "NAME"}, "a span needs 0 <= start < end"),
    ],
)
def test_spans_that_do_not_fit_are_one_line_and_exit_3(site, capsys, line, said):
    with (site / "gold.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert _run(site, "--errors", str(site / "e.jsonl")) == 3
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert said in told[0]
    assert not (site / "e.jsonl").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x.csv"],
        ["--grid", "--gold", "x"],
        ["x.csv", "--gold", "y", "--found", "a", "--output", "b"],
    ],
)
def test_what_does_not_go_together(arguments, capsys):
    assert main(["evaluate", "deidentification", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_in_python(site):
    import clinveil

    gold = {"3": [(0, 4, "NAME")], "2": [(5, 10, "PATIENT")]}
    found = clinveil.evaluate.deidentification(
        str(site / "notes.jsonl"), gold, found={"3": [(0, 4, "NAME")]}
    )
    assert _value(found, "phi.recall", "every letter and digit").value == 0.5
    by_ours = clinveil.evaluate.deidentification(str(site / "notes.jsonl"), site / "gold.jsonl")
    assert _value(by_ours, "phi.recall", "every letter and digit").n == 5
    with pytest.raises(clinveil.InputError, match="wrong shape"):
        clinveil.evaluate.deidentification(str(site / "notes.jsonl"), {"3": [0]})
