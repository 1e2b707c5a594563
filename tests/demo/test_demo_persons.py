"""Invented lives: diagnoses that suit sex and age, one drug and side a course, relatives, work,
places.
"""

from __future__ import annotations

import pytest

from clinveil.corpus.demo.persons import YEAR, DemoPerson, make_person, uniforms


@pytest.fixture(scope="module")
def persons() -> list[DemoPerson]:
    return [make_person(13, index, uniforms(13, 1, index)) for index in range(1000)]


def age(person: DemoPerson) -> int:
    return int((person.visits[0] - person.born) / YEAR)


def test_diagnoses_suit_sex_and_age(persons: list[DemoPerson]):
    for person in persons:
        assert all(c.diagnosis.suits(person.sex, age(person)) for c in person.courses)
        assert [c.diagnosis.code for c in person.courses] == list(person.patient.codes)


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


def test_repr_gives_no_name_away(persons: list[DemoPerson]):
    for person in persons[:50]:
        assert person.patient.name[-1] not in repr(person)
        assert person.patient.phones[0] not in repr(person)
