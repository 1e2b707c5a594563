"""Ranges, short dates and both orders of day and month: order and intervals of a patient's dates
are kept.
"""

from __future__ import annotations

import random
import re
from datetime import date, timedelta

import pytest

from clinveil.core import Key
from clinveil.corpus import Patient, memory_corpus
from clinveil.phi import Finder, NoteDeidentifier, PhiSettings, deidentify_corpus
from clinveil.phi.detection.detectors.dates import MONTHS
from clinveil.phi.treatment.dates import offset, order_shown, read_order, shifted_by
from clinveil.phi.treatment.policy import Policy
from clinveil.scale import serial

KEY = Key.from_seed(5)
FIVE = timedelta(5)


@pytest.mark.parametrize(
    ("text", "by", "moved"),
    [
        ("12/24-12/27/19", 5, "12/29/19-01/01/20"),
        ("12/20-12/22/19", 5, "12/25-12/27/19"),
        ("12/24-1/2/20", 5, "12/29/19-1/7/20"),
        ("12/24-1/2/20", 10, "01/03-1/12/20"),
        ("7/27 to 7/30/2015", 5, "8/1 to 8/4/2015"),
        ("12/20/2019-12/22", 5, "12/25/2019-12/27"),
        ("12/30/2019-1/4", -10, "12/20/2019-12/25"),
        ("3/4-9/2019", 5, "3/9-3/14/2019"),
        ("3/24-27/19", 5, "3/29-4/1/19"),
        ("March-May 2019", 31, "April-June 2019"),
        ("Nov-Dec '19", 40, "Dec '19-Jan '20"),
        ("December 20 - 22, 2019", 5, "December 25 - 27, 2019"),
        ("December 24 - January 2, 2020", 5, "December 29, 2019 - January 7, 2020"),
        ("24 Dec - 2 Jan 2020", 5, "29 Dec 2019 - 7 Jan 2020"),
        ("4-7 March 2019", 5, "9-12 March 2019"),
        ("3/2019-5/2019", 31, "4/2019-6/2019"),
        ("3/4/'19", 5, "3/9/'19"),
    ],
)
def test_a_range_moves_as_a_whole(text, by, moved):
    assert shifted_by(timedelta(by), text) == moved


@pytest.mark.parametrize(
    "text", ["December 24 - 27", "Dec 24-27", "3/4-3/11", "2014-2017", "Q3 2019", "'98", "12/07"]
)
def test_what_has_no_year_or_no_day_is_never_guessed(text):
    assert shifted_by(FIVE, text) is None


SHORT = (
    ("CT 3/12 neg", "3/12"),
    ("Echo 3/13: EF 55%", "3/13"),
    ("cultures 4/11 NGTD", "4/11"),
    ("f/u w/ Dr. Ito 3/24", "3/24"),
    ("repeat LFTs 10/9", "10/9"),
    ("bypass (8/94)", "8/94"),
    ("stable since 11/07", "11/07"),
    ("smoked 1991-2006", "1991-2006"),
    ("fell in '98", "'98"),
    ("relapse Q3 2019", "Q3 2019"),
    ("from 12/24-12/27/19", "12/24-12/27/19"),
)


@pytest.mark.parametrize(("text", "written"), SHORT)
def test_short_dates_are_found(text, written):
    assert any(
        text[s.start : s.end] == written and s.label == "DATE"
        for s in Finder.of(PhiSettings()).find(text)
    )


@pytest.mark.parametrize(
    "text",
    ["strength 4/5", "BP 120/80", "vision 20/40", "1/2 tablet", "q4/6h", "grade 2/6", "apgars 8/9",
        "pain 3/10",
     "Pupils 4/4 decreasing to 2/2", "Percocet 5/325", "reflexes 2/2+ and 3/3", "seen 2/52 ago",
     "BiPAP 12/5", "oriented 3/3", "2/3 recall", "1500-2000 calories", "slept 1900-2000 hours"],
)  # fmt: skip
def test_scores_doses_and_times_are_no_dates(text):
    assert not [s for s in Finder.of(PhiSettings()).find(text) if s.label == "DATE"]


class TestOrder:
    def test_a_day_above_twelve_shows_the_order(self):
        assert order_shown(["13/4/2019"]) == 1
        assert order_shown(["4/13/19", "2019-04-13"]) == 2
        assert order_shown(["3/4/2019"]) == 0
        assert order_shown(["13/4/2019", "4/13/2019"]) == 3

    @pytest.mark.parametrize(
        ("setting", "of_note", "of_patient", "expected"),
        [
            ("auto", 0, 0, False),
            ("auto", 0, 1, True),
            ("auto", 0, 2, False),
            ("auto", 1, 3, True),
            ("auto", 3, 3, None),
            ("auto", 0, 3, None),
            ("day-first", 2, 2, True),
            ("month-first", 1, 1, False),
        ],
    )
    def test_note_then_patient_then_month_first(self, setting, of_note, of_patient, expected):
        assert read_order(setting, of_note, of_patient) is expected

    def notes(self, *texts):
        corpus = memory_corpus([(f"n{i}", "p1", text) for i, text in enumerate(texts)])
        (done,) = deidentify_corpus(corpus, NoteDeidentifier(KEY), serial)
        return done.batch["text"].to_pylist(), done.date_orders

    def test_another_note_of_the_patient_decides(self):
        (first, second), orders = self.notes("Seen 28/3/2019.", "Seen 3/4/2019.")
        days = [date(*map(int, reversed(re.findall(r"\d+", text)))) for text in (first, second)]
        assert days[1] - days[0] == timedelta(6)
        assert orders == {"day first": 2}

    def test_both_orders_make_a_tag_of_what_is_ambiguous(self):
        texts, orders = self.notes("Seen 28/3/2019.", "Seen 3/28/2019.", "Seen 3/4/2019, 5/5/2019.")
        assert texts[2].startswith("Seen [DATE], ") and "[DATE]" not in texts[0] + texts[1]
        assert re.search(r"\d{1,2}/\d{1,2}/20", texts[2])
        assert orders["both orders in the notes of the patient"] == 1

    def test_the_setting_decides(self):
        read = {}
        for order in ("day-first", "month-first"):
            engine = NoteDeidentifier.of(PhiSettings(date_order=order), KEY)
            read[order] = engine.treat("Seen 3/4/2019.", engine.find("Seen 3/4/2019.", "p1"), "p1")[
                0
            ]
        by = offset(KEY, "p1")
        first = date(2019, 4, 3) + by
        second = date(2019, 3, 4) + by
        assert read == {
            "day-first": f"Seen {first.day}/{first.month}/{first.year}.",
            "month-first": f"Seen {second.month}/{second.day}/{second.year}.",
        }


class TestOffsetOfTheTable:
    def test_it_is_used_instead_of_that_of_the_key(self):
        patients = {"p1": Patient("p1", ("Ann", "Ito"), date_shift=-3)}
        engine = NoteDeidentifier(KEY, patients=patients)
        assert (
            engine.treat("Seen 3/4/2019.", engine.find("Seen 3/4/2019.", "p1"), "p1")[0]
            == "Seen 3/1/2019."
        )
        other = engine.treat("Seen 3/4/2019.", engine.find("Seen 3/4/2019.", "p2"), "p2")[0]
        day = date(2019, 3, 4) + offset(KEY, "p2")
        assert other == f"Seen {day.month}/{day.day}/{day.year}."


def written(day, *, day_first, rng):
    """A full date in one of the formats of a note."""
    numeric = (
        f"{day.day}/{day.month}/{day.year}" if day_first else f"{day.month}/{day.day}/{day.year}"
    )
    short = numeric[:-4] + numeric[-2:]
    month = MONTHS[day.month - 1]
    return rng.choice(
        [
            numeric,
            short,
            f"{day:%Y-%m-%d}",
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month[:3]} {day.year}",
        ]
    )


def stay(first, last, *, day_first, rng):
    """A range in one of the formats of a note."""
    pair = (lambda d: f"{d.day}/{d.month}") if day_first else (lambda d: f"{d.month}/{d.day}")
    full = [written(day, day_first=day_first, rng=rng) for day in (first, last)]
    dash = rng.choice(["-", " - ", "–", " to ", " through "])
    if "/" in full[1] and rng.random() < 0.6:
        return f"{pair(first)}{dash}{full[1]}"
    return f"{full[0]}{dash}{full[1]}"


def read(text, *, day_first):
    """The dates of a line, in order; those without a year have the year of the other end, or of the
    one before.
    """
    names = {month[:3].lower(): number for number, month in enumerate(MONTHS, 1)}
    pattern = (
        r"(?P<iso>\d{4}-\d\d-\d\d)|(?P<numeric>\d{1,2}/\d{1,2}(?:/\d{2,4})?)|(?P<name>(?:"
        + "|".join(MONTHS)
        + r") \d{1,2}(?:, \d{4})?)"
        r"|(?P<day>\d{1,2} [A-Z][a-z]{2,8}(?: \d{4})?)"
    )
    found = []
    for match in re.finditer(pattern, text):
        numbers = [int(n) for n in re.findall(r"\d+", match[0])]
        if match["iso"]:
            found.append(numbers)
            continue
        if match["numeric"]:
            day, month = numbers[:2] if day_first else numbers[1::-1]
        else:
            day = numbers[0]
            month = names[re.search("[A-Z][a-z]{2}", match[0])[0].lower()]
        year = numbers[-1] if len(numbers) > (2 if match["numeric"] else 1) else None
        found.append([2000 + year if year is not None and year < 100 else year, month, day])
    last = next((year for year, _, _ in reversed(found) if year), None)
    days = [date(year or last, month, day) for year, month, day in found]
    return (
        [
            days[0] if found[0][0] or days[0] <= days[-1] else days[0].replace(year=last - 1),
            *days[1:],
        ]
        if days
        else []
    )


def simulated(number):
    """Notes of one patient with ranges and short dates, the true days, and the order of day and
    month.
    """
    rng = random.Random(number)
    day_first = bool(number % 2)
    start = date(2011, 1, 1) + timedelta(rng.randrange(2800))
    sure = start.replace(day=rng.randrange(13, 29))
    lines = [
        (
            f"Admitted {sure.day}/{sure.month}/{sure.year}."
            if day_first
            else f"Admitted {sure.month}/{sure.day}/{sure.year}."
        )
    ]
    days = [[sure]]
    for _ in range(5):
        first = start + timedelta(rng.randrange(300))
        last = first + timedelta(rng.randrange(1, 40))
        if rng.random() < 0.5:
            lines.append(f"Ward stay {stay(first, last, day_first=day_first, rng=rng)} for rest.")
            days.append([first, last])
        else:
            lines.append(f"Seen on {written(first, day_first=day_first, rng=rng)} again.")
            days.append([first])
    return lines, days, day_first


def test_order_and_intervals_are_kept_in_simulated_patients(patients=120):
    exact = 0
    for number in range(patients):
        lines, days, day_first = simulated(number)
        patient = f"p{number}"
        corpus = memory_corpus([(f"{number}-{i}", patient, line) for i, line in enumerate(lines)])
        engine = NoteDeidentifier(KEY, policy=Policy.of_profile("research"))
        (done,) = deidentify_corpus(corpus, engine, serial)
        by = offset(KEY, patient)
        for line, text, truth in zip(lines, done.batch["text"].to_pylist(), days, strict=True):
            if "[DATE]" in text:  # a tag is allowed, a wrong date is not
                assert not re.search(r"\d{4}", text), (line, text)
                continue
            assert [
                day - old for day, old in zip(read(text, day_first=day_first), truth, strict=True)
            ] == [by] * len(truth), (line, text, by)
            exact += len(truth)
    assert exact > 7 * patients


@pytest.mark.slow
def test_order_and_intervals_are_kept_in_a_thousand_simulated_patients():
    test_order_and_intervals_are_kept_in_simulated_patients(1000)
