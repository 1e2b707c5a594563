"""Vocabularies: there and back, what notes can spell, and byte pairs that know every text."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import InputError, MissingExtra
from clinveil.lm import (
    END,
    ModelSettings,
    PlainNotes,
    WordVocabulary,
    encode,
    make_vocabulary,
    vocabulary_of,
)
from clinveil.lm.vocabulary import digest

pytest.importorskip("tokenizers", reason="the extra [neural] is not installed")
from clinveil.lm.vocabulary import BytePairs, train_byte_pairs

TEXTS = ["Patient denies pain .\nNo fever now .", "Patient has pain .", "No pain now ."] * 2
ODD = "naïve 🩺 👩‍⚕️ ﷽ e\u0301 Ω≈ç 日本語 \u200b|\u200d \ufffd \U0010ffff"
token = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).map(
    lambda t: "".join(t.split())
)
line = st.lists(token.filter(bool), min_size=1, max_size=6).map(" ".join)
form = st.lists(line, min_size=1, max_size=4).map("\n".join)  # MedText's


def words_of(text):
    return WordVocabulary(
        dict.fromkeys(w for w in text.split() if w not in ("<unk>", "<eos>", "<eon>"))
    )


def test_words_by_hand():
    vocabulary = WordVocabulary(["no", "pain"])
    assert vocabulary.size == 5
    assert vocabulary.words == ("<eon>", "<eos>", "<unk>", "no", "pain")
    ids = vocabulary.encode("no pain\nfever\npain")
    assert ids.tolist() == [3, 4, 1, 2, 1, 4, 1, 0]
    assert ids.dtype == "int32"
    assert vocabulary.decode(ids) == "no pain\n<unk>\npain"


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([3, 1, 1, 1, 4, 0, 3, 3], "a\nb"),  # it stops at the end and drops empty lines
        ([3, 4], "a b"),  # cut before its end
        ([1, 0], ""),
        ([], ""),
    ],
)
def test_decoding_by_hand(ids, text):
    assert WordVocabulary(["a", "b"]).decode(ids) == text


@pytest.mark.parametrize(
    "words", [["a", "a"], ["<unk>"], ["<eos>"], ["<eon>"], ["a b"], [""], ["a\n"], ["a\u2028b"]]
)
def test_a_word_twice_a_special_one_and_white_space_are_refused(words):
    with pytest.raises(InputError, match="distinct"):
        WordVocabulary(words)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [1, 0]),
        ("a <eon> b", [3, 2, 4, 1, 0]),  # a note that spells the end does not end there
        ("a <eos> b", [3, 2, 4, 1, 0]),
        ("a <unk> b", [3, 2, 4, 1, 0]),
    ],
)
def test_encoding_by_hand(text, ids):
    assert WordVocabulary(["a", "b"]).encode(text).tolist() == ids


@given(form)
def test_words_there_and_back(text):
    vocabulary = words_of(text)
    ids = vocabulary.encode(text)
    plain = " ".join("<unk>" if w in ("<eos>", "<eon>") else w for w in text.split())
    assert " ".join(vocabulary.decode(ids).split()) == plain
    assert vocabulary.decode(ids).count("\n") == text.count("\n")
    assert (ids == END).sum() == 1
    assert ids[-1] == END
    assert (ids == 1).sum() == text.count("\n") + 1


@given(form)
def test_words_as_json(text):
    vocabulary = words_of(text)
    back = vocabulary_of(json.loads(json.dumps(vocabulary.as_dict())))
    assert back.words == vocabulary.words
    assert digest(back) == digest(vocabulary)


def test_digests_tell_vocabularies_apart():
    assert digest(WordVocabulary(["a", "b"])) != digest(WordVocabulary(["b", "a"]))
    assert digest(WordVocabulary([])) != digest(train_byte_pairs(TEXTS, 300))


@pytest.mark.parametrize(
    "data", [{}, {"kind": "words"}, {"kind": "words", "words": 3}, {"kind": "bytes"}]
)
def test_other_data_is_no_vocabulary(data):
    with pytest.raises(InputError, match="not a vocabulary"):
        vocabulary_of(data)


@pytest.mark.parametrize(
    "model", ["", "not JSON", "{}", "[]", '{"model": {"type": "BPE"}}', "\x00" * 50]
)
def test_other_text_is_no_byte_pairs(model):
    with pytest.raises(InputError, match="not a byte pair vocabulary"):
        BytePairs(model)


def test_byte_pairs_without_our_end_are_refused():
    from tokenizers import Tokenizer, models

    other = Tokenizer(models.BPE(vocab={"a": 0, "<eon>": 1}, merges=[]))
    with pytest.raises(InputError, match="of a language model"):
        BytePairs(other.to_str())


PAIRS = train_byte_pairs(TEXTS, 320)


@given(form)
def test_byte_pairs_there_and_back(text):
    ids = PAIRS.encode(text)
    assert PAIRS.decode(ids) == text
    assert (ids == END).sum() == 1
    assert ids[-1] == END
    assert 0 <= ids.min() <= ids.max() < PAIRS.size


@pytest.mark.parametrize(
    "text", [ODD, "a <eon> b", "<eon>", "<eon><eon>\n<unk> <eos>", ODD * 50, "Ġ Ċ ġ"]
)
def test_byte_pairs_know_every_text(text):
    ids = PAIRS.encode(text)
    assert ids.tolist().count(END) == 1
    assert PAIRS.decode(ids) == text


def test_texts_that_spell_the_end_train_no_piece_of_it():
    pairs = train_byte_pairs(["a <eon> b <eon> c <eon>"] * 9, 400)
    ids = pairs.encode("a <eon> b")
    assert ids.tolist().count(END) == 1
    assert pairs.decode(ids) == "a <eon> b"


def test_bytes_that_make_no_character_become_the_replacement_character():
    ids = PAIRS.encode("é")
    assert ids.size == 3  # two bytes and the end
    assert PAIRS.decode([int(ids[0]), 0]) == "\ufffd"
    assert PAIRS.decode([int(ids[1]), int(ids[0]), *PAIRS.encode("a").tolist()]) == "\ufffd\ufffda"


def test_decoded_pieces_are_in_the_form_of_notes():
    messy = PAIRS.encode("  a  b \n\n\t c\u2003d \n ")
    assert PAIRS.decode(messy) == "a b\nc d"


def test_byte_pairs_as_json():
    back = vocabulary_of(json.loads(json.dumps(PAIRS.as_dict())))
    assert isinstance(back, BytePairs)
    assert digest(back) == digest(PAIRS)
    assert back.encode(ODD + " <eon>").tolist() == PAIRS.encode(ODD + " <eon>").tolist()
    assert digest(vocabulary_of(back.as_dict())) == digest(PAIRS)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for make in (lambda: train_byte_pairs(TEXTS, 300), lambda: vocabulary_of(PAIRS.as_dict())):
        with pytest.raises(MissingExtra, match=r"clinveil\[neural\]"):
            make()


def plain_notes(texts):
    return PlainNotes(
        tuple(texts), tuple(map(str, range(len(texts)))), tuple(f"p{i}" for i in range(len(texts)))
    )


def test_vocabulary_of_settings_keeps_frequent_words_and_those_asked_for():
    notes = plain_notes(["a a b c <eon> <eon> <eon>", "a b b <unk> <unk> <unk>"])
    settings = ModelSettings(vocabulary="words", min_count=3)
    made = make_vocabulary(notes, settings, always=["Zed", "a", "Zed"])
    assert made.words[3:] == ("a", "b", "Zed")
    assert make_vocabulary(notes, ModelSettings(model="unigram", min_count=1)).words[3:] == (
        "a",
        "b",
        "c",
    )


def test_no_repr_shows_a_word():
    notes = plain_notes(["secretword"])
    assert "secretword" not in repr(notes)
    assert "secretword" not in repr(encode(notes.texts, words_of("secretword")))
    assert "secretword" not in repr(words_of("secretword"))
