"""The plain copy of a note and the map back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.phi import NoteView, plain

SEEN = [
    ("José", "José"),
    ("Jose\u0301", "José"),
    ("J\u200bo\u00adhn", "John"),
    ("０３/０４", "03/04"),
    ("٣/٤", "3/4"),
    ("O\u2019Brien", "O'Brien"),
    ("3\u20134", "3-4"),
    ("ﬁt", "fit"),
    ("a\u00a0b", "a b"),
    ("S\u0336m\u0336ith", "Smith"),
    ("Sm\u0456th", "Smith"),
    ("P\u0430ul", "Paul"),
    ("Иванов", "Иванов"),
    ("\u200bJohn\u200b", "John"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "seen"), SEEN)
def test_what_detectors_see(text, seen):
    assert plain(text).text == seen


def test_ascii_is_its_own_copy():
    copy = plain("Dr. Smith\r\n3/4")
    assert copy.text == "Dr. Smith\r\n3/4"
    assert copy.starts is None
    assert copy.source_offsets(4, 9) == (4, 9)


def test_places_go_back_to_code_points():
    text = "é J\u200bohn ﬁ x"
    copy = plain(text)
    start = copy.text.index("John")
    assert copy.source_offsets(start, start + 4) == (2, 7)
    start = copy.text.index("i", copy.text.index("f"))
    assert text[slice(*copy.source_offsets(start, start + 1))] == "ﬁ"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_every_place_lies_in_the_text_and_in_order(text):
    copy = plain(text)
    places = [copy.source_offsets(i, i + 1) for i in range(len(copy.text))]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_letters_and_digits_of_ascii_stay_where_they_are(text):
    copy = plain(text)
    back = dict(enumerate(text))
    if copy.starts:
        back = {copy.source_offsets(i, i + 1)[0]: c for i, c in enumerate(copy.text)}
    for position, character in enumerate(text):
        following = text[position + 1 : position + 2]
        if (
            character.isascii()
            and character.isalnum()
            and (following.isascii() or following.isalpha())
        ):
            assert back[position] == character


def test_marks_of_an_earlier_run_are_blank():
    view = NoteView("[**Known lastname**] saw [NAME] and ___ John")
    assert "Known" not in view.plain
    assert "NAME" not in view.plain
    assert len(view.plain) == len(view.aligned.text)
    assert view.plain.endswith("John")


def test_a_bracket_does_not_hide_what_is_no_mark():
    assert "John Smith" in NoteView("[John Smith]").plain


def test_words_lose_their_possessive_and_know_their_place():
    view = NoteView("Smith's wife, O'Brien-Jones can't")
    assert [w.text for w in view.words] == ["Smith", "wife", "O'Brien-Jones", "can't"]
    assert [view.plain[w.start : w.end] for w in view.words] == [w.text for w in view.words]
