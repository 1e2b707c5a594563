"""Decisions: the last word on a place counts, in doubt an identifier is hidden, and they are about
one text only.
"""

from __future__ import annotations

import json
import warnings
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import InputError, InputWarning, Span, UsageError
from clinveil.corpus import memory_corpus
from clinveil.phi import read_file, revised, text_hash
from clinveil.phi.review.decisions import SCHEMA, Decisions, Kept, refuse_overlaps

KEY = "5a" * 32
TEXT = "Dr. Foley saw Mary Smith on 3/4/2019."
FOUND = [
    Span(4, 9, "NAME", "names", 0.8),
    Span(14, 24, "NAME", "names", 0.9),
    Span(28, 36, "DATE", "dates", 0.9),
]


def line(note="n1", text=TEXT, key=KEY, **fields):
    return {"note": note, "text": text_hash(key, text), "set": [], **fields}


def keep(place, span):
    return {"place": list(place), "verdict": "keep", "span": list(span)}


def drop(place):
    return {"place": list(place), "verdict": "drop"}


def write(path, *lines, key=KEY, tail=""):
    head = {"schema": SCHEMA, "key": key, "reviewer": "first"}
    path.write_text("".join(json.dumps(each) + "\n" for each in (head, *lines)) + tail)
    return path


def test_what_is_rejected_goes_what_is_kept_stands_and_the_rest_stays(tmp_path):
    decided = [keep((14, 24), (14, 18, "NAME")), drop((4, 9)), keep((10, 13), (10, 13, "ID"))]
    spans = Decisions.read(write(tmp_path / "a.jsonl", line(set=decided)))("n1", TEXT, FOUND)
    assert [(s.start, s.end, s.label, s.detector) for s in spans] == [
        (10, 13, "ID", "review"),
        (14, 18, "NAME", "review"),
        (28, 36, "DATE", "dates"),
    ]


def test_an_accepted_span_is_the_found_one_and_other_notes_are_left_alone(tmp_path):
    decisions = Decisions.read(
        write(tmp_path / "a.jsonl", line(set=[keep((4, 9), (4, 9, "NAME"))]))
    )
    assert decisions("n1", TEXT, FOUND) == FOUND
    assert decisions("n2", "Other", FOUND[:1]) == FOUND[:1]


def test_the_last_word_counts_and_a_step_that_was_taken_back_does_not(tmp_path):
    steps = [
        line(set=[drop((4, 9))]),
        line(set=[drop((14, 24))]),
        line(set=[{"place": [14, 24], "verdict": "open"}]),
    ]
    assert Decisions.read(write(tmp_path / "a.jsonl", *steps))("n1", TEXT, FOUND) == FOUND[1:]


def test_what_a_later_detector_finds_beyond_what_was_looked_at_stays_hidden():
    wider = [Span(0, 9, "NAME", "better")]
    assert revised(wider, {(4, 9): None}) == wider
    assert revised([Span(5, 8, "NAME", "other")], {(4, 9): None}) == []
    narrowed = revised(FOUND[1:2], {(14, 24): Kept(14, 18, "NAME")})
    assert [(s.start, s.end) for s in narrowed] == [(14, 18)]


def test_what_one_reviewer_keeps_is_kept_whatever_another_says():
    one = {(4, 9): None, (14, 24): None}
    other = {(4, 9): Kept(4, 9, "NAME")}
    assert revised(FOUND, one, other) == [FOUND[0], FOUND[2]] == revised(FOUND, other, one)


places = st.tuples(st.integers(0, 30), st.integers(1, 6)).map(lambda p: (p[0], p[0] + p[1]))
verdicts = st.dictionaries(places, st.none() | places.map(lambda p: Kept(*p, "NAME")), max_size=6)


@given(st.lists(places, max_size=6), verdicts)
def test_all_that_is_kept_or_not_looked_at_is_covered_and_nothing_overlaps(found, decided):
    spans = [Span(*place, "DATE") for place in found]
    after = revised(spans, decided)
    covered = {i for span in after for i in range(span.start, span.end)}
    kept = {i for v in decided.values() if v for i in range(v.start, v.end)}
    looked_at = kept | {i for place in decided for i in range(*place)}
    assert kept <= covered
    assert {i for start, end in found for i in range(start, end)} - looked_at <= covered
    assert covered - kept <= {i for start, end in found for i in range(start, end)}
    assert all(one.end <= two.start for one, two in pairwise(after))


def test_a_half_written_last_line_counts_for_nothing(tmp_path):
    path = write(tmp_path / "a.jsonl", line(set=[drop((4, 9))]), tail='{"note": "n1", "text": "')
    assert Decisions.read(path)("n1", TEXT, FOUND) == FOUND[1:]
    assert read_file(path).size < path.stat().st_size


@pytest.mark.parametrize(
    "wrong",
    [
        {"set": [drop((9, 4))]},
        {"set": [drop((-1, 4))]},
        {"set": [keep((4, 9), (4, 9, "NAMES"))]},
        {"set": [keep((4, 9), (4, True, "NAME"))]},
        {"set": [{"place": [4, 9], "verdict": "maybe"}]},
        {"set": 5},
        {"note": 7},
        {"done": "yes"},
    ],
)
def test_a_line_that_is_none_is_named_by_its_number_and_nothing_of_it_is_shown(tmp_path, wrong):
    path = write(tmp_path / "a.jsonl", line(), {**line(), **wrong})
    with pytest.raises(
        InputError,
        match=r"a.jsonl: line 3 is not a decision \(pass a file written by clinveil review\)",
    ):
        Decisions.read(path)


@pytest.mark.parametrize(
    "text", ["", "{}\n", "[1]\n", "note,label\n", '{"schema": "clinveil.decisions/2"}\n']
)
def test_another_file_is_none_of_decisions(tmp_path, text):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="is not a file of decisions"):
        Decisions.read(path)
    with pytest.raises(InputError, match="cannot be read"):
        Decisions.read(tmp_path / "none.jsonl")


def test_decisions_about_changed_or_other_notes_are_refused_with_their_number(tmp_path):
    decisions = Decisions.read(write(tmp_path / "a.jsonl", line(), line("n2"), line("n3")))
    with pytest.raises(UsageError, match="2 of 3 notes with decisions have another text"):
        decisions.check_corpus(
            memory_corpus([("n1", "p", TEXT), ("n2", "p", TEXT + " "), ("n3", "p", "")])
        )
    with pytest.raises(UsageError, match="none of the 3 notes with decisions is here"):
        decisions.check_corpus(memory_corpus([("n4", "p", TEXT)]))
    with pytest.warns(InputWarning, match="1 of 3 notes with decisions are not here"):
        decisions.check_corpus(memory_corpus([("n1", "p", TEXT), ("n3", "p", TEXT)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decisions.check_corpus(memory_corpus([(f"n{i}", "p", TEXT) for i in range(1, 5)]))
    with pytest.raises(UsageError, match="has changed since"):
        decisions("n1", TEXT + ".", FOUND)


def test_a_kept_place_beyond_the_text_is_not_taken(tmp_path):
    decisions = Decisions.read(
        write(tmp_path / "a.jsonl", line(set=[keep((4, 9), (4, 99, "NAME"))]))
    )
    with pytest.raises(UsageError):
        decisions("n1", TEXT, FOUND)


def test_confirmed_identifiers_that_overlap_are_refused(tmp_path):
    overlapping = [keep((4, 9), (4, 9, "NAME")), keep((6, 13), (6, 13, "ID"))]
    path = write(tmp_path / "a.jsonl", line(set=overlapping), line("n2"))
    with pytest.raises(UsageError, match="decisions overlap in 1 of 2 notes"):
        refuse_overlaps(read_file(path), path)
    apart = [keep((4, 9), (4, 9, "NAME")), keep((9, 13), (9, 13, "ID")), drop((2, 8))]
    path = write(tmp_path / "b.jsonl", line(set=apart))
    refuse_overlaps(read_file(path), path)
