"""One pass over a text finds the tokens that the patterns of the tagger and of words find."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.lexicons import LexicalClass, lexical_classes
from clinveil.phi import NoteView, Tokens, WordColumn, kept_form
from clinveil.phi.matching import wordtable
from clinveil.phi.matching.wordtable import WordTable
from tagger_training.tokens import offsets, tokens

WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
TEXTS = st.one_of(st.text(), st.text("ab'A- \n\x00\x1c_12.½²٣é\u0301中\ud800\U00010400"))


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_its_tokens_are_those_of_the_patterns(text):
    found = Tokens(text)
    expected = tokens(text)
    assert [found[i] for i in range(len(found))] == expected
    assert list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == list(
        offsets(text, expected, range(len(expected)))
    )
    assert [kept_form(found.table.token(number)) for number in found.ids.tolist()] == [
        kept_form(t) for t in expected
    ]
    words = [found[i] for i in found.words.tolist()]
    assert words == WORD.findall(text)
    assert [found.table.token(number) for number in found.ids[found.words].tolist()] == words


def test_every_character_is_taken_as_the_patterns_take_it():
    text = "".join(f"a{chr(code)}" for code in range(0x30000))
    found = Tokens(text)
    assert [found[i] for i in range(len(found))] == tokens(text)


@settings(max_examples=100, deadline=None)
@given(st.text("aAbB'sStn- .éİſ", max_size=40))
def test_what_is_known_of_a_word(text):
    note = NoteView(text)
    words = note.words
    for word, written in zip(words, words.written, strict=True):
        contracted = word.text == written and written.lower().endswith(
            ("n't", "'re", "'ve", "'ll", "'m", "'d")
        )
        assert written in (word.text, f"{word.text}'s", f"{word.text}'S")
        assert word.lower == word.text.lower()
        assert word.classes == (LexicalClass.WORD if contracted else lexical_classes(word.text))
        assert note.plain.startswith(word.text, word.start)


def test_many_words_of_all_lengths_keep_their_numbers():
    table = WordTable()
    words = [f"w{'x' * (n % 300)}{chr(97 + n % 26)}{chr(0x4E00 + n)}" for n in range(20_000)]
    first = table.scan(" ".join(words))[2]
    assert len(set(first.tolist())) == len(words)
    assert table.scan("\n".join(words))[2][::2].tolist() == first.tolist()
    assert [table.token(number) for number in first.tolist()] == words


def test_a_full_table_is_replaced_and_its_notes_keep_it(monkeypatch):
    before = NoteView("Alpha beta gamma")
    assert before.words.texts == ["Alpha", "beta", "gamma"]
    monkeypatch.setattr(wordtable, "_MOST_WORDS", 1)
    after = NoteView("Delta beta")
    assert after.words.lowers == ["delta", "beta"]
    assert after.tokens.table is not before.tokens.table
    assert before.words.classes == [lexical_classes(word) for word in ("Alpha", "beta", "gamma")]


def test_a_column_asks_once_a_word():
    asked = []
    column = WordColumn(lambda word: asked.append(word) or len(word), "int32")
    for text in ("one three three", "three one five"):
        found = Tokens(text)
        assert column(found.table, found.ids).tolist() == [len(word) for word in text.split()]
    assert sorted(asked) == ["five", "one", "three"]


@pytest.mark.parametrize("workers", [4])
def test_several_threads_share_a_table(workers, monkeypatch):
    monkeypatch.setattr(Tokens, "_table", WordTable())
    texts = [
        " ".join(f"word{chr(0x4E00 + (7 * n + i) % 900)}x" for i in range(300)) for n in range(60)
    ]
    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(lambda text: NoteView(text).words.written, texts))
    assert found == [text.split() for text in texts]
