"""The contract of every detector, inherited by all: spans in bounds, right labels, no state, no
fear of odd text.
"""

from __future__ import annotations

import pickle
import re
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marked import marked_again, unmark

from clinveil.core import LABELS, Key
from clinveil.corpus import MemoryCorpus, Patient, memory_corpus
from clinveil.phi import DETECTORS, NoteDeidentifier, NoteView, covered_labels, deidentify_corpus
from clinveil.phi.detection import finder
from clinveil.phi.detection.detector import Rule, RuleDetector
from clinveil.phi.detection.finder import resolve
from clinveil.scale import processes

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


MEMBERS = [pytest.param(detector, id=detector.name) for detector in DETECTORS]
RULES = [
    pytest.param(rule, id=f"{detector.name}-{number}")
    for detector in DETECTORS
    for number, rule in enumerate(getattr(detector, "rules", ()))
]


def view(text):
    return NoteView(text, "n1", PATIENT)


def note_of(detector):
    """All examples of a detector as one note."""
    return "\n".join(unmark(example)[0] for example in detector.examples)


def named(spans, text):
    return {(text[span.start : span.end].replace("\u200b", ""), span.label) for span in spans}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_what_its_example_marks_and_no_more(rule):
    text, truth = unmark(rule.example.replace("{", f"{{{rule.label}:"))
    assert truth
    note = NoteView(text)
    spans = [note.span(*place, rule.label, "rule", 1.0) for place in rule.find(note)]
    assert [(span.start, span.end, span.label) for span in spans] == truth


def test_a_span_says_which_rule_fired():
    text = "Seen on 3/4/2019."
    spans = [span for detector in DETECTORS for span in detector.find(NoteView(text))]
    assert {(span.start, span.end, span.why) for span in spans} == {(8, 16, "Seen on 9/9/9999")}


def test_the_rules_of_a_detector_are_told_apart_and_name_no_figure_of_their_examples():
    for detector in DETECTORS:
        whys = [rule.why for rule in getattr(detector, "rules", ())]
        assert len(set(whys)) == len(whys), detector.name
        assert all(why and len(why) <= 100 for why in whys)
        assert not any(set(why) & set("012345678") for why in whys), detector.name


@pytest.mark.parametrize("detector", DETECTORS)
class TestDetector:
    """What every detector promises, on its own examples."""

    def test_its_labels_are_known(self, detector):
        assert detector.labels
        assert detector.labels <= set(LABELS)

    def test_it_finds_what_its_examples_mark(self, detector):
        for example in detector.examples:
            text, truth = unmark(example)
            found = [
                (span.start, span.end, span.label)
                for span in resolve(text, detector.find(view(text)))
            ]
            assert all(_covered(start, end, found) for start, end, _ in truth), example
            if not hasattr(detector, "rules"):
                assert marked_again(text, found) == example

    def test_it_finds_each_of_its_labels(self, detector):
        spans = list(detector.find(view(note_of(detector))))
        older = (
            {"AGE"} if detector.name == "known" else set()
        )  # the birth date of a patient born before 1940
        assert {span.label for span in spans} == set(detector.labels) - older

    def test_its_spans_carry_its_name_and_lie_in_the_note(self, detector):
        note = note_of(detector)
        for span in detector.find(view(note)):
            assert span.detector == detector.name
            assert 0 <= span.start < span.end <= len(note)
            assert 0 < span.score <= 1

    def test_nothing_in_an_empty_note(self, detector):
        assert list(detector.find(view(""))) == []

    def test_it_has_no_state(self, detector):
        note = note_of(detector)
        first = list(detector.find(view(note)))
        list(detector.find(view("Dr. Other, 5/6/2017, MRN 999999")))
        assert list(detector.find(view(note))) == first
        assert list(pickle.loads(pickle.dumps(detector)).find(view(note))) == first

    def test_zero_width_characters_do_not_hide_anything(self, detector):
        note = note_of(detector)
        hidden = "".join(c + "\u200b" if c.isalnum() else c for c in note)
        assert named(detector.find(view(hidden)), hidden) == named(detector.find(view(note)), note)

    def test_full_width_characters_do_not_hide_anything(self, detector):
        note = note_of(detector)
        wide = note.translate({i: i + 0xFEE0 for i in range(0x30, 0x3A)})
        places = {(s.start, s.end, s.label) for s in detector.find(view(note))}
        assert {(s.start, s.end, s.label) for s in detector.find(view(wide))} == places

    def test_a_shift_of_the_note_shifts_the_spans(self, detector):
        note = note_of(detector)
        lead = "é\u200b ok.\n"
        spans = {
            (s.start + len(lead), s.end + len(lead), s.label) for s in detector.find(view(note))
        }
        assert {(s.start, s.end, s.label) for s in detector.find(view(lead + note))} == spans


def _covered(start, end, found):
    return any(first <= start and end <= last for first, last, _ in found)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_any_text_is_borne(text):
    view = NoteView(text, "n1", PATIENT)
    for detector in DETECTORS:
        for span in detector.find(view):
            assert 0 <= span.start < span.end <= len(text)


def test_each_detector_has_a_name_of_its_own():
    found = [detector.name for detector in DETECTORS]
    assert len(found) == len(set(found)) >= 10


def test_all_labels_are_covered_by_some_detector():
    assert covered_labels() == set(LABELS)


def test_a_note_view_and_its_patient_show_no_text():
    shown = repr(NoteView("Dr. Secretname", "idsecret", PATIENT))
    assert "Secretname" not in shown
    assert "O'Brien" not in shown
    assert "idsecret" not in shown


class _Badges:
    """What a third party would write."""

    name = "badges"
    labels = frozenset({"ID"})
    examples = ("Badge {ID:zz9} was seen.",)

    def find(self, note):
        at = note.plain.find("zz9")
        return [note.span(at, at + 3, "ID", self.name)] if at >= 0 else []


def test_a_detector_of_others_is_used_by_every_worker(monkeypatch):
    monkeypatch.setattr(finder, "DETECTORS", (*DETECTORS, _Badges()))
    batch = next(memory_corpus([("n1", "p1", "Badge zz9 was seen.")]).batches())
    (done,) = deidentify_corpus(
        MemoryCorpus([batch]), NoteDeidentifier(Key.from_seed(1), mode="tag"), processes(2)
    )
    assert done.batch["text"].to_pylist() == ["Badge [ID] was seen."]
    assert done.by_detector == {"badges": 1}


def test_the_order_of_detectors_means_nothing():
    text = "\n".join(unmark(example)[0] for detector in DETECTORS for example in detector.examples)
    one, other = (
        NoteDeidentifier(Key.from_seed(1), finders=some) for some in (DETECTORS, DETECTORS[::-1])
    )
    assert one.find(text) == other.find(text)


def test_a_label_that_no_mode_knows_is_refused():
    with pytest.raises(ValueError, match="unknown label BADGE"):
        RuleDetector("badges", (Rule("BADGE", re.compile("zz9"), "{zz9}"),))
