"""From overlapping spans to ones that do not overlap, nothing lost."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import LABELS, Span
from clinveil.phi.detection.finder import resolve

TEXT = "x" * 60


# Names grow to the edges of their words, which the text here would make its whole length.
LABEL = st.sampled_from(sorted(set(LABELS) - {"NAME"}))


def spans_of():
    place = st.tuples(
        st.integers(0, 58),
        st.integers(1, 12),
        LABEL,
        st.sampled_from("ab"),
        st.sampled_from([0.5, 0.9]),
    )
    return st.lists(place.map(lambda p: Span(p[0], min(p[0] + p[1], 60), *p[2:])), max_size=12)


@given(spans_of())
def test_no_overlap_sorted_and_nothing_uncovered(spans):
    done = resolve(TEXT, spans)
    assert all(a.end <= b.start for a, b in pairwise(done))
    covered = {i for span in done for i in range(span.start, span.end)}
    assert covered == {i for span in spans for i in range(span.start, span.end)}


@given(spans_of(), st.integers(0, 1000))
def test_the_order_of_detectors_changes_nothing(spans, seed):
    shuffled = spans[:]
    random.Random(seed).shuffle(shuffled)
    assert resolve(TEXT, shuffled) == resolve(TEXT, spans)


@given(spans_of())
def test_resolving_twice_is_resolving_once(spans):
    assert resolve(TEXT, resolve(TEXT, spans)) == resolve(TEXT, spans)


NAME = "Okwuosa-Adeyemi"
CHART = f"Dr. {NAME}'s chart"
# A text, spans that overlap or touch, and the spans that remain.
CASES = {
    "the longest names the union": (
        TEXT,
        [Span(0, 10, "ADDRESS"), Span(8, 12, "CITY"), Span(2, 4, "ZIP")],
        [(0, 12, "ADDRESS")],
    ),
    "the surest wins among equals": (
        TEXT,
        [Span(0, 4, "DATE", "a", 0.5), Span(0, 4, "AGE", "b", 0.9)],
        [(0, 4, "AGE")],
    ),
    "spans that only touch stay two": (
        TEXT,
        [Span(0, 4, "DATE"), Span(4, 8, "CITY")],
        [(0, 4, "DATE"), (4, 8, "CITY")],
    ),
    "a chain of overlaps is one": (
        TEXT,
        [Span(0, 4, "ID"), Span(3, 7, "ID"), Span(6, 9, "ID")],
        [(0, 9, "ID")],
    ),
    "no tail of a name is left": (CHART, [Span(4, 11, "NAME")], [(4, 19, "NAME")]),
    "nor its beginning": (CHART, [Span(6, 9, "NAME")], [(4, 19, "NAME")]),
    "a name has no punctuation": (
        "Smith- and (Jones)",
        [Span(0, 5, "NAME"), Span(12, 17, "NAME")],
        [(0, 5, "NAME"), (12, 17, "NAME")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_overlaps_by_hand(case):
    text, spans, expected = CASES[case]
    assert [(span.start, span.end, span.label) for span in resolve(text, spans)] == expected
