"""The tagger: the arithmetic of a CRF, its file, its training text, and what the model in the
package does.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pycrfsuite
import pytest
from marked import unmark

from clinveil.core import InputError, Span, UsageError
from clinveil.corpus.demo import demo_notes
from clinveil.lexicons import held_out
from clinveil.phi import (
    Features,
    Finder,
    NoteView,
    PhiSettings,
    Tagger,
    TaggerDetector,
    load_tagger,
    own_tagger,
)
from tagger_training.crfsuite import file_of, items, write_crfsuite
from tagger_training.invent import NAMES, Labelled, filled, invented, refilled, templates
from tagger_training.people import People, may_train
from tagger_training.tokens import offsets, tokens
from tagger_training.train import (
    judged,
    labelled_tokens,
    save_tagger,
    threshold_within,
    train_tagger,
    written_small,
)

PEOPLE = People()
STEPS = 12


@pytest.fixture(scope="module")
def texts():
    return list(invented(70, PEOPLE, Random(3)))


@pytest.fixture(scope="module")
def small(texts):
    return train_tagger(texts, ("NAME",), 0.5, {"of": "a test"}, _words(texts), iterations=STEPS)


@pytest.fixture(scope="module")
def notes():
    return [text for batch in demo_notes(2, 9) for text in batch.column("text").to_pylist()][:4]


def _words(texts):
    return written_small(text.text for text in texts)


def marked(*examples):
    return [
        Labelled(text, tuple(Span(*place) for place in truth))
        for text, truth in (unmark(line) for line in examples)
    ]


class TestArithmetic:
    def test_chances_are_those_of_crfsuite(self, texts, notes, tmp_path):
        model = train_tagger(texts, ("NAME",), 0.5, {}, {}, iterations=STEPS)
        features = Features()
        file = tmp_path / "crf"
        write_crfsuite((labelled_tokens(text, ("NAME",)) for text in texts), file, features, STEPS)
        reference = pycrfsuite.Tagger()
        tagger = Tagger(model)
        reference.open(str(file))
        for note in [*notes, "Dr. Ann", "x", "O'Neil-Ward's 12/3\n\n(b)"]:
            found = tokens(note)
            reference.set(items(found, features))
            expected = [
                [reference.marginal(label, at) for label in model.labels]
                for at in range(len(found))
            ]
            assert np.abs(tagger.probabilities(found) - np.array(expected)).max() < 1e-9

    def test_chances_sum_to_one_also_where_nothing_is_known(self, small):
        assert Tagger(small).probabilities(tokens("Zq 𝔘 \ud800 ½ ___ \x00\x00")).sum(
            axis=1
        ) == pytest.approx(1)
        assert Tagger(small).hits("") == []

    def test_what_was_met_before_changes_nothing(self, small, notes):
        alone = Tagger(small)
        after = Tagger(small)
        for note in notes:
            after.hits(note)
        assert alone.hits(notes[-1], 0.1) == after.hits(notes[-1], 0.1)

    def test_the_words_line_and_sign_are_neither_a_line_nor_a_sign(self, notes):
        text = "Seen by Ann Ward\n§ Tess Moor\n"
        alone = Tagger(own_tagger())
        after = Tagger(own_tagger())
        after.probabilities(tokens("A line in place, no sign of it."))
        assert (alone.probabilities(tokens(text)) == after.probabilities(tokens(text))).all()

    def test_a_full_table_is_begun_again(self, small, notes, monkeypatch):
        tagger = Tagger(small)
        expected = [tagger.hits(note, 0.1) for note in notes]
        monkeypatch.setattr("clinveil.phi.tagger.tag._MAX_ROWS", 5)
        assert [tagger.hits(note, 0.1) for note in notes] == expected


class TestFile:
    def test_the_same_model_gives_the_same_bytes(self, small, texts, tmp_path):
        again = train_tagger(
            texts, ("NAME",), 0.5, {"of": "a test"}, _words(texts), iterations=STEPS
        )
        save_tagger(small, tmp_path / "a.npz")
        save_tagger(again, tmp_path / "b.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
        assert load_tagger(tmp_path / "a.npz").digest == small.digest
        assert (tmp_path / "a.npz").stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize(
        "harm", ["none", "text", "empty", "zip", "cut", "pickle", "weights", "version"]
    )
    def test_a_file_that_is_not_ours_gives_one_clear_line(self, small, tmp_path, harm):
        path = tmp_path / "m.npz"
        save_tagger(small, path)
        _harm(path, harm)
        with pytest.raises(InputError) as caught:
            load_tagger(path)
        assert "\n" not in str(caught.value)
        assert "m.npz" in str(caught.value)

    def test_a_model_is_looked_at_before_the_work(self, tmp_path):
        (tmp_path / "m.npz").write_text("no model")
        with pytest.raises(InputError, match="not a tagger model"):
            Finder.of(PhiSettings(tagger=tmp_path / "m.npz"))


def _harm(path, harm):
    data = path.read_bytes()
    if harm == "none":
        path.unlink()
    elif harm in ("text", "empty", "cut"):
        path.write_bytes({"text": b"weights", "empty": b"", "cut": data[: len(data) // 2]}[harm])
    elif harm == "zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("note.txt", "nothing")
    else:
        _rewrite(path, harm)


def _rewrite(path, harm):
    with np.load(path) as file:
        arrays = dict(file)
    if harm == "pickle":
        arrays["weights"] = np.array([object()])
    elif harm == "weights":
        arrays["weights"][0] += 1
    else:
        said = json.loads(arrays["header"].tobytes()) | {"features": -1}
        arrays["header"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    np.savez(path, **arrays)


class TestTrainingText:
    def test_labels_follow_the_spans(self):
        text = marked("Seen by {NAME:O'Neil, J.} on {DATE:3/4} with {NAME:Ann}{NAME:Lee}.")[0]
        found, labels = labelled_tokens(text, ("NAME",))
        assert [(t, x) for t, x in zip(found, labels, strict=True) if x != "O"] == [
            ("O'Neil", "B-NAME"),
            (",", "I-NAME"),
            ("J", "I-NAME"),
            (".", "I-NAME"),
            ("AnnLee", "B-NAME"),
        ]

    def test_tokens_stand_where_they_are_said_to(self, notes):
        for note in notes:
            found = tokens(note)
            assert [note[a:b] for a, b in offsets(note, found, range(len(found)))] == found

    def test_no_name_that_is_kept_for_tests_is_ever_used(self, texts):
        rng = Random(1)
        people = People(["Nelson Whitaker"])
        assert not may_train("Ann-Nelson") and held_out("Nelson")
        drawn = [people.one(rng) for _ in range(600)]
        assert all(
            may_train(part)
            for person in drawn
            for part in (person.given, person.middle, person.family)
        )
        assert people.real == []

    def test_every_template_is_filled_and_marked(self):
        rng = Random(2)
        people = PEOPLE
        for line in (*templates("templates"), *templates("prose")):
            made = filled(line, people, rng)
            assert bool(made.spans) == any("{" + slot + "}" in line for slot in NAMES)
        assert not any(filled(line, people, rng).spans for line in templates("negatives"))

    def test_another_name_goes_where_one_stood(self):
        made = refilled(marked("Dr. {NAME:Smith} saw {NAME:Ann Lee}.")[0], PEOPLE, Random(4))
        first, second = made.spans
        assert made.text.startswith("Dr. ") and made.text[first.end :].startswith(" saw ")
        assert made.text[second.end :] == "."

    def test_a_threshold_keeps_to_its_bound(self, small):
        others = list(invented(30, PEOPLE, Random(8)))
        for most in (0.0, 0.002, 0.02):
            threshold = threshold_within(Tagger(small), others, most)
            tagger = Tagger(small)
            false = 0
            words = 0
            for text in others:
                found, given = labelled_tokens(text, ("NAME",))
                taken = 1 - tagger.probabilities(found)[:, 0] >= threshold
                words += sum(token[0].isalpha() for token in found)
                false += sum(
                    bool(taken[i]) and x == "O" and found[i][0].isalpha()
                    for i, x in enumerate(given)
                )
            assert false <= most * words

    def test_what_is_found_is_counted(self, small):
        counted = judged(replace(small, threshold=1e-9), marked("Dr. {NAME:Ann Lee} came."))
        assert (counted["tuned_places"], counted["tuned_found"], counted["tuned_words"]) == (
            1,
            1,
            2,
        )

    def test_texts_without_marks_teach_nothing(self):
        with pytest.raises(InputError, match="no span with a requested label"):
            train_tagger([Labelled("No pain.")] * 3, ("NAME",), 0.5, {}, {})


class TestOurs:
    """The model in the package."""

    def test_it_is_small_and_has_its_card(self):
        from clinveil.phi.tagger import model

        assert (Path(model.__file__).parent / "names.npz").stat().st_size < 1 << 19
        assert {
            "date",
            "recipe",
            "sources",
            "tokens",
            "marked",
            "most_false",
        } <= own_tagger().card.keys()

    @pytest.mark.parametrize(
        "line",
        [
            "Foley catheter draining clear urine. Babinski negative, Romberg positive.",
            "Parkinson's disease and Crohn disease, Hodgkin lymphoma, Graves' disease.",
            "Lisinopril 10 mg daily, Zestril stopped; Lipitor, Metoprolol and Aspirin.",
            "PROCEDURE: Whipple with DeBakey forceps and a Bovie. ANESTHESIA: General.",
            "Rose from chair, white count up, brown sputum. Will wean in May.",
            "Patient: stable\nProcedure: lumbar puncture\nUnit: ICU",
            "Denies chest pain. Discussed with family. Seen by PT and GI today.",
        ],
    )
    def test_terms_are_left_alone(self, line):
        assert list(TaggerDetector().find(NoteView(line))) == []

    def test_it_finds_names_that_no_list_holds(self):
        lines = marked(
            "Handed over to {NAME:Ruvkunen} at noon.",
            "Seen with Dr. {NAME:Oktawe}.",
            "patient: {NAME:tovash kelmuri}",
            "Wound of {NAME:Quindra} looks clean.",
            "ORDERED BY: {NAME:VOSTRIK, PELKA}",
            "{NAME:Ward} denies pain; his wife {NAME:Grace} agrees.",
        )
        for line in lines:
            found = [(s.start, s.end) for s in TaggerDetector().find(NoteView(line.text))]
            assert found == [(s.start, s.end) for s in line.spans], line.text

    def test_a_span_says_that_the_tagger_fired_and_stands_in_the_note_itself(self):
        note = NoteView("Seen by Dr. Vos\u200btrik today.")
        (span,) = TaggerDetector().find(note)
        assert (note.text[span.start : span.end], span.why, span.detector) == (
            "Vos\u200btrik",
            "tagger",
            "tagger",
        )
        assert 0 < span.score <= 1

    def test_it_can_be_left_out_or_replaced(self, small, tmp_path):
        save_tagger(small, tmp_path / "m.npz")
        named = {
            how: _taggers(Finder.of(PhiSettings(**how_)))
            for how, how_ in _SETTINGS(tmp_path).items()
        }
        assert named == {"own": [None], "none": [], "site": [tmp_path / "m.npz"]}
        with pytest.raises(UsageError, match="exclude"):
            Finder.of(PhiSettings(tagger=tmp_path / "m.npz", no_tagger=True))


def _SETTINGS(folder):
    return {"own": {}, "none": {"no_tagger": True}, "site": {"tagger": folder / "m.npz"}}


def _taggers(finder):
    return [detector.model for detector in finder.detectors if isinstance(detector, TaggerDetector)]


def test_what_the_library_writes_is_never_on_disk(monkeypatch):
    """A model in the making holds words of notes: no folder is asked for it, so a killed run leaves
    none.
    """
    monkeypatch.setattr(tempfile, "TemporaryDirectory", None)
    written = []

    def write(file):
        written.append(str(file))
        file.write_bytes(b"words")

    assert file_of(write) == b"words"
    assert written[0].startswith("/proc/self/fd/")
