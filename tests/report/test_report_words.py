from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.core.finding import Finding
from clinveil.core.words import MeasureText
from clinveil.report.cells import direction
from clinveil.report.measures import UNKNOWN, catalogue, find
from clinveil.report.numerals import interval, number, share, small, text
from clinveil.report.summarise import sentences

S = "\u202f"
SHARES = st.floats(min_value=0, max_value=1)
PLAIN = MeasureText("t", "s", "a", "m", "n", good="GOOD", bad="BAD", kind="share", chance="guessing")


def finding(value, low=None, high=None, chance=None, better="lower", n=100, measure="attack.x", control=None, **detail):
    fields = {k: detail.pop(k) for k in ("control_kind", "control_is", "chance_is") if k in detail}
    return Finding(measure, value, n, better, low, high, chance, control, detail=detail, **fields)


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
    assert find("attack.inversion_repeated")[0] == "attack.inversion_repeated"
    assert find("attack.own_name")[0] == "attack.own_name"
    assert find("attack.own_phone")[0] == "attack.own"
    assert find("attack.something_new")[0] == "attack"
    assert find("attackers.x") == ("attackers.x", UNKNOWN)


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_every_entry_of_the_catalogue_says_all_of_its_lines(name):
    entry = catalogue()[name]
    for words in (entry.title, entry.short, entry.asked, entry.means, entry.next, entry.good, entry.bad):
        assert words.strip() and words[0].isupper()
    assert entry.asked.endswith("?")
    assert all(line.endswith((".", "?")) for line in (entry.means, entry.next, entry.good, entry.bad))


@pytest.mark.parametrize("word", ["anonym", "compliant", "safe "])
def test_no_entry_claims_what_nobody_can_claim(word):
    for entry in (*catalogue().values(), UNKNOWN):
        said = " ".join([entry.title, entry.asked, entry.means, entry.next, entry.good, entry.bad])
        assert word not in said.lower()


@pytest.mark.parametrize(
    ("low", "high", "better", "begins"),
    [
        (0.2, 0.4, "lower", "BAD"),
        (0.01, 0.05, "lower", "GOOD"),
        (0.05, 0.4, "lower", "No difference from chance"),
        (0.2, 0.4, "higher", "GOOD"),
        (0.01, 0.05, "higher", "BAD"),
        (0.05, 0.4, "higher", "No difference from chance"),
    ],
)
def test_the_interval_decides_what_is_said_about_chance(low, high, better, begins):
    said = sentences(finding((low + high) / 2, low, high, chance=0.1, better=better), PLAIN, "share")
    assert said[0].startswith(begins)
    assert "guessing" in said[0]


def test_zero_of_n_shows_only_a_bound():
    # The classical rule: none in 32 bounds the rate by 1 - 0.05^(1/32) = 8.9 %, none in 299 by 1.0 %.
    said = " ".join(sentences(finding(0.0, chance=0.05, n=32), PLAIN, "share"))
    assert f"0 of 32 only shows that the rate is below 8.9{S}%" in said
    said = " ".join(sentences(finding(0.0, chance=0.05, n=299), PLAIN, "share"))
    assert f"below 1.00{S}%" in said


def test_zero_with_an_interval_is_bounded_by_it():
    # Of 215,307 runs in few notes the interval over patients knows more than the count of runs.
    said = " ".join(sentences(finding(0.0, 0.0, 0.0074, chance=0.0, n=215307), PLAIN, "share"))
    assert f"None was found; up to 0.74{S}% cannot be ruled out." in said
    assert "215,307" not in said


def test_what_stands_for_chance_is_the_findings_own_word():
    own = Finding("attack.x", 0.2, 9, "lower", chance=0.1, chance_is="shuffled words")
    assert "for shuffled words" in sentences(own, PLAIN, "share")[0]
    assert "for guessing" in sentences(finding(0.2, chance=0.1), PLAIN, "share")[0]


def test_zero_of_all_is_zero():
    everything = MeasureText("t", "s", "a", "m", "n", good="GOOD", bad="BAD", kind="share", sampled=False)
    assert sentences(finding(0.0, 0.0, 0.1, chance=0.0, n=32), everything, "share") == ["GOOD"]
    assert sentences(finding(0.2), everything, "share") == ["BAD"]


def test_a_failed_attack_without_power_shows_nothing():
    said = " ".join(sentences(finding(0.1, 0.05, 0.2, 0.1, control=0.1, control_kind="positive"), PLAIN, "share"))
    assert "had no power" in said
    said = " ".join(sentences(finding(0.1, 0.05, 0.2, 0.1, control=0.9, control_kind="positive"), PLAIN, "share"))
    assert f"90.0{S}%, so the attack works where there is something to find" in said
    for kind in ("negative", None):
        assert (
            "control" not in " ".join(sentences(finding(0.1, control=0.9, control_kind=kind), PLAIN, "share")).lower()
        )


def test_a_null_number_says_why():
    assert sentences(finding(None, why="too few notes"), PLAIN, "share") == [
        "It was not measured: too few notes. Nothing is shown either way."
    ]


@pytest.mark.parametrize(
    ("value", "low", "high", "better", "word"),
    [
        (0.1, 0.05, 0.2, "lower", "loses"),
        (-0.1, -0.2, -0.05, "lower", "gains"),
        (-0.1, -0.2, -0.05, "higher", "loses"),
        (0.1, 0.05, 0.2, "higher", "gains"),
        (0.1, -0.05, 0.2, "lower", "no difference is shown"),
        (0.1, None, None, "lower", "more than noise"),
    ],
)
def test_differences_are_held_against_zero(value, low, high, better, word):
    assert word in sentences(finding(value, low, high, better=better), PLAIN, "difference")[0]


def test_what_counting_adds_is_said():
    said = " ".join(sentences(finding(0.2, chance=0.1, one_draw=0.17), PLAIN, "share"))
    assert f"Without counting it is 17.0{S}%." in said
    assert "counting" not in " ".join(sentences(finding(0.2, chance=0.1), PLAIN, "share"))


def test_directions():
    assert direction(finding(1.0)) == "lower is safer"
    assert direction(finding(1.0, better="higher")) == "higher is safer"
    assert direction(finding(1.0, better="higher", measure="utility.x")) == "higher is more useful"
    assert "no direction" in direction(finding(1.0, better=None))
