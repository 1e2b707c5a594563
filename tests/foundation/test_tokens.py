"""The tokenizer is total and lossless."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import Kind, character_classes, lookup_form, tokenize, tokens, words

ANY_TEXT = st.text(alphabet=st.characters(codec=None), max_size=80)


@given(ANY_TEXT)
def test_joined_tokens_are_the_text(text):
    assert "".join(tokens(text)) == text


@given(ANY_TEXT)
def test_tokens_are_in_order_without_gaps_and_maximal(text):
    found = list(tokenize(text))
    assert [t.start for t in found] == [0, *[t.end for t in found]][: len(found)]
    for one, two in itertools.pairwise(found):
        assert not (one.kind == two.kind and one.kind in (Kind.WORD, Kind.NUMBER, Kind.SPACE))


@given(ANY_TEXT)
def test_words_are_lookup_forms_that_tokenize_to_themselves(text):
    for word in words(text):
        assert lookup_form(word) == word
        assert words(word) == [word]


@given(ANY_TEXT)
def test_the_ascii_path_equals_the_general_one(text):
    general = [lookup_form(text[t.start : t.end]) for t in tokenize(text) if t.kind == Kind.WORD]
    assert words(text) == [w for w in general if w]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q4h", ["q", "4", "h"]),
        ("patient's", ["patient", "'", "s"]),
        ("J\u200bohn", ["J\u200bohn"]),
        ("Jos\u0065\u0301", ["Jose\u0301"]),
        ("Иван 12", ["Иван", " ", "12"]),
        ("a--b", ["a", "-", "-", "b"]),
        ("x \t\r\n y", ["x", " \t\r\n ", "y"]),
        ("²½Ⅷ", ["²½Ⅷ"]),
        ("\u200bJohn", ["\u200b", "John"]),
        ("", []),
    ],
)
def test_borders(text, expected):
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("SMITH", "smith"),
        ("J\u200bo\u00adhn", "john"),
        ("José", "josé"),
        ("Jose\u0301", "josé"),
        ("Straße", "strasse"),
        ("ﬁne", "fine"),
        ("Ｊｏｈｎ", "john"),
        ("\u200d", ""),
        ("\ufdfa", "صلىاللهعليهوسلم"),
    ],
)
def test_lookup_forms(word, form):
    assert lookup_form(word) == unicodedata.normalize("NFKC", form)


def test_every_code_point_has_a_class():
    table = character_classes()
    assert table.shape == (0x110000,)
    assert set(table.tolist()) == set(range(6))
    assert table[ord("\n")] == Kind.SPACE
    assert table[0] == Kind.OTHER
    assert table[ord("$")] == table[ord("😀")] == Kind.PUNCT
    assert table[0xE000] == Kind.OTHER
