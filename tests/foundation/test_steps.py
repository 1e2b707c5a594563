"""Long work that says how far it is, where there is somebody who can show it, and does the same work where not."""

from __future__ import annotations

from contextlib import contextmanager

from clinveil.core.progress import shown, steps
from clinveil.scale import serial


class Teller:
    """A `Say` that can count, and remembers what it was told."""

    def __init__(self):
        self.told = []

    def __call__(self, line):
        self.told.append(line)

    @contextmanager
    def count(self, what, total=None):
        self.told.append((what, total))
        yield self.told.append


def test_the_results_of_a_map_are_counted_by_their_size():
    teller = Teller()
    assert list(shown(serial, "notes", teller, 6, len)(lambda item: item * 2, ["a", "bb"])) == ["aa", "bbbb"]
    assert teller.told == [("notes", 6), 2, 6]
    assert list(shown(serial, "notes", print, 6, len)(str.upper, ["a"])) == ["A"]


def test_steps_are_shown_from_the_first_on():
    teller = Teller()
    with steps("passes", teller) as step:
        step(1, 3)
        step(2, 3)
    assert teller.told == [("passes", 3), 1, 2]
    with steps("passes", print) as step:
        step(1, 3)
