"""Picking name tokens out of a vocabulary, and real names among surrogates."""

from __future__ import annotations

import numpy as np
import pytest

from clinveil.attacks.vectors._name_pairs import NameTokens, rank_names
from clinveil.attacks.vectors._name_scores import leaked_names
from clinveil.attacks.vectors.names import listed_names, near_names, pick_names, score_picked
from clinveil.vectors.table import Vectors


def world(seed=0):
    """Names in one corner, words in the other: six listed names, two that nobody listed, and twenty words."""
    draw = np.random.default_rng(seed)
    names = ["mary", "james", "smith", "johnson", "patricia", "nguyen", "zzyqx", "qqwert"]
    words = [f"{w}ing" for w in ("walk", "talk", "look", "cook", "jump", "push", "pull", "load", "turn", "burn")]
    words += ["pain", "cough", "fever", "tablet", "oedema", "the", "and", "with", "daily", "chest"]
    matrix = draw.normal(scale=0.1, size=(28, 12)).astype(np.float32)
    matrix[:8, 0] += 1
    matrix[8:, 1] += 1
    return Vectors([*names, *words], matrix)


def test_lists_know_names_and_leave_words_alone():
    found = listed_names(["mary", "smith", "pain", "the", "j", "zzyqx", "parkinson"])
    assert found.tolist() == [True, True, False, False, False, False, True]


def test_nearness_finds_names_that_nobody_listed():
    vectors = world()
    found = pick_names(vectors)
    assert found.listed.sum() == 6
    assert found.words == set(vectors.words[:8])


def test_recall_and_precision_by_hand():
    """True tokens: mary, smith, zzyqx (and one without a vector). The lists pick 6 with 2 true; nearness 8 with 3."""
    vectors = world()
    names = NameTokens([("Mary", "Zzyqx"), ("Smith", "Unheard")])
    findings = score_picked(vectors, pick_names(vectors), names, np.random.default_rng(0))
    found = {f.measure.removeprefix("attack.find_names_"): f for f in findings}
    assert {name: f.value for name, f in found.items()} == pytest.approx(
        {"recall_listed": 2 / 3, "precision_listed": 2 / 6, "recall_near": 1.0, "precision_near": 3 / 8}
    )
    assert {name: f.chance for name, f in found.items()} == pytest.approx(
        {"recall_listed": 6 / 28, "precision_listed": 3 / 28, "recall_near": 8 / 28, "precision_near": 3 / 28}
    )
    assert all(0 <= f.control <= 1 and f.low <= f.value <= f.high for f in findings)


def test_a_vocabulary_without_names_is_an_answer_too():
    vectors = Vectors(["pain", "cough"], np.eye(2, dtype=np.float32))
    found = pick_names(vectors)
    assert not found.words
    findings = score_picked(vectors, found, NameTokens([("Mary", "Smith")]), np.random.default_rng(0))
    assert all(f.value is None and f.detail["why"] for f in findings)
    assert near_names(vectors, np.array([True, False])).tolist() == [True, True]  # its only neighbour is a name


def pairs_of(prefix, n):
    return [(f"{prefix}f{'abcdefghijklmnopqrst'[i]}", f"{prefix}l{'abcdefghijklmnopqrst'[i]}") for i in range(n)]


def setting(real_noise, surrogate_noise, seed=0):
    """Five real and fifteen surrogate names; the two tokens of each lie together, but for noise."""
    draw, places = np.random.default_rng(seed), {}
    real, surrogates = pairs_of("r", 5), pairs_of("s", 15)
    for names, noise in ((real, real_noise), (surrogates, surrogate_noise)):
        for first, last in names:
            centre = draw.normal(size=30)
            places[first], places[last] = centre, centre + noise * draw.normal(size=30)
    vectors = Vectors(list(places), np.array(list(places.values()), dtype=np.float32))
    names = NameTokens(real, also=surrogates)
    assert names.forms == names.others.forms == NameTokens(surrogates, also=real).forms
    return names, rank_names(vectors, names, "cosine", 780)


def test_real_names_that_behave_like_surrogates_do_not_stand_out():
    finding = leaked_names(*setting(0.1, 0.1), 20, np.random.default_rng(0))
    assert (finding.value, finding.chance, finding.n) == (0.25, 0.25, 20)
    assert finding.control == pytest.approx(0.25)
    assert finding.p == 1


def test_real_names_that_lie_nearer_stand_out():
    finding = leaked_names(*setting(0.01, 5.0), 5, np.random.default_rng(0))
    assert (finding.value, finding.count) == (1.0, 5)
    assert finding.low > finding.chance == 0.25
    # 5 right of 5: one of C(20, 5) ways on the upper side; on the lower side even 0 of 5 is nearer to the mean.
    assert finding.p == pytest.approx(1 / 15504, abs=3e-4)


def test_no_name_in_the_list_is_said():
    real, ranking = setting(0.1, 0.1)
    far = type(ranking)(ranking.codes[::-1], ranking.distances[::-1], "cosine", ranking.ranked)
    finding = leaked_names(real, far, 3, np.random.default_rng(0))
    assert finding.value is None
    assert "no full name" in finding.detail["why"]
