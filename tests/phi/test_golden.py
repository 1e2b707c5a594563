"""The golden lines of `golden/*.txt`: what is marked is found, with those labels, and nothing else.

A line that fails stands in `golden/known_failures.toml` with its reason: one that starts to pass
must leave it, and a new failure must not join it unseen.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from marked import found, marked_again, unmark

FOLDER = Path(__file__).parent / "golden"
LINES = [
    (f"{path.stem}-{number}", line.encode("latin-1", "backslashreplace").decode("unicode_escape"))
    if "\\u" in line or "\\n" in line
    else (f"{path.stem}-{number}", line)
    for path in sorted(FOLDER.glob("*.txt"))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
]
KNOWN = tomllib.loads((FOLDER / "known_failures.toml").read_text(encoding="utf-8"))[
    "known_failures"
]


@pytest.mark.parametrize(("name", "marked"), LINES, ids=[name for name, _ in LINES])
def test_a_golden_line_is_read_as_it_is_marked(name, marked):
    text, _ = unmark(marked)
    got = marked_again(text, found(text))
    assert (got == marked) == (name not in KNOWN), got


def test_each_known_failure_is_a_line_and_has_a_reason():
    assert set(KNOWN) <= {name for name, _ in LINES}
    assert all(KNOWN.values())
