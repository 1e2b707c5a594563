"""Terse British and Australian notes and lines of terms: names are found, shorthand, drugs and devices are left alone.

`terse/held.txt` and every second line of `terse/hard_negatives.txt` are kept for measuring (benchmarks/phi.md).
"""

from __future__ import annotations

from pathlib import Path

from marked import unmark

from clinveil.phi.detection.finder import Finder

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
