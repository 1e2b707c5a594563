"""Slips, dates and identifiers: small pieces that the notes are made of."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.corpus.demo import places
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.names import Name
from clinveil.corpus.demo.notes import STYLES, Calendar, misspell, slip, written
from clinveil.corpus.demo.persons import FAMILY, FAMILY_DOCTORS, PER_CLINIC, clinicians, uniforms
from clinveil.corpus.demo.places import identifiers

DAY = date(2014, 3, 4).toordinal()


@pytest.mark.parametrize(
    ("style", "text"),
    [("long", "March 4, 2014"), ("us", "03/04/2014"), ("iso", "2014-03-04"), ("short",
        "Mar 4, 2014"),
     ("european", "4 March 2014"), ("dashed", "04-Mar-2014"), ("terse", "3/4/14"), ("day",
         "March 4"),
     ("month", "March 2014")],
)  # fmt: skip
def test_dates_are_written_in_many_styles(style: str, text: str):
    assert written(DAY, style) == text


def test_an_unknown_style_is_refused():
    with pytest.raises(KeyError, match="stardate"):
        written(DAY, "stardate")


@given(st.integers(0, 10_000))
def test_dates_of_a_note_stay_on_their_side_of_the_visit(seed: int):
    calendar = Calendar(DAY - 20_000, DAY, uniforms(seed))
    calendar.style = "iso"
    past = calendar.past()
    assert past.label == "DATE"
    assert DAY - 1010 < calendar.last <= DAY - 5
    if re.fullmatch(r"\d{4}-\d\d-\d\d", past.text):
        assert date.fromisoformat(past.text).toordinal() == calendar.last
    later = date.fromisoformat(calendar.later().text).toordinal()
    assert calendar.last < later < DAY
    assert 1959 + 15 <= int(calendar.past_year()) <= 2014
    assert calendar.month().text.split()[0].istitle()


def test_every_style_gives_a_date():
    assert all(any(c.isdigit() for c in written(DAY, style)) for style in STYLES)


@pytest.mark.parametrize(
    ("kind", "wrong"), [(0.1, "hwite"), (0.6, "wite"), (0.9, "whhite")]
)  # the draws: the place is after the first letter
def test_the_three_random_slips(kind: float, wrong: str):
    assert slip("white", cycle([0.0, kind]).__next__) == wrong.replace("hwite", "wihte")


def test_known_misspellings_are_used():
    assert slip("received", cycle([0.0]).__next__) == "recieved"


@given(st.text(alphabet="abcdefgh ,.XÉ5", max_size=60), st.integers(0, 50))
def test_a_slip_touches_one_long_word_only(text: str, seed: int):
    after = misspell(text, uniforms(seed))
    before_words = text.split(" ")
    after_words = after.split(" ")
    assert len(before_words) == len(after_words)
    changed = [(a, b) for a, b in zip(before_words, after_words, strict=True) if a != b]
    assert len(changed) <= 1
    assert abs(len(after) - len(text)) <= 1
    if not re.search(r"\b[a-z]{5,}\b", text):
        assert after == text


def test_record_numbers_never_repeat():
    numbers = {
        re.sub(r"\D", "", places.record_number(index, lambda: 0.0)) for index in range(50_000)
    }
    assert len(numbers) == 50_000
    assert all(len(number) == 7 for number in numbers)


def test_numbers_lie_where_nobody_has_them():
    draw = uniforms(4)
    for index in range(300):
        where = places.town(draw)
        fields = identifiers(Name("Ann", "May", "Lee", "Ann Lee"), where, index, draw)
        assert fields["ssn"].text[0] == "9"
        assert re.fullmatch(r"(\+1 )?\(?\d{3}\)?[-. ]555[-. ]\d{4}", fields["phone"].text)
        assert re.search(r"@([a-z]+\.)?example\.(com|org|net)$", fields["email"].text)
        assert (
            re.search(r"\.example\.(com|org|net)/", fields["url"].text + "/")
            or "example." in fields["url"].text
        )
        assert re.match(r"192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|2001:db8:", fields["ip"].text)
        assert len(fields["vin"].text) == 17
        assert where.area in fields["phone"].text
        assert fields["zip"].text.startswith(where.postal)


def test_identifiers_are_labelled_and_not_empty_for_any_script():
    fields = identifiers(Name("伟", "", "李", "李伟"), places.town(lambda: 0.5), 1, uniforms(3))
    assert fields["email"].text.split("@")[0]
    assert fields["native"] == ("NAME", "李伟")
    assert fields["driver_license"].text[0] == "X"


def test_digits_are_padded():
    assert places.digits(4, lambda: 0.0007) == "0007"


def test_streams_depend_on_all_entropy_and_go_on_past_a_block():
    first = uniforms(1, 2)
    again = uniforms(1, 2)
    other = uniforms(1, 3)
    numbers = [first() for _ in range(3000)]
    assert numbers == [again() for _ in range(3000)]
    assert numbers != [other() for _ in range(3000)]
    assert len(set(numbers)) == 3000


def test_the_cast_of_clinicians_belongs_to_the_seed():
    cast = clinicians(5)
    assert set(cast) == {FAMILY, *language().clinics}
    assert len(cast[FAMILY]) == FAMILY_DOCTORS
    assert {len(doctors) for clinic, doctors in cast.items() if clinic} == {PER_CLINIC}
    names = Counter(doctor.name.full for doctors in cast.values() for doctor in doctors)
    assert len(names) > 0.95 * sum(names.values())
    assert clinicians(6)[FAMILY][0].name != cast[FAMILY][0].name
    assert "Lee" not in repr(cast[FAMILY][0])
    assert cast[FAMILY][0].name.family not in repr(cast[FAMILY][0])
