"""All dates of a patient move by one offset, MIMIC's brackets included: order and distance
survive.
"""

from __future__ import annotations

import random
import re
from datetime import date, datetime, timedelta
from itertools import permutations

import pytest

from clinveil.core import Key, Span
from clinveil.phi import NoteDeidentifier
from clinveil.phi.detection.detectors.dates import MONTHS
from clinveil.phi.treatment.dates import WEEKDAYS, offset
from clinveil.phi.treatment.policy import Policy

KEY = Key.from_seed(3)


def deidentified(text, patient="p1", policy="research"):
    made = NoteDeidentifier(KEY, policy=Policy.of_profile(policy))
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


FULL = (
    "%m/%d/%Y", "%Y-%m-%d", "%Y%m%d", "%B %d, %Y", "%d %B %Y", "%b %d, %Y", "%d%b%Y", "%Y %b %d",
    "%m-%d-%Y", "%m.%d.%Y", "[**%Y-%m-%d**]", "[**%m/%d/%Y**]", "[**%d %B %Y**]", "%A, %m/%d/%Y",
    "%Y-%m-%d (%a)", "%Y-%m-%dT%H:%M",
)  # fmt: skip
MONTH_ONLY = ("%m/%Y", "%B %Y", "%Y-%m", "[**%B %Y**]")
INEXACT = (
    "3/4",
    "March 4",
    "in June",
    "in 2016",
    "Thanksgiving",
    "[**3-9**]",
    "[**2016**]",
    "the 4th of May",
    "Fall 2016",
)


def interval(text, form):
    """First and last day that a date of a form can mean."""
    try:
        day = datetime.strptime(text, form).date()
    except (
        ValueError
    ):  # the short form of May is its full name, so the next month is written in full
        day = datetime.strptime(text, form.replace("%b", "%B")).date()
    if form not in MONTH_ONLY:
        return day, day
    return day, (day + timedelta(31)).replace(day=1) - timedelta(1)


def note_of(draw):
    """A note, and its dates with their forms: each is one marked line."""
    days = [date(2012, 1, 1) + timedelta(draw.randrange(3000)) for _ in range(9)]
    dates = [(datetime(day.year, day.month, day.day, 10, 30).strftime(form), form)
             for day in days for form in [draw.choice(FULL if draw.random() < 0.8
                 else MONTH_ONLY)]]  # fmt: skip
    text = "".join(f"<{written}>\n" for written, _ in dates)
    return text, dates


def test_the_order_of_all_dates_of_a_thousand_patients_is_kept():
    engine = NoteDeidentifier(KEY, policy=Policy.of_profile("research"), finders=())
    kept = 0
    exact = 0
    for number in range(1000):
        patient = f"p{number}"
        text, dates = note_of(random.Random(number))
        spans = [Span(m.start(1), m.end(1), "DATE") for m in re.finditer("<(.*)>", text)]
        made = re.findall("<(.*)>", engine.treat(text, spans, patient)[0])
        before = [interval(written, form) for written, form in dates]
        after = [interval(written, form) for written, (_, form) in zip(made, dates, strict=True)]
        for (old, new), (_, form) in zip(zip(before, after, strict=True), dates, strict=True):
            if form not in MONTH_ONLY:
                assert new[0] - old[0] == offset(KEY, patient)
                exact += 1
        for i, j in permutations(range(len(dates)), 2):
            if before[i][1] < before[j][0]:
                assert not after[j][1] < after[i][0], (dates[i], dates[j], made[i], made[j])
                kept += 1
    assert kept > 25_000 and exact > 6_000


@pytest.mark.parametrize("form", [form for form in (*FULL, *MONTH_ONLY) if form != "%d%b%Y"])
def test_the_detectors_find_each_form_and_it_moves(form):
    written = datetime(2015, 4, 16, 10, 30).strftime(form)
    made = (
        deidentified(f"Seen on {written}. Well.").removeprefix("Seen on ").removesuffix(". Well.")
    )
    assert interval(made, form)[0] != interval(written, form)[0]


@pytest.mark.parametrize("inexact", INEXACT)
def test_what_cannot_move_exactly_never_stays_beside_a_moved_date(inexact):
    text = f"Admitted on 3/9/2019. Seen {inexact if inexact[:3] == 'in ' else 'on ' + inexact}."
    made = deidentified(text)
    assert "[DATE]" in made and not re.search(r"\d", made.split("Seen")[1]) and "June" not in made


def test_weekdays_move_with_the_dates_of_their_note():
    assert deidentified("Back on Friday.") == "Back on Friday."
    made = deidentified("Seen 3/4/2019 and on Friday; dialysis on TUESDAYS.")
    by = offset(KEY, "p1").days
    assert made.split()[4] == f"{WEEKDAYS[(4 + by) % 7]};" and made.endswith(
        f"{WEEKDAYS[(1 + by) % 7]}s.".upper()
    )


def test_a_note_that_writes_the_day_first_is_read_so():
    made = re.findall(r"\d+/\d+/\d+", deidentified("Seen 28/3/2019 and 3/4/2019."))
    first, second = (datetime.strptime(text, "%d/%m/%Y") for text in made)
    assert second - first == timedelta(6)


@pytest.mark.parametrize(
    "inside", ["3-9", "3/9", "May 3", "Month/Day (2) 3", "Month (only) 1999", "Date range (1) 23"]
)
@pytest.mark.parametrize(
    ("policy", "want"),
    [("research", "[DATE]"), ("safe-harbor", "[DATE]"), ("limited-dataset", None)],
)
def test_what_has_no_year_is_treated_as_a_plain_date_without_one(inside, policy, want):
    text = f"Seen [**{inside}**]."
    assert deidentified(text, policy=policy) == (f"Seen {want}." if want else text)


@pytest.mark.parametrize(
    ("inside", "want"), [("2169-3-9", "2169"), ("2169", "2169"), ("3-/2169", "2169")]
)
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
