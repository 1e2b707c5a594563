"""Compose the notes of one synthetic patient: templates, dates, misspellings, and gold annotations
of identifiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import accumulate
from typing import NamedTuple

from clinveil.corpus.demo.grammar import (
    Deck,
    Draw,
    Phi,
    Production,
    Vocabulary,
    compile_template,
    expand,
    phrase,
    pick,
)
from clinveil.corpus.demo.language import language, misspellings
from clinveil.corpus.demo.persons import YEAR, Course, DemoPerson, clinicians, make_person, uniforms
from clinveil.corpus.people import Patient

OLD_AGE = 90  # from here on an age is PHI
MAIN = 0.55
MAX_OTHERS = 5
SLIPS = {"formal": 1.2, "plain": 3.0, "terse": 5.0}
NAME_SLIP = 0.02
HEADER_NAMES = 3  # the first names of a note are in its header, which has no misspellings
_WITH_MIDDLE = (compile_template("Name: {first}, {middle}, {last};"),)
_WITHOUT_MIDDLE = (compile_template("Name: {first}, {last};"),)
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October",
          "November", "December")  # fmt: skip
_DATES = {
    "long": "{month} {day}, {year}",
    "us": "{number:02d}/{day:02d}/{year}",
    "iso": "{year}-{number:02d}-{day:02d}",
    "short": "{month:.3} {day}, {year}",
    "european": "{day} {month} {year}",
    "dashed": "{day:02d}-{month:.3}-{year}",
    "terse": "{number}/{day}/{short_year:02d}",
    "day": "{month} {day}",
    "month": "{month} {year}",
}
STYLES = ("long", "long", "us", "us", "iso", "short", "european", "dashed", "terse")
FULL = ("long", "us", "iso", "european")
_WORD = re.compile(r"\b[a-z]{5,}\b")
KNOWN = 0.5  # share of slips that are common misspellings, for words that have one
_NEVER_SMALL = ("full", "hospital", "header_name", "space")


class Mark(NamedTuple):
    """A span of PHI in a note: code points [start, end) and label."""

    start: int
    end: int
    label: str


class DemoNote(NamedTuple):
    """One note of the demo corpus.

    Attributes:
        code, group: main diagnosis and its group.
        marks: all PHI of the text, sorted, disjoint.
    """

    note_id: str
    patient_id: str
    note_type: str
    code: str
    group: str
    text: str
    marks: list[Mark]


def patient_notes(seed: int, index: int) -> tuple[Patient, list[DemoNote]]:
    """Return the patient of an index with all notes; depends only on (seed, index)."""
    draw = uniforms(seed, 1, index)
    person = make_person(seed, index, draw)
    return person.patient, [
        _note(seed, person, number, draw) for number in range(len(person.visits))
    ]


def _note(seed: int, person: DemoPerson, number: int, draw: Draw) -> DemoNote:
    course = person.courses[0]
    if number and draw() > MAIN:
        course = pick(person.courses, draw)
    rules = language().rules
    note_type = phrase("types", rules, draw)
    if number == 0 and note_type == "follow-up":
        note_type = "consultation"
    vocabulary = _vocabulary(seed, person, course, number, draw)
    pieces: list[str] = []
    marks: list[tuple[int, str]] = []
    expand(rules[note_type][0], vocabulary, draw, pieces, marks)
    _add_misspellings(pieces, marks, SLIPS[course.consultant.habit], draw)
    offsets = list(accumulate(map(len, pieces), initial=0))
    spans = [Mark(offsets[piece], offsets[piece + 1], label) for piece, label in marks]
    identity = person.patient.patient_id
    diagnosis = course.diagnosis
    return DemoNote(
        f"{identity}-{number + 1:02d}",
        identity,
        note_type,
        diagnosis.code,
        diagnosis.group,
        "".join(pieces),
        spans,
    )


def _vocabulary(
    seed: int, person: DemoPerson, course: Course, number: int, draw: Draw
) -> Vocabulary:
    """Return the vocabulary of one note: templates, diagnosis, patient, date."""
    words = language().base(course.diagnosis, course.consultant.habit)
    words.update(person.fields)
    words.update(course.words)
    words.update(course.consultant.fields)
    words["side"] = course.side
    words["^side"] = course.side.capitalize()
    words.update(course.speech.names)
    words.update(course.speech.deal(draw))
    colleague = pick(pick(tuple(clinicians(seed).values()), draw), draw)
    family = person.family_doctor.fields
    words |= {"colleague": colleague.fields["doc"], "colleague_last": colleague.fields["doc_last"]}
    words |= {"gp": family["doc"], "gp_last": family["doc_last"], "gp_fax": family["doc_fax"]}
    words["practice"] = family["practice"]
    words.update(_day(person, number, draw))
    words.update(_others(person, course, draw))
    words["header_name"] = _WITH_MIDDLE if person.middle else _WITHOUT_MIDDLE
    words.update({"^" + slot: words[slot] for slot in _NEVER_SMALL})
    return words


def _day(person: DemoPerson, number: int, draw: Draw) -> Vocabulary:
    """Return age and dates at the visit of this number."""
    visits = person.visits
    calendar = Calendar(person.born, person.visits[number], draw)
    age = int((calendar.visit - person.born) / YEAR)
    following = (
        visits[number + 1] if number + 1 < len(visits) else calendar.visit + 30 + int(draw() * 150)
    )
    return {
        "visit": calendar.phi(calendar.visit),
        "dob": Phi("DATE", written(person.born, pick(FULL, draw))),
        "age": Phi("AGE", str(age)) if age >= OLD_AGE else str(age),
        "a": "an" if age in (8, 11, 18) or 80 <= age < 90 else "a",
        "last_visit": calendar.phi(visits[number - 1]) if number else calendar.past(),
        "next_date": calendar.phi(following),
        "past_date": calendar.past,
        "past_month": calendar.month,
        "later_date": calendar.later,
        "past_year": calendar.past_year(),
    }


def _others(person: DemoPerson, course: Course, draw: Draw) -> Vocabulary:
    """Return the other diagnoses and their drugs, as two decks in the same order."""
    others = [c for c in person.courses if c is not course][:MAX_OTHERS]
    turn = int(draw() * len(others))
    others = others[turn:] + others[:turn]
    rules = language().rules
    words: Vocabulary = {
        "others": rules[f"others{len(others)}"],
        "^others": rules[f"others{len(others)}"],
    }
    names = tuple(Production("", ((c.speech.names["dx"], ""),)) for c in others)
    capital = tuple(Production("", ((c.speech.names["^dx"], ""),)) for c in others)
    drugs = tuple(Production("", ((c.words["med"], ""),)) for c in others)  # type: ignore[arg-type]
    words["cdx"] = words["^cdx"] = Deck(names, capital, 0)
    words["cdrug"] = Deck(drugs, drugs, 0)
    return words


def _add_misspellings(
    pieces: list[str], marks: list[tuple[int, str]], rate: float, draw: Draw
) -> None:
    """Misspell some pieces that are not PHI, and rarely a name."""
    protected = {piece for piece, _ in marks}
    for _ in range(int(draw() * 2 * rate)):
        index = int(draw() * len(pieces))
        if index not in protected:
            pieces[index] = misspell(pieces[index], draw)
    if draw() < NAME_SLIP:
        names = [piece for piece, label in marks if label == "NAME"][HEADER_NAMES:]
        if names := [piece for piece in names if len(pieces[piece]) > 4]:
            index = pick(names, draw)
            pieces[index] = slip(pieces[index], draw)


def many_notes(seed: int, start: int, stop: int) -> Iterator[tuple[Patient, list[DemoNote]]]:
    """Yield the patients of the indices [start, stop) with their notes."""
    return (patient_notes(seed, index) for index in range(start, stop))


def written(ordinal: int, style: str) -> str:
    """Return the date of a proleptic ordinal in one of the styles."""
    day = date.fromordinal(ordinal)
    month = MONTHS[day.month - 1]
    return _DATES[style].format(
        month=month, number=day.month, day=day.day, year=day.year, short_year=day.year % 100
    )


class Calendar:
    """The dates mentioned in one note, before and after its visit."""

    __slots__ = ("born", "draw", "last", "style", "visit")

    def __init__(self, born: int, visit: int, draw: Draw) -> None:
        self.born = born
        self.visit = visit
        self.draw = draw
        self.style = pick(STYLES, draw)
        self.last = visit - 400

    def phi(self, ordinal: int) -> Phi:
        """Return a date in the author's style."""
        return Phi("DATE", written(ordinal, self.style))

    def past(self) -> Phi:
        """Return a date up to three years before the visit; a recent one sometimes lacks the
        year.
        """
        self.last = self.visit - 5 - int(self.draw() ** 2 * 1000)
        recent = self.visit - self.last < 300
        return Phi(
            "DATE", written(self.last, "day" if recent and self.draw() < 0.12 else self.style)
        )

    def month(self) -> Phi:
        """Return a month and year, up to eleven years before the visit."""
        return Phi("DATE", written(self.visit - 40 - int(self.draw() ** 2 * 4000), "month"))

    def later(self) -> Phi:
        """Return a date one to nine days after the last mentioned one, before the visit."""
        return self.phi(min(self.last + 1 + int(self.draw() * 9), self.visit - 1))

    def past_year(self) -> str:
        """Return a year of adult life before the visit (a year alone is not PHI)."""
        first = self.born // 365.2425 + 17
        last = self.visit // 365.2425
        return str(int(last - self.draw() ** 1.5 * (last - first)))


def misspell(text: str, draw: Draw) -> str:
    """Return the text with one longer lower-case word misspelt; unchanged if it has none."""
    spans = [match.span() for match in _WORD.finditer(text)]
    if not spans:
        return text
    start, end = pick(spans, draw)
    return text[:start] + slip(text[start:end], draw) + text[end:]


def slip(word: str, draw: Draw) -> str:
    """Return a misspelt word: a common misspelling, or a letter transposed, dropped or doubled."""
    known = misspellings().get(word)
    if known and draw() < KNOWN:
        return pick(known, draw)
    position = 1 + int(draw() * (len(word) - 2))
    kind = draw()
    if kind < 0.5:
        return word[:position] + word[position + 1] + word[position] + word[position + 2 :]
    if kind < 0.8:
        return word[:position] + word[position + 1 :]
    return word[:position] + word[position] + word[position:]
