"""Long work that says how far it is, where there is somebody who can show it, and does the same
work where not.
"""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest

from clinveil.cli.progress import Speaker
from clinveil.core import Countdown, steps, track
from clinveil.releases.context import StageTimer


class Clock:
    """Seconds that pass only when a test says so."""

    now = 100.0

    def __call__(self):
        return self.now


class Teller:
    """A `Say` that can show progress, and remembers what it was told."""

    def __init__(self):
        self.told = []

    def __call__(self, line):
        self.told.append(line)

    @contextmanager
    def count(self, what, total=None):
        self.told.append((what, total))
        yield self.told.append

    stage = count


def test_steps_are_shown_from_the_first_on():
    teller = Teller()
    with steps("passes", teller) as step:
        step(1, 3)
        step(2, 3)
    assert teller.told == [("passes", 3), 1, 2]
    with steps("passes", print) as step:
        step(1, 3)


def test_the_remaining_time_follows_the_rate():
    clock = Clock()
    work = Countdown(10, clock=clock)
    assert work.left is None and work.rate is None
    clock.now += 20
    work.update(2)
    assert (work.rate, work.left) == (0.1, 80)
    clock.now += 30
    assert work.left == 50, "it counts down between updates"
    work.update(3)
    assert work.left == pytest.approx(50 / 3 * 10 - 50)


def test_a_stage_is_shown_with_its_counts_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    speaker = Speaker()
    plan = ["identifiers", "vectors"]
    with StageTimer(speaker, plan=plan).stage("vectors", "skipgram"):
        assert list(track(iter("ab"), "passes", speaker, 2)) == ["a", "b"]
        speaker("a line")
        with speaker.count("notes", 3) as show:
            show(3)
    written = capsys.readouterr().err
    assert "stage 2/2, vectors: " in written and "a line" in written
    with (
        StageTimer(Speaker(quiet=True), plan=plan).stage("vectors", ""),
        StageTimer(print, plan=plan).stage("x", ""),
    ):
        pass
    assert capsys.readouterr().err == ""
    with StageTimer(speaker, plan=plan).stage("other", "not in the plan"):
        pass
    assert "stage" not in capsys.readouterr().err


def test_a_stage_has_a_line_at_its_start_and_at_its_end():
    lines = []
    with StageTimer(lines.append).stage("vectors", "skipgram"):
        pass
    assert lines[0] == "vectors: skipgram" and len(lines) == 2
    assert re.fullmatch(r"vectors: ended at \d\d:\d\d:\d\d after 1 s", lines[1])
