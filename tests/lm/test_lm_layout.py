"""Writing with layout: lossless pieces, only shared words and numbers, shared n-grams, and labels
that steer.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import count, islice, repeat

import numpy as np
import pytest

from clinveil.core import Key, words
from clinveil.lm import (
    Conditions,
    LayoutVocabulary,
    PlainNotes,
    SamplingConfig,
    Steering,
    encode,
    generate,
    pieces_of,
    train_layout,
    train_ngram,
    train_unigram,
)
from clinveil.lm.layout import END

NOTE = (
    "HISTORY:\n\n  Mr. {name} had {what} for {n} days,  BP 120/80 (12{n}4).\n- Plan: rest.\n\n{end}"
)
WHAT = (("cough", "wheeze", "asthma"), ("fracture", "sprain", "gout"))


def notes_of(n=60, seed=0):
    """Notes of n patients with two labels, each with a word and a number that no other patient
    has.
    """
    rng = np.random.default_rng(seed)
    texts = []
    for i in range(n):
        own = f"Zq{chr(97 + i % 26)}{chr(97 + i // 26)}"
        what = " and ".join(rng.choice(WHAT[i % 2], 2))
        texts.append(
            NOTE.format(name=own, what=what, n=rng.integers(2, 9), end=f"Seen {i + 5000} times")
        )
    ids = tuple(f"p{i}" for i in range(n))
    return PlainNotes(tuple(texts), ids, ids, tuple(i % 2 for i in range(n)))


def trained(notes, floor=5):
    vocabulary = train_layout(notes.texts, notes.patients, floor)
    encoded = encode(notes.texts, vocabulary, Conditions.of(notes, floor))
    return vocabulary, encoded, train_ngram(encoded, vocabulary)


def written(model, encoded, bias, labels, n=60, seed=3):
    steering = Steering.of(encoded, model.vocabulary, bias)
    how = SamplingConfig(8, 200, steering=steering)
    return list(islice(generate(model, Key.from_seed(seed), how, labels=labels), n))


@pytest.mark.parametrize(
    "text", [NOTE, " a  b\n c\t", "été – 5µg,\n\n\u200bneu", "a", "", "\n", " x"]
)
def test_pieces_join_to_the_text(text):
    assert "".join(pieces_of(text)) == text.replace("\u200b", "")


@pytest.mark.parametrize("text", ["A B: x\nPLAN: y", "PLAN:, 1.,2.,A B: z", "A B:", "x PLAN: y"])
def test_headings_are_one_piece_at_the_start_of_a_line_or_after_a_comma(text):
    pieces = pieces_of(text, {"A B:", "PLAN:"})
    assert "".join(pieces) == text
    assert ("A B:" in pieces) == ("A B:" in text) and ("PLAN:" in pieces) == (
        "PLAN:" in text and text[0] != "x"
    )


@pytest.mark.parametrize("mark", "\ue000\ue001\ue002\ue003\ue004")
def test_a_mark_in_a_note_is_not_taken_for_one_of_ours(mark):
    texts = [f"Stage{mark} A:\nwell {word}" for word in "abcdefgh"]
    vocabulary = train_layout(texts, [*"pqrstuvw"], 5)
    assert not [piece for piece in vocabulary.headings if mark in piece]
    written = vocabulary.decode(vocabulary.encode(texts[0]), np.random.default_rng(1))
    assert "StageA" in written.replace(" ", "") and not re.search("[\\d\ue000-\ue004]", written)


def sections_of(n=100, seed=0, between="\n"):
    """Notes of n patients: three headings in a label's order, with one to four sentences each, and
    a rare name.
    """
    rng = np.random.default_rng(seed)
    texts = []
    verbs = ("sleeps", "walks", "rests", "eats")
    for i in range(n):
        own = f"Zq{chr(97 + i % 26)}{chr(97 + i // 26)}"
        order = ("FIRST", "SECOND", "THIRD") if i % 2 else ("SECOND", "FIRST", "THIRD")
        bodies = [
            "".join(
                f" Mr. {own if rng.random() < 0.7 else 'Smith'} {rng.choice(verbs)}."
                for _ in range(times + 1)
            )
            for times in rng.integers(4, size=3)
        ]
        texts.append(
            between.join(f"{name}:{body}" for name, body in zip(order, bodies, strict=True))
        )
    ids = tuple(map(str, range(n)))
    return PlainNotes(tuple(texts), ids, ids, tuple(i % 2 for i in range(n)))


@pytest.mark.parametrize("between", ["\n", ","])
def test_sections_have_the_order_of_their_label_and_the_lengths_of_the_notes(between):
    notes = sections_of(between=between)
    vocabulary, encoded, model = trained(notes)
    found = written(model, encoded, 0.3, (i % 2 for i in count()), n=100)
    texts = [vocabulary.decode(note.ids.tolist()) for note in found]
    orders = [re.findall("[A-Z]{5,}", text) for text in texts]
    right = [
        order == (["FIRST", "SECOND"] if i % 2 else ["SECOND", "FIRST"]) + ["THIRD"]
        for i, order in enumerate(orders)
    ]
    assert np.mean(right) > 0.9
    real, own = (np.array([text.count("Mr") for text in side]) for side in (notes.texts, texts))
    assert abs(own.mean() / real.mean() - 1) < 0.1 and abs(own.std() / real.std() - 1) < 0.3


def test_the_patient_has_one_name_in_a_note_and_it_is_a_shared_one():
    notes = sections_of()
    vocabulary, encoded, model = trained(notes)
    found = written(model, encoded, 0.3, (i % 2 for i in count()), n=60)
    rare = [note for note in found if (note.drawn != note.ids).any()]
    assert len(rare) > 50
    for note in rare:
        filled = {vocabulary.pieces[row] for row in note.ids[note.drawn != note.ids].tolist()}
        assert filled == {" Smith"}


def test_shared_text_comes_back_and_rare_words_and_numbers_do_not():
    notes = notes_of()
    vocabulary, _, _ = trained(notes)
    text = vocabulary.decode(vocabulary.encode(notes.texts[0]).tolist())
    assert (
        text.startswith("HISTORY:\n\n  Mr. had ")
        and "\n- Plan: rest.\n\nSeen 50" in text
        and "BP 120/80" in text
    )
    assert (
        not [word for word in words(text) if word.startswith("zq")] and "5000 times" in text
    )  # shape 50##, digits 0
    drawn = {
        vocabulary.decode(vocabulary.encode("rest 5017").tolist(), np.random.default_rng(i))
        for i in range(30)
    }
    assert len(drawn) > 6 and all(
        number.startswith("rest 50") and len(number) == 9 for number in drawn
    )
    data = vocabulary.as_dict()
    again = LayoutVocabulary(data["pieces"], data["numbers"])
    assert again.pieces == vocabulary.pieces and again.numbers == vocabulary.numbers


def test_a_rare_spelling_becomes_the_usual_one():
    vocabulary = train_layout(["The cough"] * 5 + ["COUGH"], [f"p{i}" for i in range(6)], 5)
    assert vocabulary.decode(vocabulary.encode("The COUGH").tolist()) == "The cough"


def test_only_shared_words_and_n_grams_are_written_with_the_layout():
    notes = notes_of()
    vocabulary, encoded, model = trained(notes)
    notes = written(model, encoded, 0.5, (i % 2 for i in count()))
    found = [vocabulary.decode(note.ids.tolist()) for note in notes]
    every = Counter(word for text in found for word in words(text))
    assert (
        every
        and set(every) <= vocabulary.words
        and not [word for word in every if word.startswith("zq")]
    )
    whole = [
        text
        for text in found
        if re.match(r"HISTORY:\n\n  Mr. [A-Z][a-z]+ had [^\n]*\n- Plan: rest.\n\nSeen ", text)
    ]
    assert len(whole) > 0.8 * len(found)
    drawn = [vocabulary.decode(note.drawn.tolist()) for note in notes]
    assert sum(text.startswith("HISTORY:\n\n  Mr. had ") for text in drawn) > 0.8 * len(
        found
    )  # compared with real notes


@pytest.mark.parametrize("train", [train_ngram, train_unigram])
def test_labels_steer_and_shuffled_labels_do_not(train):
    def share(notes):
        vocabulary, encoded, _ = trained(notes)
        model = train(encoded, vocabulary)
        own = written(
            model, encoded, 0.3 if model.kind == "ngram" else 1.5, (i % 2 for i in count()), n=120
        )
        texts = [set(words(vocabulary.decode(note.ids.tolist()))) for note in own]
        hits = [
            (len(text & set(WHAT[i % 2])), len(text & set(WHAT[1 - i % 2])))
            for i, text in enumerate(texts)
        ]
        right, wrong = (sum(column) for column in zip(*hits, strict=True))
        return right / (right + wrong)

    notes = notes_of(120)
    mixed = replace(
        notes, labels=tuple(np.random.default_rng(1).permutation(notes.labels).tolist())
    )
    assert share(notes) > 0.85 and 0.3 < share(mixed) < 0.7


def test_n_grams_of_few_patients_are_left_out_and_repetition_counts_once():
    def scored(times):
        notes = notes_of()
        repeated = PlainNotes(
            (*notes.texts, *["HISTORY:\n\n  rest had rest had Plan"] * times),
            tuple(map(str, range(60 + times))),
            (*notes.patients, *["x"] * times),
            (*notes.labels, *[0] * times),
        )
        vocabulary, encoded, model = trained(repeated)
        secret = vocabulary.encode("HISTORY:\n\n  rest had rest had Plan")
        plain = train_ngram(replace(encoded, conditions=None), vocabulary)
        return model.score([secret])[0], plain.score([secret])[0]

    (once, _), (often, plain) = scored(1), scored(100)
    assert (often - once).max() < 0.5
    assert often[3:-1].max() < np.log(0.4) < np.log(0.6) < plain[3:-1].min()


def test_streams_and_scores_agree_and_batches_change_nothing():
    notes = notes_of()
    vocabulary, encoded, model = trained(notes)
    model.sharpness = 1.0
    note = encoded.note(3)
    stream = model.stream(2)
    stream.reset(np.array([0, 1]), np.array([1, 0]))
    logs = []
    for token in note.tolist():
        rows = stream.probabilities()
        assert rows.sum(axis=1) == pytest.approx([1, 1], abs=1e-9)
        logs.append(np.log(rows[0, token]))
        stream.push(np.array([token, END if token == END else token]))
    assert logs == pytest.approx(model.score([note], np.array([1]))[0].tolist(), abs=1e-9)
    assert model.score([note])[0].tolist() != model.score([note], np.array([1]))[0].tolist()
    how = SamplingConfig(3, 200, steering=Steering.of(encoded, vocabulary, 0.5))
    few = islice(generate(model, Key.from_seed(3), how, labels=repeat(1)), 12)
    assert [n.ids.tolist() for n in few] == [
        n.ids.tolist() for n in written(model, encoded, 0.5, repeat(1), n=12)
    ]
