"""The known-patient feed finds its patient however he is written."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.corpus import Patient
from clinveil.phi import NoteView
from clinveil.phi.detection.detectors.known import _Known, name_forms, own_form
from clinveil.phi.name_variants import within_one_edit

PATIENT = Patient(
    "p1",
    ("Chidinma", "May", "Okwuosa-Reyes"),
    codes=("hypertension",),
    record_numbers=("00-12-345", "H-2234567"),
    phones=("(617) 555-0199",),
    emails=("c.okwuosa@home.example",),
    addresses=("12 Elm Street, Boston, MA 02114",),
    birth_date=date(1950, 3, 4),
)


def found(text, patient=PATIENT):
    return [(text[s.start : s.end], s.label) for s in _Known().find(NoteView(text, "n", patient))]


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        ("chidinma came", ["chidinma"]),
        ("CHIDINMA came", ["CHIDINMA"]),
        ("Chidinma's mother", ["Chidinma"]),
        ("Okwuosa-Reyes", ["Okwuosa-Reyes"]),
        ("Okwuosa only, Reyes only", ["Okwuosa", "Reyes"]),
        ("Chidnima with a swap", ["Chidnima"]),
        ("Chidinm with a loss, Okwuosaa with a gain", ["Chidinm", "Okwuosaa"]),
        ("Chid\u200binma hidden", ["Chid\u200binma"]),
        ("she may come", []),
        ("May came", ["May"]),
        ("chidinma may okwuosa", ["chidinma", "may", "okwuosa"]),
        ("nothing here", []),
        ("", []),
    ],
)
def test_names(text, hits):
    assert [surface for surface, label in found(text) if label == "NAME"] == hits


@pytest.mark.parametrize(
    ("name", "written"), [("Hughes", "Huhes"), ("Hughes", "hughs"), ("Reyes", "Reys")]
)
def test_a_name_with_one_letter_missing(name, written):
    patient = Patient("p1", ("Ann", name))
    assert (written, "NAME") in found(f"Seen with {written} at noon.", patient)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("0012345", "MRN"),
        ("00 12 345", "MRN"),
        ("00.12.345", "MRN"),
        ("h2234567", "MRN"),
        ("H - 2234567", "MRN"),
        ("６１７.５５５.０１９９", "PHONE"),
        ("6175550199", "PHONE"),
        ("617/555-0199", "PHONE"),
        ("C.Okwuosa@Home.example", "EMAIL"),
        ("12 ELM STREET", "ADDRESS"),
        ("12 Elm Street\nBoston MA 02114", "ADDRESS"),
        ("3/4/1950", "DATE"),
        ("03-04-50", "DATE"),
        ("4.3.1950", "DATE"),
        ("19500304", "DATE"),
        ("March 4th, 1950", "DATE"),
        ("4 Mar 1950", "DATE"),
    ],
)
def test_other_identifiers(text, label):
    assert (text, label) in found(f"see {text} in the chart")


@pytest.mark.parametrize(
    "text", ["100123456", "00-12-3456", "6175550198", "3/5/1950", "Elm Street", "hypertension"]
)
def test_what_is_not_his(text):
    assert found(f"see {text} there") == []


def test_an_unknown_patient_has_nothing():
    assert found("Chidinma 0012345", None) == []


def test_a_patient_with_nothing_but_a_name():
    assert found("Ann 123", Patient("p2", ("Ann", "B."))) == [("Ann", "NAME")]


def test_another_usual_name_is_no_misspelling():
    assert found("Maria, Jane and Marie", Patient("p3", ("Mario", "Janek"))) == []


words = st.text("abcd", max_size=6)


@given(words, words)
def test_one_edit_is_what_brute_force_says(one, other):
    letters = "abcd"
    near = {one}
    near |= {one[:i] + one[i + 1 :] for i in range(len(one))}
    near |= {one[:i] + c + one[i:] for i in range(len(one) + 1) for c in letters}
    near |= {one[:i] + c + one[i + 1 :] for i in range(len(one)) for c in letters}
    near |= {one[:i] + one[i + 1] + one[i] + one[i + 2 :] for i in range(len(one) - 1)}
    assert within_one_edit(one, other) == (other in near)
    assert within_one_edit(one, other) == within_one_edit(other, one)


def test_forms():
    forms = name_forms(("José", "B.", "O'Neil-Ray"))
    assert forms == {"jose", "oneilray", "oneil", "ray"}
    assert own_form("Josee", forms) == "jose"
    assert own_form("Rai", forms) is None  # too short to be a misspelling


def test_a_birth_date_that_may_be_an_age_over_89_is_not_shifted():
    old = Patient("p2", ("Ada", "Quillfeather"), birth_date=date(1925, 7, 10))
    assert found("DOB: 07/10/1925", old) == [("07/10/1925", "AGE")]
    assert found("born 3/4/1950") == [("3/4/1950", "DATE")]
