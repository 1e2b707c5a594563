"""Synthetic people: identity, diagnoses and visits.

The clinicians are fixed for a corpus, so that their names occur in the notes of many patients.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cache, lru_cache
from itertools import chain

import numpy as np

from clinveil.corpus.demo import places
from clinveil.corpus.demo.grammar import Draw, Phi, Vocabulary, capitalised, phrase, pick
from clinveil.corpus.demo.language import HABITS, Diagnosis, Speech, language
from clinveil.corpus.demo.names import Name, ascii_letters, given_name, person_name
from clinveil.corpus.demo.places import identifiers
from clinveil.corpus.people import Patient

PER_CLINIC = 24
FAMILY_DOCTORS = 300
FAMILY = ""
MALE = 0.55
BLOCK = 1024
MARRIED = 0.6
RETIREMENT = 66
COMPANIONS = ("friend", "roommate", "neighbour")
# Rules that are expanded once, and have the same wording in all notes of a patient.
FROZEN = (
    "title",
    "allergy",
    "operation",
    "smoking",
    "drinking",
    "relative_ill",
    "device",
    "hobby",
    "kin",
)
FIRST_VISIT = date(2012, 1, 2).toordinal()
SPREAD = 3300
NOTES = (2, 3, 3, 4, 4, 4, 5, 5, 6, 8)
DIAGNOSES = (1, 2, 2, 3, 3, 3, 4, 4, 5, 6)
FEMALE = 0.54
VERY_OLD = 0.14
SAME_GROUP = 0.25
TRIES = 40
YEAR = 365.2425


def uniforms(*entropy: int) -> Draw:
    """Return an endless stream of uniform numbers that depends only on the entropy; drawn in
    blocks.
    """
    rng = np.random.default_rng(np.random.SeedSequence(entropy))
    block: Callable[[], list[float]] = lambda: rng.random(BLOCK).tolist()  # noqa: E731
    return chain.from_iterable(iter(block, None)).__next__


@dataclass(frozen=True)
class Clinician:
    """A synthetic physician: name, writing habit (`language.HABITS`) and contact data."""

    name: Name = field(repr=False)
    habit: str
    fields: Vocabulary = field(repr=False)


@lru_cache(maxsize=8)
def clinicians(seed: int) -> dict[str, tuple[Clinician, ...]]:
    """Return the clinicians of a demo corpus by clinic; the key `FAMILY` has the family doctors."""
    sizes = {FAMILY: FAMILY_DOCTORS} | dict.fromkeys(language().clinics, PER_CLINIC)
    draw = uniforms(seed, 0)
    return {clinic: tuple(_clinician(draw) for _ in range(size)) for clinic, size in sizes.items()}


def _clinician(draw: Draw) -> Clinician:
    name = person_name("M" if draw() < MALE else "F", draw)
    where = places.town(draw)
    license_number = pick(("MD{}", "{}", "A-{}", "G{}"), draw).format(places.digits(6, draw))
    address = f"{ascii_letters(name.given)[:1]}.{ascii_letters(name.family)}@{places.domain(draw)}"
    fields: Vocabulary = {
        "doc": Phi("NAME", name.full),
        "doc_last": Phi("NAME", name.family),
        "doc_phone": Phi("PHONE", places.telephone(where, draw)),
        "doc_fax": Phi("FAX", places.telephone(where, draw)),
        "doc_email": Phi("EMAIL", address),
        "doc_license": Phi("LICENSE", license_number),
        "hospital": Phi("HOSPITAL", places.named("hospital", where, draw)),
        "practice": Phi("HOSPITAL", places.named("practice", where, draw)),
        "clinic_street": Phi("ADDRESS", places.street_address(draw)),
        "clinic_city": Phi("CITY", where.name),
        "clinic_state": where.state,
        "clinic_zip": Phi("ZIP", places.postal_code(where, draw)),
    }
    return Clinician(name, pick(HABITS, draw), fields)


def life(sex: str, age: int, draw: Draw) -> Vocabulary:
    """Return the words and relatives of a person of this sex and age."""
    words: Vocabulary = dict(language().words["female" if sex == "F" else "male"])
    words |= _work(age, draw) | _household(sex, draw)
    known = {**language().rules, **words}
    for rule in FROZEN:
        text = phrase(rule, known, draw)
        words[rule] = text
        words["^" + rule] = text[:1].upper() + text[1:]
    words["sex"] = sex
    return words


def _work(age: int, draw: Draw) -> Vocabulary:
    job = pick(language().rules["job"], draw).head
    article = "an" if job[0] in "aeiou" else "a"
    retired = age > RETIREMENT
    return {
        "job": f"retired {job}" if retired else job,
        "a_job": f"{article} {job}",
        "works": "worked" if retired else "works",
    }


def _household(sex: str, draw: Draw) -> Vocabulary:
    rules = language().rules
    married = draw() < MARRIED
    other = "M" if sex == "F" else "F"
    kin_sex = pick("FM", draw)
    words: Vocabulary = {"home": rules["home_married" if married else "home_single"]}
    if not married:
        words["partner"] = pick(COMPANIONS, draw)
    return words | {
        "partner_name": Phi("NAME", given_name(other if married else sex, draw)),
        "sibling_name": Phi("NAME", given_name(sex, draw)),
        "kin": rules["kin_female" if kin_sex == "F" else "kin_male"],
        "kin_full": Phi("NAME", person_name(kin_sex, draw).full),
        "nurse": Phi("NAME", person_name("F", draw).full),
    }


@dataclass(frozen=True)
class Course:
    """One diagnosis of one patient, with side, drugs and consultant; the same in all notes."""

    diagnosis: Diagnosis
    speech: Speech = field(repr=False)
    consultant: Clinician = field(repr=False)
    side: str
    words: Vocabulary = field(repr=False)


@dataclass(frozen=True)
class DemoPerson:
    """A synthetic patient, with all facts that the notes mention.

    Attributes:
        patient: the row of the known-patient feed.
        sex: "F" or "M". middle: whether there is a middle name.
        born: proleptic ordinal of the birth date. visits: ordinals of the notes' dates, ascending.
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


def make_person(seed: int, index: int, draw: Draw) -> DemoPerson:
    """Return the patient of this index; all except the clinicians is drawn from `draw`, the stream
    of (seed, index).
    """
    sex, age, diagnoses = _illnesses(draw)
    days = [FIRST_VISIT + int(draw() * SPREAD)]
    for _ in range(pick(NOTES, draw) - 1):
        days.append(days[-1] + 14 + int(draw() ** 1.5 * 200))
    visits = tuple(days)
    born = visits[0] - int((age + draw()) * YEAR)
    name = person_name(sex, draw)
    where = places.town(draw)
    doctors = clinicians(seed)
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
    return DemoPerson(
        patient, sex, bool(name.middle), born, visits, courses, pick(doctors[FAMILY], draw), fields
    )


def _texts(fields: Vocabulary, *slots: str) -> tuple[str, ...]:
    return tuple(entry.text for slot in slots if isinstance(entry := fields[slot], Phi))


def _illnesses(draw: Draw) -> tuple[str, int, list[Diagnosis]]:
    """Draw sex, age at the first visit and diagnoses: the first by Zipf weight, others that match
    sex and age.
    """
    first = _any_diagnosis(draw)
    sex = "F" if draw() < FEMALE else "M"
    if sex not in first.speech:
        sex = next(iter(first.speech))
    age = first.low + int((draw() + draw()) / 2 * (min(first.high, 89) - first.low))
    if first.high >= 95 and draw() < VERY_OLD:
        age = 90 + int(draw() * (first.high - 90))
    diagnoses = [first]
    wanted = pick(DIAGNOSES, draw)
    for _ in range(TRIES):
        if len(diagnoses) == wanted:
            break
        other = pick(_group(first.group), draw) if draw() < SAME_GROUP else _any_diagnosis(draw)
        if other.suits(sex, age) and other not in diagnoses:
            diagnoses.append(other)
    return sex, age, diagnoses


def _any_diagnosis(draw: Draw) -> Diagnosis:
    cumulative = language().cumulative
    return language().diagnoses[bisect(cumulative, draw() * cumulative[-1])]


@cache
def _group(name: str) -> tuple[Diagnosis, ...]:
    return tuple(d for d in language().diagnoses if d.group == name)


def _course(diagnosis: Diagnosis, sex: str, consultant: Clinician, draw: Draw) -> Course:
    rules = language().rules
    doses = language().doses
    speech = diagnosis.speech[sex]
    drugs = speech.drugs
    start = int(draw() * len(drugs))
    words: Vocabulary = {}
    for slot, drug in (("med", drugs[start]), ("newmed", drugs[(start + 1) % len(drugs)])):
        words[slot] = rules[drug]
        words["^" + slot] = rules["^" + drug]
        dose = words[slot + "_dose"] = (pick(doses[drug], draw),)
        words[f"^{slot}_dose"] = capitalised(dose)
    return Course(diagnosis, speech, consultant, "left" if draw() < 0.5 else "right", words)
