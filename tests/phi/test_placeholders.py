"""Placeholders keep nothing of an identifier, are shared, and are filled the same way in all notes
of a patient.
"""

from __future__ import annotations

import re
from datetime import date

import pytest

from clinveil.core import CLOSE, OPEN, PLACEHOLDER, Key, splice, words
from clinveil.corpus import Patient, many_notes, memory_corpus, rows
from clinveil.lm import pieces_of, train_layout
from clinveil.phi import Invented, NoteDeidentifier, PhiSettings
from clinveil.phi.treatment.dates import parse
from clinveil.phi.treatment.placeholders import DAYS, Placeholders, placeholder
from clinveil.phi.treatment.surrogates.names import NoteNames

KEY = Key.from_seed(1)
NOTE = (
    "RE: John Smith, DOB 3/4/1950. Seen on 12 March 2019 at Mercy Hospital by Dr. Jane Miller.\nMr."
    " SMITH was well. Dr. J. Miller called him on March 14, 2019 at 212-555-0188. Mrs. Smith"
    " agreed."
)


def engine(patients=None):
    return NoteDeidentifier.of(PhiSettings(), KEY, patients=patients).with_placeholders()


def trained_on(text, patients=None, patient="p"):
    made = engine(patients)
    spans = made.find(text, patient)
    return splice(text, spans, [one.text for one in made.treated(text, spans, patient)])


def inner(text):
    return [match["inner"] for match in PLACEHOLDER.finditer(text)]


def test_roles_numbers_cases_and_distances_of_dates():
    found = trained_on(NOTE)
    assert inner(found) == [
        "Male 1", "Family 1", "DATE 9 1/1/2001", "DATE 2 1 January 2001", "HOSPITAL 1 Hospital",
        "Female 2", "Family 2", "FAMILY 1", "given-letter 2", "Family 2", "DATE 0 January 1, 2001",
        "PHONE 1 000-000-0000", "Family 1",
    ]  # fmt: skip
    assert not {"john", "smith", "jane", "miller", "mercy", "1950", "2019"} & set(words(found))


def test_the_known_patient_has_the_number_0():
    found = trained_on(NOTE, {"p": Patient("p", ("John", "Smith"))})
    assert (
        inner(found)[:2] == ["Male 0", "Family 0"]
        and "FAMILY 0" in inner(found)
        and "Family 1" in inner(found)
    )


def test_no_word_of_a_name_is_left_in_notes_of_the_demo():
    for who, notes in many_notes(3, 0, 20):
        for note in notes:
            spans = engine().find(note.text, who.patient_id)
            found = trained_on(note.text, patient=who.patient_id)
            assert len(inner(found)) >= len(spans)
            for span in spans:
                if span.label in ("NAME", "HOSPITAL", "MRN", "PHONE", "EMAIL"):
                    assert note.text[span.start : span.end] not in found


def test_signs_of_placeholders_in_a_note_are_no_placeholders():
    (batch,) = memory_corpus(
        [("n", "p", f"Fever {OPEN}Family 1{CLOSE} since Monday, {OPEN}x")]
    ).batches()
    ((_, _, text),) = rows([engine()(batch).batch])
    assert OPEN not in text and CLOSE not in text and "Fever" in text


@pytest.mark.parametrize("inner", ["x", "Family", "Family one", "Family 12", "Family 1x", " 1"])
def test_other_text_between_the_signs_is_text(inner):
    """Notes whose identifiers are kept reach the model as they are."""
    text = f"Fever {OPEN}{inner}{CLOSE} today"
    assert Invented(KEY, 0).filled(text, 0)[0] == text
    assert not any(OPEN in piece or CLOSE in piece for piece in pieces_of(text))


def test_a_number_keeps_its_format_only():
    made = Placeholders(KEY, NoteNames("", ()), (), day_first=False)
    assert made.make("MRN", "Ä-12É ٣x", "p") == placeholder("MRN", 1, "A-00A 0a")


def test_a_placeholder_is_one_piece_and_a_rare_one_becomes_the_commonest_of_its_kind():
    texts = [
        f"Dr. {placeholder('Family', 1)} saw {placeholder('Male', n)} {placeholder('Family', 2)}."
        for n in (1, 1, 1, 7)
    ]
    vocabulary = train_layout(texts, ["a", "b", "c", "d"], 3)
    assert f" {placeholder('Family', 1)}" in pieces_of(texts[0])
    assert vocabulary.decode(vocabulary.encode(texts[3]).tolist()) == texts[0]
    assert not any(
        OPEN in vocabulary.pieces[word]
        for words in vocabulary.slots.values()
        for word in words.tolist()
    )
    assert not any(OPEN in word for word in vocabulary.words)


def test_filled_notes_of_a_patient_agree_and_other_patients_differ():
    text = trained_on(NOTE)
    invented = Invented(KEY, 4)
    first, second, other = (
        one.filled(text, at)[0] for one, at in ((invented, 0), (invented, 1), (Invented(KEY, 5), 0))
    )
    names = [
        re.search(r"RE: (\w+) (\w+), DOB (\S+)\. Seen", one).groups()
        for one in (first, second, other)
    ]
    assert names[0] == names[1] and names[0][1] != names[2][1]
    given, family, _ = names[0]
    doctor = re.search(r"Dr\. (\w+) (\w+)\.", first)
    assert f"Mr. {family.upper()} was" in first and f"Mrs. {family} agreed" in first
    assert f"Dr. {doctor[1][0]}. {doctor[2]} called" in first and given != doctor[1]
    assert not {OPEN, CLOSE} & set(first)


@pytest.mark.parametrize("patient", range(20))
def test_dates_have_the_order_and_the_class_of_distance_of_the_source(patient):
    filled = Invented(KEY, patient).filled(trained_on(NOTE), 0)[0]
    dates = (
        re.search(pattern, filled)[1]
        for pattern in (r"DOB (\S+)\.", r"Seen on (.+?) at", r"him on (.+?) at")
    )
    birth, seen, called = (parse(text)[0] for text in dates)
    assert DAYS[1] < (called - seen).days <= DAYS[2] and DAYS[8] < (called - birth).days <= DAYS[9]
    assert date(1900, 1, 1) < birth


def test_marked_notes_are_the_same_without_tags_and_every_surrogate_is_inside_one():
    text = trained_on(NOTE)
    invented = Invented(KEY, 2)
    plain, marked = (invented.filled(text, 0, marked=marked)[0] for marked in (False, True))
    assert re.sub(r"</?[A-Z_]+>", "", marked) == plain
    found = re.findall(r"<([A-Z_]+)>(.*?)</\1>", marked)
    assert [label for label, _ in found] == [
        "NAME", "DATE", "DATE", "HOSPITAL", "NAME", "NAME", "NAME", "DATE", "PHONE", "NAME",
    ]  # fmt: skip
    outside = re.sub(r"<([A-Z_]+)>.*?</\1>", "", marked)
    assert "Mr.  was well" in outside and not re.search(r"\d", outside)


def test_the_words_of_surrogates_are_told_to_the_floor():
    filled, invented = Invented(KEY, 1).filled(trained_on(NOTE), 0)
    assert set(words(filled)) - invented <= set(words(NOTE))
