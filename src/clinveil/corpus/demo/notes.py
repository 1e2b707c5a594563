"""Compose the notes of one synthetic patient, with gold annotations of all identifiers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from clinveil.corpus.demo.grammar import Deck, Draw, Phi, Production, Vocabulary, compile_template, expand, phrase, pick
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.persons import YEAR, Course, Person, clinicians, make_person, uniforms
from clinveil.corpus.demo.unlisted import unlisted_address, unlisted_patient, unlisted_text
from clinveil.corpus.demo.writing import FULL, Calendar, misspell, slip, written
from clinveil.corpus.people import Patient

OLD_AGE = 90  # from here on an age is PHI
MAIN = 0.55
MAX_OTHERS = 5
SLIPS = {"formal": 1.2, "plain": 3.0, "terse": 5.0}
NAME_SLIP = 0.02
HEADER_NAMES = 3  # the first names of a note are in its header, which has no misspellings
_WITH_MIDDLE = (compile_template("Name: {first}, {middle}, {last};"),)
_WITHOUT_MIDDLE = (compile_template("Name: {first}, {last};"),)
_LAST_FIRST_MIDDLE = (compile_template("{last}, {first} {middle}"),)
_LAST_FIRST = (compile_template("{last}, {first}"),)

_NEVER_SMALL = ("full", "hospital", "header_name", "space")


class Mark(NamedTuple):
    """A span of PHI in a note: code points [start, end) and label."""

    start: int
    end: int
    label: str


class Note(NamedTuple):
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


def patient_notes(seed: int, index: int, *, unlisted: bool = False) -> tuple[Patient, list[Note]]:
    """Return the patient of an index with all notes; depends only on (seed, index).

    Args:
        unlisted: use names that are in no name list, and alternative wordings.
    """
    draw = uniforms(seed, 1, index)
    person = make_person(seed, index, draw)
    notes = [_note(seed, person, number, draw, unlisted) for number in range(len(person.visits))]
    return unlisted_patient(seed, person.patient) if unlisted else person.patient, notes


def _note(seed: int, person: Person, number: int, draw: Draw, unlisted: bool) -> Note:
    course = person.courses[0]
    if number and draw() > MAIN:
        course = pick(person.courses, draw)
    rules = language(unlisted).rules
    note_type = phrase("types", rules, draw)
    if number == 0 and note_type == "follow-up":
        note_type = "consultation"
    vocabulary = _vocabulary(seed, person, course, number, draw)
    if unlisted:
        vocabulary |= _alternative_wording(person)
    pieces: list[str] = []
    marks: list[tuple[int, str]] = []
    expand(rules[note_type][0], vocabulary, draw, pieces, marks)
    if unlisted:
        _rename(seed, pieces, marks)
    _add_misspellings(pieces, marks, SLIPS[course.consultant.habit], draw)
    offsets = list(accumulate(map(len, pieces), initial=0))
    spans = [Mark(offsets[piece], offsets[piece + 1], label) for piece, label in marks]
    identity = person.patient.patient_id
    diagnosis = course.diagnosis
    return Note(
        f"{identity}-{number + 1:02d}", identity, note_type, diagnosis.code, diagnosis.group, "".join(pieces), spans
    )


def _vocabulary(seed: int, person: Person, course: Course, number: int, draw: Draw) -> Vocabulary:
    """Return the vocabulary of one note: templates, diagnosis, patient, date."""
    words = language().base(course.diagnosis, course.consultant.habit)
    words.update(person.fields)
    words.update(course.words)
    words.update(course.consultant.fields)
    words["side"], words["^side"] = course.side, course.side.capitalize()
    words.update(course.speech.names)
    words.update(course.speech.deal(draw))
    words.update(_colleagues(seed, person, draw))
    words.update(_day(person, number, draw))
    words.update(_others(person, course, draw))
    words["header_name"] = _WITH_MIDDLE if person.middle else _WITHOUT_MIDDLE
    words.update({"^" + slot: words[slot] for slot in _NEVER_SMALL})
    return words


def _alternative_wording(person: Person) -> Vocabulary:
    """Return the alternative wordings, which override the usual vocabulary."""
    rules, single = language(True).rules, "partner" in person.fields
    words: Vocabulary = {name: rules[name] for name in language(True).other}
    words["home"] = rules["home_single" if single else "home_married"]
    words["header_name"] = _LAST_FIRST_MIDDLE if person.middle else _LAST_FIRST
    return words | {"^header_name": words["header_name"]}


def _rename(seed: int, pieces: list[str], marks: list[tuple[int, str]]) -> None:
    """Replace all names with names that are in no name list."""
    other = {"NAME": unlisted_text, "EMAIL": unlisted_address}
    for piece, label in marks:
        if label in other:
            pieces[piece] = other[label](seed, pieces[piece])


def _colleagues(seed: int, person: Person, draw: Draw) -> Vocabulary:
    colleague = pick(pick(tuple(clinicians(seed).values()), draw), draw)
    family = person.family_doctor.fields
    return {
        "colleague": colleague.fields["doc"],
        "colleague_last": colleague.fields["doc_last"],
        "gp": family["doc"],
        "gp_last": family["doc_last"],
        "gp_fax": family["doc_fax"],
        "practice": family["practice"],
    }


def _day(person: Person, number: int, draw: Draw) -> Vocabulary:
    """Return age and dates at the visit of this number."""
    visits, calendar = person.visits, Calendar(person.born, person.visits[number], draw)
    age = int((calendar.visit - person.born) / YEAR)
    following = visits[number + 1] if number + 1 < len(visits) else calendar.visit + 30 + int(draw() * 150)
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


def _others(person: Person, course: Course, draw: Draw) -> Vocabulary:
    """Return the other diagnoses and their drugs, as two decks in the same order."""
    others = [c for c in person.courses if c is not course][:MAX_OTHERS]
    turn = int(draw() * len(others))
    others = others[turn:] + others[:turn]
    rules = language().rules
    words: Vocabulary = {"others": rules[f"others{len(others)}"], "^others": rules[f"others{len(others)}"]}
    names = tuple(Production("", ((c.speech.names["dx"], ""),)) for c in others)
    capital = tuple(Production("", ((c.speech.names["^dx"], ""),)) for c in others)
    drugs = tuple(Production("", ((c.words["med"], ""),)) for c in others)  # type: ignore[arg-type]
    words["cdx"] = words["^cdx"] = Deck(names, capital, 0)
    words["cdrug"] = Deck(drugs, drugs, 0)
    return words


def _add_misspellings(pieces: list[str], marks: list[tuple[int, str]], rate: float, draw: Draw) -> None:
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


def many_notes(seed: int, start: int, stop: int, *, unlisted: bool = False) -> Iterator[tuple[Patient, list[Note]]]:
    """Yield the patients of the indices [start, stop) with their notes."""
    return (patient_notes(seed, index, unlisted=unlisted) for index in range(start, stop))
