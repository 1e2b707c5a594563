"""Invented lives: diagnoses that suit sex and age, one drug and side a course, relatives, work,
places.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from clinveil.core.spans import Span, splice
from clinveil.core.tokens import words
from clinveil.corpus.demo import places
from clinveil.corpus.demo.grammar import Phi
from clinveil.corpus.demo.language import language
from clinveil.corpus.demo.notes import patient_notes
from clinveil.corpus.demo.persons import COMPANIONS, YEAR, DemoPerson, life, make_person, uniforms


@pytest.fixture(scope="module")
def persons() -> list[DemoPerson]:
    return [make_person(13, index, uniforms(13, 1, index)) for index in range(1000)]


def age(person: DemoPerson) -> int:
    return int((person.visits[0] - person.born) / YEAR)


def test_diagnoses_suit_sex_and_age(persons: list[DemoPerson]):
    for person in persons:
        assert all(c.diagnosis.suits(person.sex, age(person)) for c in person.courses)
        assert [c.diagnosis.code for c in person.courses] == list(person.patient.codes)


def test_sexes_and_ages_are_mixed(persons: list[DemoPerson]):
    assert 0.5 < np.mean([person.sex == "F" for person in persons]) < 0.65
    ages = [age(person) for person in persons]
    assert min(ages) >= 18
    assert 0.01 < np.mean(np.array(ages) >= 90) < 0.12
    assert 45 < np.mean(ages) < 65


def test_diagnoses_of_one_group_keep_company(persons: list[DemoPerson]):
    # Observed pairs of one group beside the same with second diagnoses dealt anew among patients.
    pairs = [
        (p.courses[0].diagnosis.group, p.courses[1].diagnosis.group)
        for p in persons
        if len(p.courses) > 1
    ]
    first, second = map(np.array, zip(*pairs, strict=True))
    shuffled = np.random.default_rng(0).permutation(second)
    assert np.mean(first == second) > 2 * np.mean(first == shuffled)


def test_a_course_keeps_its_drug_and_changes_to_another(persons: list[DemoPerson]):
    rules = language().rules
    for person in persons[:200]:
        for course in person.courses:
            drugs = course.speech.drugs
            now = [drug for drug in drugs if rules[drug] is course.words["med"]]
            new = [drug for drug in drugs if rules[drug] is course.words["newmed"]]
            assert len(now) == len(new) == 1
            assert now != new or len(drugs) == 1
            assert course.side in ("left", "right")


def test_visits_rise_with_gaps_of_weeks_to_months(persons: list[DemoPerson]):
    gaps = [b - a for person in persons for a, b in pairwise(person.visits)]
    assert min(gaps) >= 14
    assert max(gaps) <= 214


def test_patient_ids_and_record_numbers_are_unique(persons: list[DemoPerson]):
    assert len({p.patient.patient_id for p in persons}) == len(persons)
    assert len({"".join(filter(str.isdigit, p.patient.record_numbers[0])) for p in persons}) == len(
        persons
    )


def test_the_feed_is_complete(persons: list[DemoPerson]):
    for person in persons:
        patient = person.patient
        assert all(
            (
                patient.record_numbers,
                patient.phones,
                patient.emails,
                patient.addresses,
                patient.birth_date,
            )
        )
        assert len(patient.name) >= 2
        assert person.middle == bool(person.fields["middle"].text)


def test_consultants_belong_to_the_clinic(persons: list[DemoPerson]):
    by_clinic: dict[str, set[str]] = defaultdict(set)
    for person in persons:
        for course in person.courses:
            by_clinic[course.diagnosis.clinic].add(course.consultant.name.full)
    everyone = Counter(name for names in by_clinic.values() for name in names)
    assert len(by_clinic) == len(language().clinics)
    assert np.mean([count == 1 for count in everyone.values()]) > 0.97


def test_work_and_household():
    draw = uniforms(1)
    lives = [life("FM"[n % 2], 20 + n % 75, draw) for n in range(600)]
    for number, words_of in enumerate(lives):
        retired = 20 + number % 75 > 66
        assert words_of["works"] == ("worked" if retired else "works")
        assert str(words_of["job"]).startswith("retired ") == retired
        article, _, job = str(words_of["a_job"]).partition(" ")
        assert article == ("an" if job[0] in "aeiou" else "a")
        assert words_of["he"][0].head == ("she" if number % 2 == 0 else "he")
        assert words_of["sex"] == "FM"[number % 2]
    single = sum(words_of["partner"] in COMPANIONS for words_of in lives)
    assert 0.3 < single / len(lives) < 0.5


def test_what_is_frozen_is_said_the_same_way_and_capitalised():
    frozen = life("F", 40, uniforms(2))
    for name in ("title", "allergy", "operation", "smoking", "hobby", "kin"):
        assert isinstance(frozen[name], str)
        assert frozen["^" + name] == frozen[name][:1].upper() + frozen[name][1:]
    assert "{" not in "".join(value for value in frozen.values() if isinstance(value, str))


def test_one_title_in_all_notes_of_a_patient():
    for index in range(40):
        patient, notes = patient_notes(13, index)
        family = patient.name[-1]
        titles = {
            t for note in notes for t in ("Mr.", "Ms.", "Mrs.") if f"{t} {family}" in note.text
        }
        assert len(titles) <= 1


def test_operations_belong_to_the_sex():
    draw = uniforms(3)
    women = {str(life("F", 40, draw)["operation"]) for _ in range(500)}
    men = {str(life("M", 40, draw)["operation"]) for _ in range(500)}
    assert "a cesarean section" in women - men
    assert "a vasectomy" in men - women


@pytest.mark.parametrize(
    "rule", ["hospital", "practice", "employer", "church", "nursing_home", "maker", "plan_name"]
)
def test_organisations_have_names_in_many_kinds(rule: str):
    draw = uniforms(4)
    named = {places.named(rule, places.town(draw), draw) for _ in range(300)}
    assert len(named) >= 8
    assert all(name and name[0].isupper() and "{" not in name for name in named)


def test_addresses_have_a_house_number_and_a_street():
    draw = uniforms(5)
    streets = [places.street_address(draw) for _ in range(500)]
    assert len(set(streets)) > 480
    assert all(street.split()[0].isdigit() and len(street.split()) >= 3 for street in streets)
    assert 0.1 < np.mean(["," in street for street in streets]) < 0.3


def test_towns_have_a_state_a_postal_and_an_area_code():
    draw = uniforms(6)
    towns = {places.town(draw) for _ in range(3000)}
    assert len(towns) > 90
    assert all(len(t.state) == 2 and len(t.postal) == 3 and len(t.area) == 3 for t in towns)


def test_fields_are_phi_of_their_label(persons: list[DemoPerson]):
    fields = persons[0].fields
    labels = {slot: entry.label for slot, entry in fields.items() if isinstance(entry, Phi)}
    assert labels["full"] == labels["nurse"] == labels["partner_name"] == "NAME"
    assert (labels["mrn"], labels["member"], labels["account"]) == ("MRN", "HEALTH_PLAN", "ACCOUNT")
    assert "state" not in labels


def test_repr_gives_no_name_away(persons: list[DemoPerson]):
    for person in persons[:50]:
        assert person.patient.name[-1] not in repr(person)
        assert person.patient.phones[0] not in repr(person)


@pytest.mark.real
def test_the_words_are_those_of_real_notes(real_data):
    """Most running words of the demo corpus stand in MTSamples too: the language is clinical."""
    import csv
    import gzip

    with gzip.open(real_data("notes/mtsamples.csv.gz"), "rt", encoding="utf-8", newline="") as file:
        real = {word for row in csv.DictReader(file) for word in words(row["transcription"])}
    ours = Counter()
    for index in range(150):
        for note in patient_notes(13, index)[1]:
            spans = [Span(*mark) for mark in note.marks]
            text = splice(note.text, spans, [" "] * len(spans))
            ours.update(words(text))
    assert sum(n for word, n in ours.items() if word in real) / ours.total() > 0.95
