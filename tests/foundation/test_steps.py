"""Long work that says how far it is, where there is somebody who can show it, and does the same
work where not.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager

import pytest

from clinveil.cli.progress import ShownWork, Speaker, duration
from clinveil.core.progress import Countdown, steps, track
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


def test_results_are_counted_by_their_size():
    teller = Teller()
    assert list(track(map(str.upper, ["a", "bb"]), "notes", teller, 3, len)) == ["A", "BB"]
    assert teller.told == [("notes", 3), 1, 3]
    assert list(track(map(str.upper, ["a"]), "notes", print, 6, len)) == ["A"]


def test_steps_are_shown_from_the_first_on():
    teller = Teller()
    with steps("passes", teller) as step:
        step(1, 3)
        step(2, 3)
    assert teller.told == [("passes", 3), 1, 2]
    with steps("passes", print) as step:
        step(1, 3)


def test_items_of_a_list_count_when_their_consumer_is_done():
    teller = Teller()
    for _ in track(["a", "b"], "attacks", teller, 2):
        teller("work")
    assert teller.told == [("attacks", 2), "work", 1, "work", 2]
    teller = Teller()
    for _ in track(iter("ab"), "notes", teller, 2):
        teller("work")
    assert teller.told == [("notes", 2), 1, "work", 2, "work"]


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


def test_no_remaining_time_where_the_estimate_is_overrun():
    clock = Clock()
    work = Countdown(10, clock=clock)
    clock.now += 20
    work.update(5)
    clock.now += 19
    assert work.left == 1
    clock.now += 1
    assert work.left is None


def test_the_line_of_a_stage():
    clock = Clock()
    work = ShownWork(Countdown(clock=clock), "stage 2/8, vectors")
    clock.now += 10
    assert work.line() == "stage 2/8, vectors: 0:00:10 elapsed"
    work.what = "passes"
    work.count = Countdown(20, clock)
    assert work.line() == "stage 2/8, vectors: 0 of 20 passes, 0:00:10 elapsed"
    clock.now += 30
    work.count.update(10)
    assert work.line() == "stage 2/8, vectors: 10 of 20 passes, 0:00:40 elapsed, about 0:00:30 left"
    clock.now += 3600
    assert work.line() == "stage 2/8, vectors: 10 of 20 passes, 1:00:40 elapsed"
    assert duration(3725.4) == "1:02:05"


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


def test_a_log_has_a_line_per_minute(monkeypatch, capsys):
    monkeypatch.setattr("clinveil.cli.progress.MINUTE", 0.05)
    speaker = Speaker()
    ended = time.monotonic() + 10
    with speaker.stage("vectors", 1, 1), speaker.count("passes", 3) as show:
        show(2)
        while not (written := capsys.readouterr().err) and time.monotonic() < ended:
            time.sleep(0.01)
    assert written.startswith("stage 1/1, vectors: 2 of 3 passes, 0:00:00 elapsed")
    time.sleep(0.2)
    assert capsys.readouterr().err.count("\n") <= 1, "no line after the work"
    with Speaker(quiet=True).count("notes"):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
