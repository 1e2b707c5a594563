"""Slips, dates and identifiers: small pieces that the notes are made of."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.corpus import language
from clinveil.corpus.demo import places
from clinveil.corpus.demo.names import Name
from clinveil.corpus.demo.notes import Calendar, written
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
