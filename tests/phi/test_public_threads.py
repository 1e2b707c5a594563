"""Problems of public threads about other tools: each line names its threads and has text of its
own.

A line with `known_failure` must fail: one that passes must lose the mark.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinveil.core import Key
from clinveil.phi import NoteDeidentifier

FILES = sorted(Path(__file__).parent.joinpath("public").glob("*.jsonl"))
LINES = [
    json.loads(line) for file in FILES for line in file.read_text(encoding="utf-8").splitlines()
]
CASES = [
    pytest.param(line, mode, id=f"{line['id']}-{mode}")
    for line in LINES
    for mode in ("tag", "replace")
]


def problems(line, mode):
    """What is left and should go, and what is gone and should stay."""
    deidentifier = NoteDeidentifier(Key.from_seed(1), mode=mode)
    text = line["text"]
    treated, _ = deidentifier.treat(text, deidentifier.find(text, "p1"), "p1")
    left = [part for part in line["must_go"] if part in treated]
    return left, [part for part in line["must_stay"] if part not in treated]


@pytest.mark.parametrize(("line", "mode"), CASES)
def test_the_problem_of_a_thread(line, mode):
    left, lost = problems(line, mode)
    assert bool(left or lost) == bool(line.get("known_failure")), (left, lost)


def test_each_line_names_its_threads_and_parts_of_its_text():
    assert len({line["id"] for line in LINES}) == len(LINES)
    for line in LINES:
        assert line["asked_in"] and line["problem"]
        assert all(part in line["text"] for part in (*line["must_go"], *line["must_stay"]))
