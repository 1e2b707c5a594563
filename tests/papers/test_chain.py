"""Paper B's complete chain: a missed name, reconstructed, and linked to a true diagnosis."""

from __future__ import annotations

import numpy as np
import pytest
from papers.jmir_2020.chain import ALL, MISSED, NAMED, RIGHT, Chain, NameClaims, reconstruct

from association_cases import NAMES, PLACES, four, one, vectors, world
from clinveil import Patient
from clinveil.stats import clopper_pearson

# Seven diagnoses, so that five guesses do not name them all.
SEVEN = {**PLACES, "rash": (20, 0), "ulcer": (20, 20), "croup": (0, 20)}
CODES = {"1": "flu", "2": "gout", "3": "acne", "4": "gas", "5": "rash", "6": "ulcer", "7": "croup"}
PAIRS = [tuple(name.split()) for name in NAMES]


def run(reconstructed, *, people=None, everyone=40, pairs=28, codes=CODES):
    plan = Chain(everyone, ("cityblock",), targets=list(CODES.values()))
    claims = NameClaims(reconstructed, pairs)
    people = four() if people is None else people
    return plan.findings(vectors(SEVEN), people, codes, np.random.default_rng(0), claims)


def test_the_four_by_hand():
    """Two names put together and one false one; each bearer's own diagnosis is the nearest."""
    findings = run([PAIRS[0], ("bob", "cole"), PAIRS[3]])
    assert one(findings, "attack.chain", MISSED).value == 4 / 40
    named = one(findings, "attack.chain", NAMED)
    assert (named.value, named.count, named.numbers["names_claimed"]) == (0.5, 2, 3)
    near = one(findings, "attack.chain", RIGHT, "nearest, A@1")
    assert (near.value, near.n, near.chance) == (
        1.0,
        2,
        0.5,
    )  # of the two by two guesses, two are right
    whole = one(findings, "attack.chain", ALL, "nearest, A@1")
    assert (whole.value, whole.n, whole.chance) == (2 / 40, 40, 0.5 * 2 / 40)
    assert (whole.low, whole.high) == clopper_pearson(2, 40)
    assert whole.numbers["claims"] == 3 and whole.numbers["claims_right"] == pytest.approx(2 / 3)
    assert (
        one(findings, "attack.chain", ALL, "farthest, A@5").value == 0
    )  # own ones are the nearest


def test_the_chance_of_a_pair_is_that_of_a_draw():
    """Of 28 pairs 3 are drawn, and each patient has one pair: 3/28; a name of three words has
    three.
    """
    assert one(
        run([PAIRS[0], ("bob", "cole"), PAIRS[3]]), "attack.chain", NAMED
    ).chance == pytest.approx(3 / 28)
    people = [Patient("a", ("Ann", "Arne", "Bob"), ("1",))]
    expected = 1 - (25 * 24 * 23) / (28 * 27 * 26)
    named = one(run(PAIRS[:3], people=people), "attack.chain", NAMED)
    assert named.chance == pytest.approx(expected)
    assert one(run(PAIRS[:3], pairs=None), "attack.chain", NAMED).chance is None


def test_nobody_reconstructed_is_nobody_named():
    findings = run([("ann", "berg")])
    assert one(findings, "attack.chain", NAMED).value == 0
    assert (
        one(findings, "attack.chain", RIGHT, "nearest, A@1").why == "no patient reached this step"
    )
    whole = one(findings, "attack.chain", ALL, "nearest, A@1")
    assert (whole.value, whole.low, whole.n) == (0, 0, 40) and whole.high == clopper_pearson(
        0, 40
    ).high


def test_too_few_targets_are_a_reason():
    null = one(run(PAIRS, codes=dict(list(CODES.items())[:5])), "attack.chain")
    assert null.value is None and "5 targets" in null.why


def planted():
    return world(np.random.default_rng(3), n=60, m=20, link=3.0, prevalence=0.1)


def test_names_are_put_together_and_the_planted_chain_is_found():
    """First and last name of a patient lie together, and near their diagnoses."""
    made = planted()
    claims = reconstruct(made.vectors, made.patients)
    assert len(claims.names) == 60 and claims.pairs == 120 * 119 // 2
    plan = Chain(600, ("cosine",), targets=list(made.codes.values()))
    rng = np.random.default_rng(0)
    findings = plan.findings(made.vectors, made.patients, made.codes, rng)
    assert one(findings, "attack.chain", NAMED).value > 0.5
    whole = one(findings, "attack.chain", ALL, "nearest, A@1")
    assert whole.value > 0.04 and whole.low > whole.chance
    assert one(findings, "attack.chain", ALL, "farthest, A@1").value < 0.005


def test_the_chain_on_others_diagnoses_falls_to_chance():
    made = planted()
    order = np.random.default_rng(1).permutation(60)
    people = [
        Patient(p.patient_id, p.name, made.patients[o].codes)
        for p, o in zip(made.patients, order, strict=True)
    ]
    plan = Chain(60, ("cosine",), k=40, targets=list(made.codes.values()))
    findings = plan.findings(made.vectors, people, made.codes, np.random.default_rng(0))
    for label in ("nearest, A@1", "nearest, A@5"):
        found = one(findings, "attack.chain", RIGHT, label)
        assert found.low <= found.chance <= found.high
