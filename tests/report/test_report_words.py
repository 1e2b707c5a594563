from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core import Finding
from clinveil.report import share
from clinveil.report.measures import UNKNOWN, catalogue, find
from clinveil.report.numerals import interval, number, small, text

S = "\u202f"
SHARES = st.floats(min_value=0, max_value=1)


def finding(
    value,
    low=None,
    high=None,
    chance=None,
    better="lower",
    n=100,
    measure="attack.x",
    control=None,
):
    return Finding(measure, value, n, better, low, high, chance, control)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, f"0{S}%"),
        (0.0, f"0{S}%"),
        (1.0, f"100{S}%"),
        (0.5, f"50.0{S}%"),
        (0.0912, f"9.1{S}%"),
        (0.0042, f"0.42{S}%"),
        (0.00021, f"0.021{S}%"),
        (1e-9, f"<0.01{S}%"),
        (0.99999, f">99.99{S}%"),
        (0.9949, f"99.49{S}%"),
        (-0.031, f"−3.1{S}%"),
    ],
)
def test_shares_by_hand(value, words):
    assert share(value) == words


@given(SHARES)
def test_a_share_never_claims_an_end_that_it_does_not_reach(value):
    said = share(value)
    assert (said == f"100{S}%") == (value == 1)
    assert (said == f"0{S}%") == (value == 0)


@given(SHARES)
def test_a_share_is_rounded_by_less_than_its_last_digit(value):
    said = share(value)
    if said[0] not in "<>":
        shown = said.removesuffix(f"{S}%")
        decimals = len(shown.partition(".")[2])
        assert math.isclose(float(shown), 100 * value, abs_tol=0.51 * 10**-decimals, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (1234567, "count", "1,234,567"),
        (3.4, "count", "3.4"),
        (3.0, "count", "3"),
        (0.6549, "score", "0.655"),
        (-0.087, "difference", "−0.087"),
        (0.087, "difference", "+0.087"),
        (11.62, "number", "11.6"),
        (0.25, "number", "0.25"),
        (7, "share", f"700.0{S}%"),
        (4.0, "length", "4"),
        (1.804, "length", "1.80"),
    ],
)
def test_other_numbers_by_hand(value, kind, words):
    assert text(value, kind) == words


def test_nothing_is_a_dash_and_small_is_small():
    assert number(None, "share").text == "–" and number(None, "share").value is None
    assert small().text == "<11" and small().value is None
    assert interval(0.1, None, "share") is None and interval(None, 0.1, "share") is None
    assert [end.value for end in interval(0.1, 0.2, "share")] == [0.1, 0.2]
    assert interval(0.1, 0.1, "share") is None


def test_the_longest_fitting_entry_is_taken():
    assert find("attack.inversion")[0] == "attack.inversion"
    assert find("attack.inversion_rare")[0] == "attack.inversion"
    assert find("attack.own_name")[0] == "attack.own_name"
    assert find("attack.own_phone")[0] == "attack.own"
    assert find("attack.something_new")[0] == "attack"
    assert find("attackers.x") == ("attackers.x", UNKNOWN)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_entry_has_a_title_a_question_and_claims_nothing(name):
    entry = catalogue()[name]
    assert entry.title[0].isupper() and entry.short[0].isupper() and "?" in entry.asked
    assert not entry.means or entry.means.endswith((".", "?"))
    assert not re.search(
        r"anonym|compliant|\bsafe ", f"{entry.title} {entry.asked} {entry.means}".lower()
    )
