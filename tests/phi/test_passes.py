"""Names are propagated over the notes of a patient: found everywhere, in any order alike, and no
word for a name.
"""

from __future__ import annotations

import random
import re
import zlib

import pytest

from clinveil.core import InputError, Key, Span
from clinveil.corpus import NOTE_ID, TEXT, MemoryCorpus, memory_corpus
from clinveil.phi import (
    DETECTORS,
    Finder,
    NameIndex,
    NoteDeidentifier,
    PhiSettings,
    deidentify_corpus,
)
from clinveil.phi.detection.detector import Rule, RuleDetector
from clinveil.phi.detection.finder import with_tagger
from clinveil.phi.treatment import passes
from clinveil.phi.treatment.deidentifier import RAISED
from clinveil.scale import processes, serial

KEY = Key.from_seed(5)
# The tagger finds some names that must be heard of here first.
RULES = with_tagger(PhiSettings(no_tagger=True))


def treated(notes, how=serial, deidentifier=None, pieces=1000):
    (batch,) = memory_corpus(notes).batches()
    cut = MemoryCorpus(tuple(batch.slice(at, pieces) for at in range(0, len(notes), pieces)))
    out = {}
    for done in deidentify_corpus(cut, deidentifier or NoteDeidentifier(KEY, mode="tag"), how):
        out |= dict(
            zip(
                done.batch.column(NOTE_ID).to_pylist(),
                done.batch.column(TEXT).to_pylist(),
                strict=True,
            )
        )
    return out


def follow_up(first, second, **options):
    finder = Finder(RULES, **(options or {"propagate": "patient"}))
    engine = NoteDeidentifier(KEY, mode="tag").with_finder(finder)
    return treated([("n1", "p", first), ("n2", "p", second)], deidentifier=engine)["n2"]


HEADER = "Patient: Chidinma Okwuosa-Reyes\nDr. Tobias Hallström saw the patient.\n"


@pytest.mark.parametrize(
    ("second", "want"),
    [
        ("Then Okwuosa came back.", "Then [NAME] came back."),
        ("then okwuosa came back", "then [NAME] came back"),
        ("OKWUOSA-REYES CAME BACK", "[NAME] CAME BACK"),
        ("Told Okwousa to rest.", "Told [NAME] to rest."),  # misspelt
        ("Hallström's plan", "[NAME]'s plan"),
        ("Hallstrom agrees.", "[NAME] agrees."),
        ("Plan of C.O. is to rest.", "Plan of [NAME] is to rest."),
        (
            "cokwuosa logged in",
            "cokwuosa logged in",
        ),  # not her user name: hers is of the whole surname
    ],
)
def test_a_name_is_found_in_all_forms_in_another_note(second, want):
    assert follow_up(HEADER, second) == want


@pytest.mark.parametrize(
    "text",
    [
        "White count was 12. white cells seen.",
        "The White count was 12",
        "A White male in no distress",
        "RACE: White",
        "WHITE COUNT 12",
        "She may rest. May rest later.",
        "White coat hypertension.",
    ],
)
def test_a_word_that_is_a_name_stays_a_word(text):
    first = "Dr. White and Mrs. May came. Patient: May White\n"
    assert follow_up(first, text) == text


@pytest.mark.parametrize(
    "text",
    ["Foley drains well.", "A Foley was placed", "Foley catheter", "his Parkinson's is worse"],
)
def test_an_eponym_stays_where_somebody_bears_it(text):
    assert follow_up("Dr. Foley and Mr. Parkinson came.", text) == text


def test_a_word_that_is_a_name_is_found_where_it_can_be_nothing_else():
    first = "Dr. White came with Dr. Young."
    assert follow_up(first, "Spoke to White, who agrees.") == "Spoke to [NAME], who agrees."
    assert follow_up(first, "Told white; spoke with white.") == "Told white; spoke with [NAME]."
    assert follow_up(first, "Young states that all is well.") == "[NAME] states that all is well."


def test_staff_are_found_in_the_notes_of_others_and_patients_are_not():
    notes = [
        ("n1", "p1", "Signed: Nkemdirim Zwiyemi, MD. Patient: Tavita Leota\nSeen."),
        ("n2", "p2", "Then Zwiyemi called, and Leota too; zwiyemi is no capital."),
    ]
    rules = PhiSettings(mode="tag", no_tagger=True)
    out = treated(notes, deidentifier=NoteDeidentifier.of(rules, KEY))["n2"]
    assert out.startswith("Then [NAME] called")
    assert "zwiyemi is no capital" in out
    (_, p1) = [NameIndex(), heard_of(notes)]
    assert "zwiyemi" in p1.staff
    assert "leota" not in p1.staff


def heard_of(notes):
    got = []
    list(
        deidentify_corpus(memory_corpus(notes), NoteDeidentifier(KEY), serial, on_index=got.append)
    )
    return got[0]


TITLES = RuleDetector(
    "titles", (Rule("NAME", re.compile(r"Dr\. (?P<phi>\w+)"), "Dr. {Foley} came."),)
)


def test_within_the_note_or_nowhere():
    text = "Dr. Zwiyemi came. Told Zwyiemi."
    tags = {}
    for how in ("patient", "note", "none"):
        engine = NoteDeidentifier(KEY, mode="tag").with_finder(Finder([TITLES], propagate=how))
        tags[how] = list(
            treated([("n1", "p", text), ("n2", "p", "Zwiyemi left.")], deidentifier=engine).values()
        )
    assert tags == {
        "patient": ["Dr. [NAME] came. Told [NAME].", "[NAME] left."],
        "note": ["Dr. [NAME] came. Told [NAME].", "Zwiyemi left."],
        "none": ["Dr. [NAME] came. Told Zwyiemi.", "Zwiyemi left."],
    }


def _notes():
    rng = random.Random(3)
    names = ["Okwuosa", "Hallström", "Leota", "Tjahjadi", "White", "Foley"]
    notes = []
    for number in range(36):
        name, other = rng.sample(names, 2)
        texts = (
            f"Patient: Maria {name}\nSeen by Dr. {other} on 3/{1 + number % 28}/2019.",
            f"Then {name.lower()} and {other} came, with M.{name[0]}. and {name[:-1]}.",
            f"{other} states: on March {1 + number % 28}, 2019 {name} fell.",
        )
        notes.append((f"n{number}", f"p{number % 7}", texts[number % 3]))
    return notes


@pytest.fixture(scope="module")
def two_workers():
    return processes(2)


@pytest.mark.parametrize("recall_first", [False, True])
def test_any_order_cut_and_worker_count_gives_the_same_bytes(two_workers, recall_first):
    notes = _notes()
    finder = Finder([*DETECTORS], propagate="patient", recall_first=recall_first)
    engine = NoteDeidentifier(KEY).with_finder(finder)
    want = treated(notes, deidentifier=engine)
    assert treated(notes[::-1], deidentifier=engine, pieces=5) == want
    assert (
        treated(random.Random(1).sample(notes, len(notes)), deidentifier=engine, pieces=1) == want
    )
    if not recall_first:
        assert treated(notes, two_workers, engine, pieces=7) == want


def test_it_is_found_note_by_note_too_once_it_was_heard():
    notes = _notes()
    heard = heard_of(notes)
    engine = NoteDeidentifier(KEY)
    knowing = engine.with_finder(engine.finder.with_context(heard))
    out = treated(notes, deidentifier=engine)
    for note_id, patient_id, text in notes:
        spans = knowing.find(text, patient_id, note_id)
        assert knowing.treat(text, spans, patient_id)[0] == out[note_id]


def test_detectors_run_once_a_note(monkeypatch):
    calls = []
    monkeypatch.setattr(Finder, "detect", _counted(Finder.detect, calls))
    treated(_notes())
    assert len(calls) == 36


def _counted(function, calls):
    def run(self, view):
        calls.append(1)
        return function(self, view)

    return run


def test_a_note_on_which_the_detectors_fail_is_counted_and_not_written(monkeypatch):
    def burst(self, view):
        if "Okafor" in view.text:
            raise ValueError(view.text)
        return []

    monkeypatch.setattr(Finder, "detect", burst)
    notes = memory_corpus(
        [("n1", "p", "Okafor came"), ("n2", "p", "Nobody came"), ("n3", "p", None)]
    )
    (done,) = deidentify_corpus(notes, NoteDeidentifier(KEY), serial)
    assert done.skipped[RAISED] == 1
    assert done.batch.column(NOTE_ID).to_pylist() == ["n2"]


@pytest.mark.parametrize(
    "later", [[("n1", "p", "Mr. Okwuosb")], [], [("n1", "p", "Mr. Okwuosa"), ("n2", "p", "x")]]
)
def test_notes_that_change_between_the_passes_are_refused(later):
    states = iter([[("n1", "p", "Mr. Okwuosa")], later])
    corpus = MemoryCorpus(
        lambda: iter([b for b in memory_corpus(next(states)).batches() if b.num_rows])
    )
    with pytest.raises(InputError, match="changed while they were read"):
        list(deidentify_corpus(corpus, NoteDeidentifier(KEY), serial))


def test_spans_are_stored_without_text_and_come_back():
    (batch,) = memory_corpus([(f"n{row}", "p", f"Mr. Okwuosa {row}") for row in range(4)]).batches()
    spans = [Span(3, 9, "NAME", "names", 0.85, "title"), Span(11, 14, "DATE", "dates", 1.0)]
    for detected in ([spans, [], None, spans[:1]], [[]] * 4):
        stored = passes.BatchSpans.of(batch, detected)
        assert stored.by_row(batch) == detected
        assert b"Okwuosa" not in zlib.decompress(stored.spans)


def test_many_spans_spill_to_a_file_of_no_name(monkeypatch):
    monkeypatch.setattr(passes, "HELD", 100)
    assert treated(_notes(), pieces=3) == treated(_notes())


def test_heard_shows_nothing():
    heard = heard_of(_notes())
    assert heard.patients
    assert repr(heard) == "NameIndex()"
