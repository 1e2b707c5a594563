"""The notes: gold spans, consistency within a patient, prevalence, lengths, and paper B's
description of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import date
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr

from clinveil.core import LABELS, Span, splice, words
from clinveil.corpus import Patient, language
from clinveil.corpus.demo import demo_codes
from clinveil.corpus.demo.notes import DemoNote
from clinveil.corpus.demo.persons import make_person, uniforms

People = list[tuple[Patient, list[DemoNote]]]


def test_spans_are_sorted_disjoint_and_inside(demo_written: list[DemoNote]):
    for note in demo_written:
        places = [Span(*mark) for mark in note.marks]
        assert splice(note.text, places, [note.text[s.start : s.end] for s in places]) == note.text


def test_every_label_occurs(demo_written: list[DemoNote]):
    found = Counter(mark.label for note in demo_written for mark in note.marks)
    assert set(found) == set(LABELS)
    assert min(found.values()) >= 5


SHAPES = {
    "PHONE": r"(\+1 )?\(?\d{3}\)?[-. ]555[-. ]\d{4}",
    "FAX": r"(\+1 )?\(?\d{3}\)?[-. ]555[-. ]\d{4}",
    "SSN": r"9\d\d-\d\d-\d{4}",
    "EMAIL": r"[a-z0-9._]+@[a-z.]+",
    "ZIP": r"\d{5}(-\d{4})?",
    "AGE": r"9\d|10\d",
    "IP": r"[\d.]+|2001:db8:[0-9a-f]+::[0-9a-f]+",
    "MRN": r"(M|H-)?\d{3}-?\d{4}",
    "URL": r"(https?://)?(www\.)?[a-z.]+/[a-z]+\d{3}",
    "VEHICLE": r"[A-Z]{3}[ -]?\d{3,4}|1[A-Z0-9]{16}",
    "DATE": r".*\d.*",
    "ADDRESS": r"\d+ .+",
}


@pytest.mark.parametrize("label", SHAPES)
def test_spans_hold_what_their_label_says(label: str, demo_written: list[DemoNote]):
    texts = [n.text[m.start : m.end] for n in demo_written for m in n.marks if m.label == label]
    assert all(re.fullmatch(SHAPES[label], text) for text in texts)


def test_no_identifier_of_the_feed_stands_unmarked(demo_people: People):
    # The truth is complete: outside the spans no number, mailbox or street of the patient remains.
    for patient, notes in demo_people:
        known = (*patient.record_numbers, *patient.phones, *patient.emails, *patient.addresses)
        for note in notes:
            spans = [Span(*mark) for mark in note.marks]
            outside = splice(note.text, spans, ["\x00"] * len(spans))
            assert not any(item in outside for item in known)


def test_no_family_name_stands_unmarked(demo_people: People):
    ordinary = {w for d in language().diagnoses for w in words(d.description)}
    for patient, notes in demo_people:
        family = patient.name[-1]
        if len(family) < 6 or family.lower() in ordinary:
            continue
        for note in notes:
            spans = [Span(*mark) for mark in note.marks]
            outside = splice(note.text, spans, ["\x00"] * len(spans))
            assert not re.search(rf"\b{re.escape(family)}\b", outside)


def test_the_header_is_the_one_of_paper_b(demo_people: People):
    for patient, notes in demo_people:
        for note in notes:
            header = re.search(r"^Name: (.+);$", note.text, re.MULTILINE)
            assert header
            assert tuple(" ".join(header[1].split(", ")).split()) == patient.name


def test_identity_is_the_same_in_all_notes(demo_people: People):
    for patient, notes in demo_people:
        numbers = {n.text[m.start : m.end] for n in notes for m in n.marks if m.label == "MRN"}
        assert numbers == set(patient.record_numbers)
        found = {
            n.text[m.start : m.end]
            for n in notes
            for m in n.marks
            if m.label in ("PHONE", "EMAIL", "ADDRESS")
        }
        assert patient.phones[0] in found or not any("reached at" in n.text for n in notes)


def test_codes_are_those_of_the_patient_and_are_spoken_of(demo_people: People):
    names = {
        d.code: {p.head.lower() for s in d.speech.values() for p in s.names["dx"]}
        for d in language().diagnoses
    }
    spoken = missed = 0
    for patient, notes in demo_people:
        text = " ".join(note.text.lower() for note in notes)
        assert {note.code for note in notes} <= set(patient.codes)
        for code in patient.codes:
            spoken += any(name in text for name in names[code])
            missed += not any(name in text for name in names[code])
    assert missed <= 0.005 * spoken  # a slip of the pen may hide one


def dates_of(note: DemoNote, before: str) -> list[str]:
    return re.findall(rf"{before}:? (\d{{4}}-\d\d-\d\d)", note.text)


def test_visits_follow_each_other_and_birth_dates_agree(demo_people: People):
    seen = 0
    for patient, notes in demo_people:
        visits = [
            date.fromisoformat(found[0])
            for n in notes
            if (found := dates_of(n, r"(?:seen|Seen on|visit|Date)"))
        ]
        assert all(a < b for a, b in pairwise(visits))
        for note in notes:
            for born in dates_of(note, r"(?:DOB|Date of birth|Birth date|born)"):
                assert date.fromisoformat(born) == patient.birth_date
                seen += 1
    assert seen > 50


def test_ages_agree_with_birth_and_visit(demo_people: People):
    checked = 0
    for patient, notes in demo_people:
        for note in notes:
            age = re.search(r"\b(\d{2,3})(?:-year-old| year old| yo| y\.o\.| yr old)", note.text)
            visit = dates_of(note, r"(?:seen|Seen on|visit|Date)")
            if age and visit and patient.birth_date:
                days = (date.fromisoformat(visit[0]) - patient.birth_date).days
                assert int(age[1]) == int(days / 365.2425)
                checked += 1
    assert checked > 30


def test_ages_over_89_are_phi_and_younger_are_not(demo_written: list[DemoNote]):
    for note in demo_written:
        for match in re.finditer(r"\b(\d{2,3})(?=-year-old)", note.text):
            marked = any(m.label == "AGE" and (m.start, m.end) == match.span() for m in note.marks)
            assert marked == (int(match[1]) >= 90)


def test_the_vocabulary_is_several_thousand_words(demo_written: list[DemoNote]):
    counts = Counter(word for note in demo_written for word in words(note.text))
    assert len(counts) > 6000
    # Zipf: the logarithm of the count falls with that of the rank, with a slope near -1.
    ranked = np.sort(list(counts.values()))[::-1][:3000].astype(float)
    slope = np.polyfit(np.log(np.arange(1, len(ranked) + 1)), np.log(ranked), 1)[0]
    assert -1.6 < slope < -0.8


def test_prevalence_of_codes_is_zipf_like():
    people = (make_person(4, index, uniforms(4, 1, index)) for index in range(1500))
    counts = Counter(code for person in people for code in person.patient.codes)
    order = list(demo_codes())
    assert set(counts) == set(order)
    assert spearmanr(range(len(order)), [-counts[code] for code in order]).statistic > 0.75
    ranked = np.sort(list(counts.values()))[::-1][:40].astype(float)
    slope = np.polyfit(np.log(np.arange(1, 41)), np.log(ranked), 1)[0]
    assert -1.3 < slope < -0.5


def test_eponyms_outside_names_are_not_marked(demo_written: list[DemoNote]):
    for note in demo_written:
        for match in re.finditer(
            r"Foley(?= catheter)|Murphy(?= sign)|Parkinson(?= disease)", note.text
        ):
            assert not any(m.start < match.end() and match.start() < m.end for m in note.marks)


def test_relatives_and_clinicians_are_named(demo_people: People):
    strangers: dict[str, set[str]] = defaultdict(set)
    for patient, notes in demo_people:
        for note in notes:
            for mark in note.marks:
                name = note.text[mark.start : mark.end]
                if mark.label == "NAME" and not set(name.split()) & set(patient.name):
                    strangers[name].add(patient.patient_id)
    assert len(strangers) > 500
    assert sum(len(patients) > 3 for patients in strangers.values()) > 50  # clinicians come back
