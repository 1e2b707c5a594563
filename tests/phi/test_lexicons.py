"""The lists: they say where they are from, and tell names from words as far as lists can."""

from __future__ import annotations

from importlib.resources import files

import pytest

from clinveil.lexicons import (
    LexicalClass,
    all_given_names,
    gender_of,
    given_names,
    is_word,
    lexical_classes,
    name_form,
    surnames,
    word_list,
    world_given,
    world_surnames,
)

LISTS = [
    "common",
    "clinical",
    "usual",
    "brands",
    "medicines",
    "complaints",
    "word_towns",
    "eponyms",
    "eponym_nouns",
    "states",
    "cities",
    "hospitals",
    "function",
]


@pytest.mark.parametrize("name", LISTS)
def test_every_list_states_its_source_and_has_no_repeats(name):
    head, _, body = (
        files("clinveil.lexicons").joinpath("data", f"{name}.txt").read_text().partition("\n")
    )
    assert head.startswith("# ")
    assert head.endswith("Source: written for clinveil.")
    assert len(body.split()) == len(set(body.split())) == len(word_list(name))


def test_census_sizes_and_shares():
    assert len(surnames()) == 88_799
    assert len(given_names("female")) == 4_275
    assert len(given_names("male")) == 1_219
    assert surnames()["smith"] == 1.006
    assert sum(surnames().values()) == pytest.approx(79.59, abs=0.01)
    with pytest.raises(TypeError):
        surnames()["smith"] = 2  # type: ignore[index]


def test_gender():
    assert gender_of("mary") == "female"
    assert gender_of("james") == "male"
    assert gender_of("leslie") == ""
    assert gender_of("zzz") == ""
    assert all_given_names()["mary"] == pytest.approx(
        (2.629 + given_names("male").get("mary", 0)) / 2
    )


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("José", "jose"),
        ("Jose\u0301", "jose"),
        ("O'Brien", "obrien"),
        ("NUÑEZ", "nunez"),
        ("Øst", "ost"),
        ("Łukasz", "lukasz"),
        ("Smith-Jones", "smithjones"),
        ("ＳＭＩＴＨ", "smith"),
        ("", ""),
        ("\u200b", ""),
        ("Ünal", "unal"),
    ],
)
def test_name_forms(word, form):
    assert name_form(word) == form


def test_the_world_has_names_that_the_census_lacks():
    extra = world_given() - set(all_given_names())
    assert len(extra) > 5_000
    assert len(world_surnames() - set(surnames())) > 5_000
    assert all(name.isascii() and name.islower() and len(name) >= 3 for name in world_given())


WORDS = [
    "patient",
    "walked",
    "stitches",
    "biopsies",
    "hysterectomy",
    "slowly",
    "stopped",
    "pneumonitis",
    "may",
]


@pytest.mark.parametrize("word", [*WORDS, "smith", "okwuosa", "jennifer", "xylo", ""])
def test_words_are_told_from_names(word):
    assert is_word(word) == (word in WORDS)


@pytest.mark.parametrize(
    ("word", "has", "lacks"),
    [
        ("John", LexicalClass.GIVEN | LexicalClass.USUAL_GIVEN, LexicalClass.WORD),
        ("Smith", LexicalClass.FAMILY | LexicalClass.EPONYM, LexicalClass.WORD),
        ("May", LexicalClass.GIVEN | LexicalClass.WORD, LexicalClass.EPONYM),
        ("Foley", LexicalClass.FAMILY | LexicalClass.EPONYM, LexicalClass.WORD),
        ("pain", LexicalClass.FAMILY | LexicalClass.WORD, LexicalClass.GIVEN),
        ("David", LexicalClass.USUAL_GIVEN, LexicalClass.EPONYM),
        ("Follow-up", LexicalClass.WORD, LexicalClass.NAME),
        ("Okwuosa-Adeyemi", LexicalClass.FAMILY, LexicalClass.WORD),
        ("qqqq", LexicalClass.NOTHING, LexicalClass.NAME | LexicalClass.WORD),
    ],
)
def test_lexical_classes(word, has, lacks):
    assert lexical_classes(word) & has == has
    assert not lexical_classes(word) & lacks
