"""Spans and splicing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import LABELS, InputError, Span, splice


@st.composite
def texts_with_spans(draw):
    text = draw(st.text(max_size=40))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    return text, [Span(a, b, "NAME") for a, b in list(itertools.pairwise(cuts))[::2]]


@given(texts_with_spans())
def test_splicing_the_originals_back_changes_nothing(case):
    text, spans = case
    assert splice(text, spans, [text[s.start : s.end] for s in spans]) == text


@given(texts_with_spans())
def test_splicing_nothing_removes_exactly_the_spans(case):
    text, spans = case
    inside = {i for s in spans for i in range(s.start, s.end)}
    assert splice(text, spans, [""] * len(spans)) == "".join(
        c for i, c in enumerate(text) if i not in inside
    )


def test_hand_solved():
    assert (
        splice("Dr Wu saw Al", [Span(3, 5, "NAME"), Span(10, 12, "NAME")], ["Ng", "Bo"])
        == "Dr Ng saw Bo"
    )


@pytest.mark.parametrize("bounds", [(2, 2), (3, 1), (-1, 2)])
def test_bad_spans(bounds):
    with pytest.raises(InputError):
        Span(*bounds, "NAME")


def test_unknown_label_and_bad_order():
    with pytest.raises(InputError, match="unknown PHI label"):
        Span(0, 1, "NOSE")
    with pytest.raises(InputError):
        splice("abcdef", [Span(2, 4, "NAME"), Span(3, 5, "NAME")], ["", ""])
    with pytest.raises(InputError):
        splice("abc", [Span(2, 9, "NAME")], [""])


def test_overlap_and_labels():
    assert Span(0, 3, "NAME").overlaps(Span(2, 4, "DATE"))
    assert not Span(0, 2, "NAME").overlaps(Span(2, 4, "DATE"))
    assert len(LABELS) == 22
