"""Names: spelling, frequencies as in the census, other cultures, words and eponyms, other
scripts.
"""

from __future__ import annotations

from collections import Counter

import pytest
from scipy.stats import spearmanr

from clinveil.corpus import census, spelt
from clinveil.corpus.demo.names import Name, family_name, given_name, person_name
from clinveil.corpus.demo.persons import uniforms


@pytest.mark.parametrize(
    ("census_form", "spelling"),
    [("SMITH", "Smith"), ("MCDONALD", "McDonald"), ("OBRIEN", "O'Brien"), ("DANGELO", "D'Angelo"),
        ("MCGEE", "McGee"),
     ("OLSON", "Olson"), ("DAVIS", "Davis"), ("MACK", "Mack")],
)  # fmt: skip
def test_census_names_are_spelt_as_people_spell_them(census_form: str, spelling: str):
    assert spelt(census_form) == spelling


def test_family_names_follow_the_census():
    draw = uniforms(7)
    counts = Counter(family_name(draw) for _ in range(30_000))
    top = census("last").names[:150]
    assert spearmanr([counts[name] for name in top], range(len(top))).statistic < -0.7
    assert counts["Smith"] == pytest.approx(0.0101 / 0.94 * 30_000, rel=0.25)


@pytest.fixture(scope="module")
def people() -> list[Name]:
    draw = uniforms(9)
    return [person_name("FM"[number % 2], draw) for number in range(12_000)]


def test_names_of_other_cultures_and_spellings_occur(people: list[Name]):
    draw = uniforms(2)
    parts = {part for name in people for part in (name.given, name.family)}
    parts |= {given_name("F", draw) for _ in range(20_000)} | {
        family_name(draw) for _ in range(10_000)
    }
    assert {"José", "Zoë", "Nuñez"} <= parts
    assert any("-" in name.family for name in people)
    assert any("'" in name.family for name in people)
    assert sum(not name.full.isascii() for name in people) > 200


def test_names_that_are_words_or_eponyms_occur(people: list[Name]):
    given = {name.given for name in people}
    family = {name.family for name in people}
    assert {"Will", "May", "Rose", "Grace"} <= given
    assert {"Parkinson", "Foley", "Young", "Graves"} <= family


def test_some_sign_in_another_script(people: list[Name]):
    written = [name.native for name in people if name.native != name.full]
    assert 50 < len(written) < 500
    assert any("\u0400" <= c <= "\u04ff" for name in written for c in name)
    assert any("\u4e00" <= c <= "\u9fff" for name in written for c in name)
