"""The work of detection grows linearly with a note: calls are counted, because times vary with the
load.
"""

from __future__ import annotations

import random
import sys

from clinveil.core import Span
from clinveil.lexicons import all_given_names, surnames
from clinveil.phi import Finder, NoteView, PhiSettings
from clinveil.phi.name_index import mentions


def dense(people):
    rng = random.Random(3)
    given = sorted(all_given_names())
    family = sorted(surnames())
    names = (f"{rng.choice(given).title()} {rng.choice(family).title()}" for _ in range(2 * people))
    return "".join(
        f"Seen by Dr. {first} with {second}, his wife. "
        for first, second in zip(names, names, strict=True)
    )


def calls(function, *arguments):
    count = 0

    def counted(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    function(*arguments)  # caches fill
    sys.setprofile(counted)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def test_a_line_of_twice_as_many_names_takes_twice_as_many_calls():
    find = Finder.of(PhiSettings()).find
    text = dense(200)
    assert calls(find, text + text) < 2.3 * calls(find, text)


def test_covered_names_are_looked_up_in_a_number_of_calls_that_does_not_depend_on_the_spans():
    def work(copies):
        text = "Ann Okafor slept. okafor ate. " * copies
        spans = [Span(30 * i, 30 * i + 10, "NAME", "test", 1.0) for i in range(copies)]
        names = frozenset({("ann", "okafor")})
        return calls(lambda: list(mentions(NoteView(text), names, frozenset(), spans)))

    assert work(400) < 2.3 * work(200)
