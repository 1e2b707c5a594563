"""The contract of every detector, inherited by all: spans in bounds, right labels, no state, no fear of odd text."""

from __future__ import annotations

import pickle
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core.spans import LABELS
from clinveil.corpus.people import Patient
from clinveil.phi.catalogue import covered, detectors
from clinveil.phi.detectors import (
    addresses,
    ages,
    biometrics,
    dates,
    emails_urls,
    hospitals,
    known,
    names,
    phones,
    record_numbers,
)
from clinveil.phi.note import NoteView

PATIENT = Patient(
    "p1",
    ("Mary", "Rose", "O'Brien"),
    codes=("E11.9",),
    record_numbers=("00-12-345",),
    phones=("617-555-0199",),
    emails=("mary@home.example",),
    addresses=("12 Elm Street, Boston, MA 02114",),
    birth_date=date(1950, 3, 4),
)
PIECES = st.sampled_from(
    [
        "Dr. ",
        "Smith",
        "JOHN",
        ", ",
        "3/4/2019",
        "\n",
        "  ",
        "é",
        "e\u0301",
        "\u200b",
        "ﬁ",
        "½",
        "０１",
        "'s",
        "MRN 12345",
        "@x.org",
        "-",
        ".",
        "😀",
        "March",
        "94 yo",
        "\x00",
        "\ud800",
        "\u2028",
        "[**",
        "**]",
        "١٢٣",
        "Иван",
        "https://",
        "Hospital",
        "St. ",
        "\r\n",
        "\u0130",
        "ß",
        "ǅ",
    ]
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=25).map("".join))


class DetectorContract:
    """What every detector promises; a subclass names its module and one note in which it finds its labels."""

    module: object
    note: str

    @pytest.fixture
    def detector(self):
        return self.module.detector()

    def view(self, text):
        return NoteView(text, "n1", PATIENT)

    def test_its_labels_are_known(self, detector):
        assert detector.labels
        assert detector.labels <= set(LABELS)

    def test_it_is_in_the_catalogue(self, detector):
        assert detector.name in {each.name for each in detectors()}

    def test_it_finds_each_of_its_labels(self, detector):
        spans = list(detector.find(self.view(self.note)))
        assert {span.label for span in spans} == set(detector.labels)

    def test_its_spans_carry_its_name_and_lie_in_the_note(self, detector):
        for span in detector.find(self.view(self.note)):
            assert span.detector == detector.name
            assert 0 <= span.start < span.end <= len(self.note)
            assert 0 < span.score <= 1

    def test_nothing_in_an_empty_note(self, detector):
        assert list(detector.find(self.view(""))) == []

    def test_it_has_no_state(self, detector):
        first = list(detector.find(self.view(self.note)))
        list(detector.find(self.view("Dr. Other, 5/6/2017, MRN 999999")))
        assert list(detector.find(self.view(self.note))) == first
        assert list(type(self).module.detector().find(self.view(self.note))) == first

    def test_zero_width_characters_do_not_hide_anything(self, detector):
        plain = {(self.note[s.start : s.end], s.label) for s in detector.find(self.view(self.note))}
        hidden = "".join(c + "\u200b" if c.isalnum() else c for c in self.note)
        seen = {(hidden[s.start : s.end].replace("\u200b", ""), s.label) for s in detector.find(self.view(hidden))}
        assert seen == plain

    def test_full_width_characters_do_not_hide_anything(self, detector):
        wide = self.note.translate({i: i + 0xFEE0 for i in range(0x30, 0x3A)})
        places = {(s.start, s.end, s.label) for s in detector.find(self.view(self.note))}
        assert {(s.start, s.end, s.label) for s in detector.find(self.view(wide))} == places

    def test_a_shift_of_the_note_shifts_the_spans(self, detector):
        lead = "é\u200b ok.\n"
        spans = {(s.start + len(lead), s.end + len(lead), s.label) for s in detector.find(self.view(self.note))}
        assert {(s.start, s.end, s.label) for s in detector.find(self.view(lead + self.note))} == spans


class TestNames(DetectorContract):
    module = names
    note = "The note is of Dr. Okafor and his wife Mary."


class TestDates(DetectorContract):
    module = dates
    note = "Seen on 3/4/2019 and on March 4th, 2020."


class TestAges(DetectorContract):
    module = ages
    note = "He is a 94 yo man."


class TestPhones(DetectorContract):
    module = phones
    note = "Phone 617-555-0199, fax 617-555-0100."


class TestEmailsUrls(DetectorContract):
    module = emails_urls
    note = "Write to a.b@hosp.org, see www.example.com, from 192.168.10.4."


class TestRecordNumbers(DetectorContract):
    module = record_numbers
    note = (
        "MRN 1234567, SSN 536-22-1234, account no. 9318-19, member ID X123456, license no. D12345, plate ABC 123,"
        " serial no. 77X8, accession S19-12345."
    )


class TestAddresses(DetectorContract):
    module = addresses
    note = "At 123 Oak Street, Boston, MA 02114."


class TestHospitals(DetectorContract):
    module = hospitals
    note = "He was treated at Mercy Hospital."


class TestBiometrics(DetectorContract):
    module = biometrics
    note = "A fingerprint FP-88810 and a photo face.jpg"


class TestKnown(DetectorContract):
    module = known
    note = "O'BRIEN, mary: 0012345, 617.555.0199, Mary@home.example, 12 Elm Street, born 3/4/1950."


@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_any_text_is_borne(text):
    view = NoteView(text, "n1", PATIENT)
    for detector in detectors():
        for span in detector.find(view):
            assert 0 <= span.start < span.end <= len(text)


def test_the_catalogue_has_one_detector_a_name():
    found = [detector.name for detector in detectors()]
    assert len(found) == len(set(found)) == 10


def test_all_labels_are_covered_by_some_detector():
    assert covered() == set(LABELS)


def test_a_note_view_and_its_patient_show_no_text():
    shown = repr(NoteView("Dr. Secretname", "idsecret", PATIENT))
    assert "Secretname" not in shown
    assert "O'Brien" not in shown
    assert "idsecret" not in shown


def test_detectors_can_be_sent_to_workers():
    for detector in detectors():
        again = pickle.loads(pickle.dumps(detector))
        assert again.name == detector.name
