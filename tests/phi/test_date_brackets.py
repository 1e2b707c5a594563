"""Dates in MIMIC's brackets and plain dates of a patient move by one offset: order and distance survive."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core.keys import Key
from clinveil.phi.detection.detectors.dates import MONTHS
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.policy import Policy
from clinveil.phi.treatment.surrogates.dates import WEEKDAYS, offset

KEY = Key.from_seed(3)
FORMS = (
    lambda day: f"[**{day.year}-{day.month}-{day.day}**]",
    lambda day: f"[**{day:%Y-%m-%d}**]",
    lambda day: f"{day:%m/%d/%Y}",
    lambda day: f"{day.year}-{day:%m-%d}",
    lambda day: f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
    lambda day: f"[**{day.day} {MONTHS[day.month - 1]} {day.year}**]",
)


def deidentified(text, patient="p1", policy="research"):
    made = Deidentifier(KEY, policy=Policy.of_profile(policy))
    return made.treat(text, made.find(text, patient), patient)[0]


def read(line):
    """The date of a line of one of the forms, by its numbers and its month alone."""
    numbers = [int(number) for number in re.findall(r"\d+", line)]
    year = next(number for number in numbers if number > 31)
    numbers.remove(year)
    name = next((i for i, month in enumerate(MONTHS, 1) if month in line), None)
    return date(year, name, numbers[0]) if name else date(year, *numbers)


def test_admission_stays_before_discharge():
    text = "Admitted [**2169-3-9**]. Seen 03/21/2169."
    admitted, seen = map(read, deidentified(text).removesuffix(".").split(". "))
    assert admitted - date(2169, 3, 9) == seen - date(2169, 3, 21) == offset(KEY, "p1")


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_distances_between_all_dates_of_a_patient_survive(first):
    for number in range(first, first + 50):
        draw, patient = random.Random(number), f"p{number}"
        days = [date(2150, 1, 1) + timedelta(draw.randrange(9000)) for _ in range(8)]
        note = "\n".join(f"Seen on {draw.choice(FORMS)(day)}." for day in days)
        moved = [read(line) for line in deidentified(note, patient).splitlines()]
        assert [new - old for new, old in zip(moved, days, strict=True)] == [offset(KEY, patient)] * len(days)


@given(st.dates(date(2150, 1, 1), date(2180, 1, 1)), st.integers(2150, 2180), st.integers(0, 400))
def test_a_year_alone_keeps_its_order_with_the_dates_of_other_years(day, year, patient):
    moved, alone = re.findall(r"\*\*(\d{4})", deidentified(f"[**{day}**], [**{year}**]", f"p{patient}"))
    if day.year < year:
        assert int(moved) <= int(alone)
    elif day.year > year:
        assert int(moved) >= int(alone)
    else:
        assert abs(int(moved) - int(alone)) <= 1


@pytest.mark.parametrize("inside", ["3-9", "3/9", "May 3", "Month/Day (2) 3", "Month (only) 1999", "Date range (1) 23"])
@pytest.mark.parametrize(
    ("policy", "want"), [("research", "[DATE]"), ("safe-harbor", "[DATE]"), ("limited-dataset", None)]
)
def test_what_has_no_year_is_treated_as_a_plain_date_without_one(inside, policy, want):
    text = f"Seen [**{inside}**]."
    assert deidentified(text, policy=policy) == (f"Seen {want}." if want else text)


@pytest.mark.parametrize(("inside", "want"), [("2169-3-9", "2169"), ("2169", "2169"), ("3-/2169", "2169")])
def test_years_stay_where_dates_become_coarser(inside, want):
    assert deidentified(f"In [**{inside}**].", policy="safe-harbor") == f"In {want}."


@pytest.mark.parametrize("inside", ["3-/2169", "March 2169", "2169-3-9"])
def test_a_moved_date_stays_bracketed(inside):
    made = deidentified(f"Since [**{inside}**].")
    assert re.fullmatch(r"Since \[\*\*[\w /-]+\*\*\]\.", made) and inside not in made


def test_the_weekday_next_to_a_bracket_moves_with_it():
    made = deidentified("Seen Thursday [**2169-3-9**].")
    assert made.split()[1] == WEEKDAYS[read(made).weekday()]


@pytest.mark.parametrize(
    "inside",
    [
        "Known lastname 2169",
        "Hospital1 18",
        "Doctor First Name 3",
        "Telephone/Fax (1) 2134",
        "Mayo Clinic",
        "Day Surgery",
        "Age over 90 ",
        "Numeric Identifier 5",
        "12",
        "5-2234",
        "Location (un) 3-9",
        "",
    ],
)
def test_other_brackets_stay(inside):
    assert deidentified(f"Seen [**{inside}**].") == f"Seen [**{inside}**]."
