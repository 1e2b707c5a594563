"""Verdicts: outcomes, the worst risk of a question, and the sentence for each audience."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invented_release import check, gate, record, share

from clinveil.report import CHECKS, Limits, Verdict, overall, tally
from clinveil.report.page_one import first_page
from clinveil.report.risks import criteria
from clinveil.report.verdict import OUTCOMES, questions

RISKS = tuple(risk for question in questions() for risk in question.risks)
NAMES = tuple(question.name for question in questions())


def verdict_of(audience="agreement", **outcomes):
    """A verdict with one gate per risk; risks without a given outcome are held."""
    strict = audience == "public"
    gates = [replace(gate(risk, outcomes.get(risk, "held")), strict=strict) for risk in RISKS]
    return Verdict(audience, (*gates, check("every note accounted for")))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_gate_has_the_outcome_that_it_is_made_with(outcome):
    assert gate("names", outcome).outcome == outcome


@pytest.mark.parametrize(
    ("outcome", "agreement", "public"),
    [
        ("held", True, True),
        ("not limited", True, True),
        ("does not apply", True, True),
        ("not decided", True, False),
        ("not held", False, False),
    ],
)
def test_what_is_not_decided_may_leave_under_an_agreement_only(outcome, agreement, public):
    made = gate("names", outcome)
    assert made.passed is agreement
    assert replace(made, strict=True).passed is public


def test_what_is_not_held_stays_so_where_it_is_also_not_decided():
    assert replace(gate("names", "not held"), undecided=True).outcome == "not held"


@pytest.mark.parametrize("worse", range(len(OUTCOMES)))
def test_the_worst_risk_of_a_question_is_in_its_row(worse):
    ranked = ["not held", "not decided", "held", "not limited", "does not apply"]
    better = [gate("names", outcome) for outcome in ranked[worse + 1 :]]
    worst = gate("planted_names", ranked[worse])
    (answer,) = (
        answer
        for answer in Verdict("agreement", (*better, worst)).answers
        if answer.question.name == "names disclosed"
    )
    assert answer.worst == worst
    assert answer.outcome == ranked[worse]


def test_of_held_risks_the_one_nearest_to_its_limit_is_shown():
    far = replace(gate("names", "held"), value=0.01)
    near = replace(gate("planted_names", "held"), value=0.04)
    verdict = Verdict("agreement", (far, near))
    assert verdict.on(("names", "planted_names")) == (near, far)


def test_the_limit_is_used_from_chance_on():
    """.45 of a chance of .44 is nearer to chance than .03 of a chance of 0."""
    at_chance = share("names", "recipient", 45, 100, 0.44, gated=True)
    above = share("planted names", "recipient", 3, 100, 0.0, gated=True)
    low = replace(gate("names", "held"), value=0.45, limit=0.49, finding=at_chance)
    high = replace(gate("planted_names", "held"), value=0.03, limit=0.05, finding=above)
    assert Verdict("agreement", (low, high)).on(("names", "planted_names")) == (high, low)


def test_a_p_value_is_near_to_its_limit_where_it_is_small():
    test = replace(gate("own_identifiers", "held"), value=0.06, unit="P value (permuted)")
    count = replace(gate("residues", "held"), value=4, limit=9, unit="notes")
    risks = ("own_identifiers", "residues")
    assert Verdict("agreement", (count, test)).on(risks) == (test, count)
    assert Verdict("agreement", (count, replace(test, value=0.9))).on(risks)[0] == count


def test_a_breach_of_a_limit_of_zero_is_the_worst():
    share_of = replace(gate("names", "not held"), value=0.9)
    count = replace(gate("known_names", "not held"), value=1, limit=0)
    assert Verdict("agreement", (share_of, count)).on(("names", "known_names"))[0] == count


def test_without_a_limit_the_largest_success_is_shown():
    small = replace(gate("other_notes", "not limited"), value=0.2)
    large = replace(gate("public_texts", "not limited"), value=0.7)
    assert Verdict("agreement", (small, large)).unlimited == (large, small)


MAY = "May leave to recipients under an agreement"
MUST_NOT = "Must not leave to recipients under an agreement"


@pytest.mark.parametrize(
    ("agreement", "public", "sentence"),
    [
        ({}, {}, f"{MAY}: every limit is held. The limits for the public are held too."),
        (
            {"words": "not limited"},
            {"words": "not held"},
            f"{MAY}: every limit is held. Not for the public: words recovered.",
        ),
        (
            {"identifiers_missed": "not decided"},
            {"identifiers_missed": "not decided"},
            f"{MAY}; not decided: identifiers missed. Not for the public; not decided: identifiers"
            " missed.",
        ),
        ({"residues": "not held"}, {}, f"{MUST_NOT}: identifiers left."),
        (
            {"names": "not held", "use": "not held", "words": "not decided"},
            {"names": "not held"},
            f"{MUST_NOT}: names disclosed, use.",
        ),
    ],
)
def test_the_sentence_by_hand(agreement, public, sentence):
    both = (verdict_of("agreement", **agreement), verdict_of("public", **public))
    assert overall(both) == sentence


def test_the_sentence_for_the_public_is_about_the_public_only():
    both = (verdict_of("public", words="not held"), verdict_of("agreement"))
    assert overall(both) == "Must not leave to the public: words recovered."
    both = (verdict_of("public", words="not held", residues="not decided"),)
    assert overall(both) == (
        "Must not leave to the public: words recovered; not decided: identifiers left."
    )
    assert overall((verdict_of("public"),)) == "May leave to the public: every limit is held."


def test_a_check_that_is_not_held_refuses_and_is_named():
    broken = Verdict("agreement", (gate("names", "held"), check("no test seed", within=False)))
    assert not broken.may_leave
    assert broken.sentence == f"{MUST_NOT}: no test seed."


def test_nothing_leaves_that_was_not_checked():
    assert Verdict("agreement", ()).sentence == "Must not leave: nothing was checked."
    assert not Verdict("public", ()).may_leave


@given(
    outcomes=st.fixed_dictionaries({risk: st.sampled_from(OUTCOMES) for risk in RISKS}),
    for_public=st.fixed_dictionaries({risk: st.sampled_from(OUTCOMES) for risk in RISKS}),
    first=st.sampled_from(["agreement", "public"]),
)
def test_the_sentence_names_exactly_the_rows_that_refuse(outcomes, for_public, first):
    both = {
        "agreement": verdict_of("agreement", **outcomes),
        "public": verdict_of("public", **for_public),
    }
    second = "public" if first == "agreement" else "agreement"
    page = first_page(replace(record(), verdicts=(both[first], both[second])))
    rows = {row.question.name: row.outcome for row in page.rows}
    refusing = {"not held"} if first == "agreement" else {"not held", "not decided"}
    expected = [name for name in NAMES if rows.get(name) in refusing]
    if expected:
        said, _, undecided = page.verdict.rstrip(".").partition("; not decided: ")
        broken = said.partition(": ")[2]
        named = [name for part in (broken, undecided) if part for name in part.split(", ")]
        assert named == sorted(expected, key=lambda name: rows[name] == "not decided")
    assert page.verdict.startswith("Must not leave") is bool(expected)
    assert page.headline.startswith(page.verdict)
    to = "to recipients under an agreement" if first == "agreement" else "to the public"
    assert to in page.verdict
    assert not ("May leave" in page.headline and "Must not leave" in page.headline)
    assert (page.state == "refused") is bool(expected)


@pytest.mark.parametrize("pair", list(itertools.product(OUTCOMES, repeat=2)), ids=" and ".join)
def test_a_question_of_two_risks_refuses_if_one_does(pair):
    one, other = pair
    verdict = verdict_of(residues=one, own_identifiers=other)
    assert ("identifiers left" in verdict.refusing) is ("not held" in pair)
    row = next(a for a in verdict.answers if a.question.name == "identifiers left")
    assert (row.outcome == "not held") is ("not held" in pair)


def test_outcomes_are_counted_once():
    outcomes = ["held", "held", "not limited", "does not apply", "not decided", "not held"]
    assert tally(outcomes) == "1 not held, 1 not decided, 2 held, 1 not limited"
    assert tally([]) == "no limit judged"


def test_each_risk_belongs_to_exactly_one_question():
    assert sorted(RISKS) == sorted(Limits.read().rules("agreement"))
    assert len(RISKS) == len(set(RISKS)) and len(NAMES) == len(set(NAMES)) == 10
    assert CHECKS not in RISKS


def test_the_criteria_show_the_worst_of_their_risks_as_page_one_does():
    outcomes = {"ten_words": "not held", "words": "not decided", "public_texts": "not limited"}
    held = replace(record(), verdicts=(verdict_of(**outcomes),))
    worst = {item.name: item.gates[0].outcome for item in criteria(held)}
    assert worst == {
        "Singling out": "not held",
        "Linkability": "held",
        "Inference": "not decided",
    }
