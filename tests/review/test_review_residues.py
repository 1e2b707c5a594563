"""Residues in the review: they come first, stay as written until accepted, and are no residues once
rejected.
"""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from review_cases import deidentify, write_notes

from clinveil.core import InputError, UsageError
from clinveil.phi import open_desk, review_queue
from clinveil.phi.detection import finder
from clinveil.phi.review.past_runs import past_run

TEXTS = {
    "names": "Dr. Okafor saw Zylphara, Vrantik and Quomble.",
    "dates": "Seen on 3/4/2019 by Dr. Okafor, lot 55-44-33.",
    "clean": "No pain.",
}


@pytest.fixture
def missed(tmp_path, monkeypatch):
    """Notes of which the detectors of dates and numbers found nothing."""
    off = {"dates", "phones", "record_numbers"}
    left = tuple(one for one in finder.DETECTORS if one.name not in off)
    monkeypatch.setattr(finder, "DETECTORS", left)
    write_notes(tmp_path / "notes.parquet", TEXTS)
    assert deidentify(tmp_path / "notes.parquet", "-o", tmp_path / "out.parquet") == 4
    return tmp_path


def queue(folder):
    run = past_run(folder / "out.parquet")
    return run, review_queue(run.entries(), 9, "worst")


def test_without_stored_spans_the_queue_has_the_notes_with_residues(missed):
    _, entries = queue(missed)
    assert [entry.note.note_id for entry in entries] == ["dates"]
    text = TEXTS["dates"]
    assert [text[s.start : s.end] for s in entries[0].residues] == ["3/4/2019", "55-44-33"]
    assert [text[s.start : s.end] for s in entries[0].spans] == ["Okafor"]


def test_residues_stay_as_written_until_accepted_and_rejected_ones_are_excused(missed):
    run, entries = queue(missed)
    text, (date, lot) = TEXTS["dates"], entries[0].residues
    with open_desk(run, entries, "first") as desk:
        shown = desk.note(0)
        assert {span["detector"] for span in shown["spans"]} >= {"residue"}
        assert all(text[a:b] != "3/4/2019" for a, b, _ in shown["pieces"])
        span = [date.start, date.end, "DATE"]
        desk.act(0, [{"place": span[:2], "verdict": "keep", "span": span}])
        state = desk.act(0, [{"place": [lot.start, lot.end], "verdict": "drop"}], True)
        assert [text[a:b] for a, b, _ in state["pieces"]] == ["3/4/2019", "Okafor"]
    vault = missed / "out.parquet.vault"
    again = missed / "again.parquet"
    assert deidentify(missed / "notes.parquet", "-o", again, "--reviewed", vault, "--keep-ids") == 0
    written = dict(
        zip(*(pq.read_table(again)[name].to_pylist() for name in ("note_id", "text")), strict=True)
    )
    assert "3/4/2019" not in written["dates"] and "55-44-33" in written["dates"]
    assert not (missed / "again.parquet.vault" / "residues.jsonl").read_text()


def test_a_run_without_residues_and_spans_has_nothing_to_review(tmp_path):
    write_notes(tmp_path / "notes.parquet", {"clean": TEXTS["clean"]})
    assert deidentify(tmp_path / "notes.parquet", "-o", tmp_path / "out.parquet") == 0
    with pytest.raises(UsageError, match="no residues and stored no spans"):
        past_run(tmp_path / "out.parquet")


def test_notes_that_changed_or_damaged_residues_are_one_line(missed):
    write_notes(
        missed / "notes.parquet",
        {**TEXTS, "dates": "Seen on 3/5/2019 by Dr. Okafor, lot 55-44-33."},
    )
    with pytest.raises(InputError, match="not those of the run"):
        queue(missed)
    path = missed / "out.parquet.vault" / "residues.jsonl"
    path.write_text(json.dumps({"note_id": "dates"}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1: invalid residue"):
        queue(missed)
