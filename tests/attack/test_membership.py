"""Membership inference: a planted signal is found, none is not, and the blind attacker stands for
itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.attacks.models.membership import ScoredNotes, blind_membership, membership
from clinveil.core import InputError

NAMES = "abcdefghijklmnopqrstuvwxyz"


def word(i):
    return NAMES[i // 26 % 26] + NAMES[i % 26] + "x"


def notes(rng, patients, each=2, words=40, vocabulary=200):
    """Notes of patients of whom each has favourite words of his own."""
    texts = []
    owners = []
    for patient in range(patients):
        own = rng.integers(vocabulary, size=8)
        for _ in range(each):
            drawn = np.concatenate(
                [rng.integers(vocabulary, size=words), rng.choice(own, size=words)]
            )
            texts.append(" ".join(word(i) for i in drawn))
            owners.append(f"p{patient}")
    return texts, owners


def scored(gap, n=300, reference=False, seed=0, each=3):
    """Notes whose difficulty varies widely; members' log-probability is `gap` a token better."""
    rng = np.random.default_rng(seed)
    patients = np.repeat([f"p{i}" for i in range(n)], each)
    members = np.repeat(np.arange(n) < n // 2, each)
    tokens = rng.integers(50, 200, size=members.size)
    hard = rng.normal(-4, 1, size=members.size)
    totals = tokens * (hard + gap * members + rng.normal(0, 0.05, members.size))
    return ScoredNotes(
        patients.tolist(), members, totals, tokens, tokens * hard if reference else None
    )


def areas(findings):
    return {f.attack: f for f in findings if f.measure == "attack.membership"}


def test_a_signal_below_the_difficulty_is_found_by_the_calibrated_attacker_only():
    found = areas(membership(scored(0.1, reference=True)))
    assert found["calibrated"].low > 0.9
    assert found["loss threshold"].value < 0.65


def test_a_score_below_chance_is_reported_as_its_reverse():
    for findings, name in (
        (membership(scored(-0.1, reference=True)), "calibrated"),
        (membership(scored(-50.0)), None),
    ):
        below = areas(findings)[name or "loss threshold"]
        assert below.low > 0.9 and "reverses the score" in below.warning
    assert not areas(membership(scored(0.0)))["loss threshold"].warning


def test_a_patient_is_one_unit_however_many_notes():
    found = areas(membership(scored(0.5, n=100, each=7)))["loss threshold"]
    assert found.n == 100
    assert (found.numbers["members"], found.numbers["non_members"]) == (50, 50)


def test_an_area_of_one_names_its_exact_interval():
    apart, mixed = (areas(membership(scored(gap)))["loss threshold"] for gap in (50.0, 0.0))
    assert apart.value == 1.0 and apart.low < 1.0
    assert "Clopper-Pearson" in apart.method and "bootstrap" not in apart.method
    assert mixed.method.startswith("over patients of both sides (DeLong")


def test_rates_that_cannot_be_measured_say_so():
    found = [f for f in membership(scored(0.0)) if f.measure == "attack.membership_hits"]
    assert [f.value for f in found] == [None, None]
    assert "use at least 500" in found[0].why
    assert "use at least 5000" in found[1].why


def test_rates_are_measured_with_enough_non_members():
    found = membership(scored(0.0, n=2_400, each=1))
    one_percent, tenth = (f for f in found if f.measure == "attack.membership_hits")
    assert one_percent.low < one_percent.value < 0.03
    assert one_percent.chance == 0.01
    assert tenth.value is None


def test_the_blind_attacker_is_at_chance_on_a_random_split_of_patients():
    rng = np.random.default_rng(3)
    texts, patients = notes(rng, 160, each=3)
    member_of = rng.permutation(np.arange(160) < 80)
    found = blind_membership(texts, patients, np.repeat(member_of, 3), rng)
    assert found.numbers["covers_chance"] is True
    assert found.low <= 0.5 <= found.high
    assert found.n == 160


def test_the_blind_attackers_interval_covers_chance_as_often_as_it_says():
    rng = np.random.default_rng(5)
    texts, patients = notes(rng, 40, each=2)
    splits = (np.repeat(rng.permutation(np.arange(40) < 26), 2) for _ in range(60))
    covered = [
        blind_membership(texts, patients, split, rng).numbers["covers_chance"] for split in splits
    ]
    assert sum(covered) >= 52  # 57 expected; fewer than 52 of 60 is P 0.02 at 95 %


def test_folds_by_note_would_have_recognised_the_patients():
    """The same notes, each called a patient of its own: favourite words give the answer away
    without any model.
    """
    rng = np.random.default_rng(3)
    texts, _ = notes(rng, 60, each=6)
    members = np.repeat(rng.permutation(np.arange(60) < 30), 6)
    found = blind_membership(texts, [str(i) for i in range(len(texts))], members, rng)
    assert found.low > 0.8


def test_sides_that_differ_by_themselves_are_warned_of():
    rng = np.random.default_rng(4)
    texts, patients = notes(rng, 60, each=2)
    members = np.repeat(np.arange(60) < 30, 2)
    texts = [text + " zq zq zq" * int(member) for text, member in zip(texts, members, strict=True)]
    blind = blind_membership(texts, patients, members, rng)
    assert blind.value > 0.9
    rows = ScoredNotes(patients, members, rng.normal(size=120), np.ones(120, dtype=np.int64))
    found = membership(rows, blind=blind, labels=("model",))[0]
    assert found.warning
    assert (found.control, found.control_kind, found.unit) == (blind.value, "negative", "patients")
    assert found.labels == ("model",)


def test_too_few_patients_for_the_blind_attacker():
    with pytest.raises(InputError, match="5 patients"):
        blind_membership(["a b"] * 8, list("abcdefgh"), np.arange(8) < 4, np.random.default_rng(0))


def rows(**changes):
    same = {"patients": ["a", "b"], "members": np.array([True, False]), "totals": np.zeros(2)}
    return {**same, "tokens": np.ones(2, dtype=np.int64), **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patients": ["a"]}, "differ in number"),
        ({"reference": np.zeros(3)}, "differ in number"),
        ({"tokens": np.array([1, 0])}, "1 notes have no scored token"),
        ({"patients": ["a", "a"]}, "split by patient"),
    ],
)
def test_rows_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(InputError if "split" in message else ValueError, match=message):
        ScoredNotes(**rows(**changes))
