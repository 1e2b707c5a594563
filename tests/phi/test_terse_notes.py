"""Terse British and Australian notes and lines of terms: names are found, shorthand, drugs and devices are left alone.

`terse/held.txt`, every second line of `terse/hard_negatives.txt` and the files `second` are kept for measuring.
"""

from __future__ import annotations

from pathlib import Path

from marked import unmark

from clinveil.phi.detection.finder import Finder
from clinveil.phi.settings import PhiSettings

FOLDER = Path(__file__).parent / "terse"


def test_terse_notes_keep_their_terms_and_lose_their_names():
    notes = [unmark(note.strip("\n")) for note in (FOLDER / "development.txt").read_text().split("---\n")]
    found = missed = false = 0
    for text, gold in notes:
        spans = Finder().find(text)
        found += len(spans)
        missed += sum(not any(s.start <= start and end <= s.end for s in spans) for start, end, _ in gold)
        false += sum(not any(s.start < end and start < s.end for start, end, _ in gold) for s in spans)
    assert missed <= 3 and false <= 3  # one of the missed is a title that gold includes
    assert found > 25


def test_lines_of_terms_are_left_alone():
    lines = (FOLDER / "hard_negatives.txt").read_text().splitlines()[::2]
    assert sum(bool(Finder().find(line)) for line in lines) <= 2


def test_names_of_terse_notes_written_after_the_rules_are_found():
    """Neither these notes nor their terms were used to write a rule or a list."""
    notes = [unmark(note.strip("\n")) for note in (FOLDER / "held_second.txt").read_text().split("---\n")]
    finder = Finder.of(PhiSettings())
    found = marked = outside = 0
    for text, gold in notes:
        spans = finder.find(text)
        marked += len(gold)
        found += sum(any(s.start <= start and end <= s.end for s in spans) for start, end, _ in gold)
        outside += sum(not any(s.start < end and start < s.end for start, end, _ in gold) for s in spans)
    assert found == marked == 16
    assert outside <= 1
