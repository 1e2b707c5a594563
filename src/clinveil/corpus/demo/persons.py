"""Invented patients: who they are, what they have, when they were seen."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from datetime import date
from functools import cache

from clinveil.corpus.demo import places
from clinveil.corpus.demo.clinicians import FAMILY, Clinician, clinicians
from clinveil.corpus.demo.diagnosis import Diagnosis, Speech
from clinveil.corpus.demo.grammar import Draw, Phi, Vocabulary, capitalised, pick
from clinveil.corpus.demo.identifiers import identifiers
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.life import life
from clinveil.corpus.demo.names import person_name
from clinveil.corpus.people import Patient

FIRST_VISIT, SPREAD = date(2012, 1, 2).toordinal(), 3300
NOTES = (2, 3, 3, 4, 4, 4, 5, 5, 6, 8)
DIAGNOSES = (1, 2, 2, 3, 3, 3, 4, 4, 5, 6)
FEMALE, VERY_OLD, SAME_GROUP = 0.54, 0.14, 0.25
TRIES = 40
YEAR = 365.2425


@dataclass(frozen=True)
class Course:
    """One diagnosis of one patient: its side, its drugs and its consultant, the same in all notes."""

    diagnosis: Diagnosis
    speech: Speech = field(repr=False)
    consultant: Clinician = field(repr=False)
    side: str
    words: Vocabulary = field(repr=False)


@dataclass(frozen=True)
class Person:
    """An invented patient, with all that the notes say about him or her.

    Attributes:
        patient: what the known-patient feed says.
        sex: "F" or "M"; middle: whether there is a middle name.
        born: proleptic ordinal of the birth date; visits: those of the notes, rising.
        fields: slots that are the same in all notes.
    """

    patient: Patient
    sex: str
    middle: bool
    born: int = field(repr=False)
    visits: tuple[int, ...] = field(repr=False)
    courses: tuple[Course, ...] = field(repr=False)
    family_doctor: Clinician = field(repr=False)
    fields: Vocabulary = field(repr=False)


def make_person(seed: int, index: int, draw: Draw) -> Person:
    """The patient of this index; all but the clinicians comes from `draw`, the stream of (seed, index)."""
    sex, age, diagnoses = _illnesses(draw)
    visits = _visits(draw)
    born = visits[0] - int((age + draw()) * YEAR)
    name, where, doctors = person_name(sex, draw), places.town(draw), clinicians(seed)
    fields = identifiers(name, where, index, draw) | life(sex, age, draw)
    patient = Patient(
        patient_id=f"P{index:07d}",
        name=name.tokens,
        codes=tuple(d.code for d in diagnoses),
        record_numbers=_texts(fields, "mrn"),
        phones=_texts(fields, "phone"),
        emails=_texts(fields, "email"),
        addresses=_texts(fields, "street"),
        birth_date=date.fromordinal(born),
    )
    courses = tuple(_course(d, sex, pick(doctors[d.clinic], draw), draw) for d in diagnoses)
    return Person(patient, sex, bool(name.middle), born, visits, courses, pick(doctors[FAMILY], draw), fields)


def _texts(fields: Vocabulary, *slots: str) -> tuple[str, ...]:
    return tuple(entry.text for slot in slots if isinstance(entry := fields[slot], Phi))


def _illnesses(draw: Draw) -> tuple[str, int, list[Diagnosis]]:
    """Sex, age at the first visit, and diagnoses: the first by its Zipf weight, then such as suit sex and age."""
    first = _any_diagnosis(draw)
    sex = "F" if draw() < FEMALE else "M"
    if sex not in first.speech:
        sex = next(iter(first.speech))
    age = first.low + int((draw() + draw()) / 2 * (min(first.high, 89) - first.low))
    if first.high >= 95 and draw() < VERY_OLD:
        age = 90 + int(draw() * (first.high - 90))
    found, wanted = [first], pick(DIAGNOSES, draw)
    for _ in range(TRIES):
        if len(found) == wanted:
            break
        other = pick(_group(first.group), draw) if draw() < SAME_GROUP else _any_diagnosis(draw)
        if other.suits(sex, age) and other not in found:
            found.append(other)
    return sex, age, found


def _any_diagnosis(draw: Draw) -> Diagnosis:
    cumulative = language().cumulative
    return language().diagnoses[bisect(cumulative, draw() * cumulative[-1])]


@cache
def _group(name: str) -> tuple[Diagnosis, ...]:
    return tuple(d for d in language().diagnoses if d.group == name)


def _visits(draw: Draw) -> tuple[int, ...]:
    days = [FIRST_VISIT + int(draw() * SPREAD)]
    for _ in range(pick(NOTES, draw) - 1):
        days.append(days[-1] + 14 + int(draw() ** 1.5 * 200))
    return tuple(days)


def _course(diagnosis: Diagnosis, sex: str, consultant: Clinician, draw: Draw) -> Course:
    rules, doses, speech = language().rules, language().doses, diagnosis.speech[sex]
    drugs = speech.drugs
    start = int(draw() * len(drugs))
    words: Vocabulary = {}
    for slot, drug in (("med", drugs[start]), ("newmed", drugs[(start + 1) % len(drugs)])):
        words[slot], words["^" + slot] = rules[drug], rules["^" + drug]
        dose = words[slot + "_dose"] = (pick(doses[drug], draw),)
        words[f"^{slot}_dose"] = capitalised(dose)
    return Course(diagnosis, speech, consultant, "left" if draw() < 0.5 else "right", words)
