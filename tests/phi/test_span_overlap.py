"""From overlapping spans to ones that do not overlap, nothing lost."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import LABELS, Span, splice
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


@given(spans_of())
def test_splicing_what_stands_there_gives_the_text_back(spans):
    done = resolve(TEXT, spans)
    assert splice(TEXT, done, [TEXT[s.start : s.end] for s in done]) == TEXT


def test_the_longest_names_the_union():
    done = resolve(TEXT, [Span(0, 10, "ADDRESS"), Span(8, 12, "CITY"), Span(2, 4, "ZIP")])
    assert done == [Span(0, 12, "ADDRESS")]


def test_the_surest_wins_among_equals():
    done = resolve(TEXT, [Span(0, 4, "DATE", "a", 0.5), Span(0, 4, "AGE", "b", 0.9)])
    assert [span.label for span in done] == ["AGE"]


def test_spans_that_only_touch_stay_two():
    assert len(resolve(TEXT, [Span(0, 4, "DATE"), Span(4, 8, "CITY")])) == 2


def test_a_chain_of_overlaps_is_one():
    assert resolve(TEXT, [Span(0, 4, "ID"), Span(3, 7, "ID"), Span(6, 9, "ID")]) == [
        Span(0, 9, "ID")
    ]


def test_no_tail_of_a_name_is_left():
    text = "Dr. Okwuosa-Adeyemi's chart"
    assert [text[s.start : s.end] for s in resolve(text, [Span(4, 11, "NAME")])] == [
        "Okwuosa-Adeyemi"
    ]
    assert [text[s.start : s.end] for s in resolve(text, [Span(6, 9, "NAME")])] == [
        "Okwuosa-Adeyemi"
    ]


def test_a_name_does_not_swallow_punctuation():
    text = "Smith- and (Jones)"
    assert [
        text[s.start : s.end] for s in resolve(text, [Span(0, 5, "NAME"), Span(12, 17, "NAME")])
    ] == [
        "Smith",
        "Jones",
    ]
