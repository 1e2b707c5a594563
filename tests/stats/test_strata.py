from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.stats import (
    differences,
    name_ranks,
    permute_names,
    permuted,
    strata,
    uniform_counts,
    wilcoxon_p,
)
from clinveil.stats.stratified import SMALLEST

SEEDS = st.integers(0, 2**32 - 1)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=150), st.booleans(), SEEDS)
def test_every_patient_is_in_one_stratum_of_enough(sizes, counted, seed):
    frequency = np.random.default_rng(seed).random(len(sizes)) if counted else None
    parts = strata(np.array(sizes), frequency)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(sizes)))
    assert min(map(len, parts)) >= min(SMALLEST, len(sizes))


def test_strata_hold_like_numbers_of_diagnoses_and_like_names():
    sizes = np.repeat([1, 5], 40)
    frequency = np.tile(np.arange(40.0), 2)
    parts = strata(sizes, frequency)
    assert [set(sizes[part]) for part in parts] == [{1}, {1}, {5}, {5}]
    assert [frequency[part].max() for part in parts] == [19, 39, 19, 39]
    assert len(strata(sizes, None)) == 2


def test_few_of_a_size_join_their_neighbours():
    sizes = np.array([1] * 19 + [2] * 3 + [7] * 25 + [9])
    assert [sorted(set(sizes[part])) for part in strata(sizes, None)] == [[1, 2], [7, 9]]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=80), SEEDS)
def test_permuted_stays_within_strata(sizes, seed):
    rng = np.random.default_rng(seed)
    parts = strata(np.array(sizes), rng.random(len(sizes)), smallest=5)
    order = permuted(parts, rng)
    for part in parts:
        assert sorted(order[part]) == sorted(part)


def toy(n=4, m=5, seed=0):
    rng = np.random.default_rng(seed)
    has = np.zeros((n, m), dtype=bool)
    has[np.arange(n), np.arange(n) % m] = has[np.arange(n), (np.arange(n) + 2) % m] = True
    return rng.random((n, m)), has


def test_permutations_are_an_enumeration():
    far, has = toy()
    parts = [np.array([0, 2]), np.array([1, 3])]
    orders = [
        dict(zip([0, 2, 1, 3], (*a, *b), strict=True))
        for a, b in product(permutations([0, 2]), permutations([1, 3]))
    ]
    gaps = [differences(far[[order[i] for i in range(4)]], has) for order in orders]
    found = permute_names(far, has, parts, 4_000, np.random.default_rng(1))
    assert found.expected == pytest.approx(np.mean(gaps, axis=0))
    assert found.expected_absolute == pytest.approx(np.mean(np.abs(gaps), axis=0))
    for drawn, all_ in (
        (found.means, np.mean(gaps, axis=1)),
        (found.absolute, np.abs(gaps).mean(axis=1)),
    ):
        shares = [np.isclose(drawn, value).mean() for value in all_]
        assert shares == pytest.approx([0.25] * 4, abs=0.04)


def test_all_names_alike_permute_to_one_number():
    _, has = toy()
    found = permute_names(
        np.tile(np.arange(5.0), (4, 1)), has, [np.arange(4)], 50, np.random.default_rng(0)
    )
    assert np.ptp(found.means) < 1e-12


def test_name_ranks_are_a_plain_loop():
    far, has = toy(n=9, m=6, seed=3)
    frequency = np.arange(9.0)
    parts = [np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([6, 7, 8])]
    expected = []
    for patient in range(9):
        gaps = np.array([differences(far[[name]], has[[patient]])[0] for name in range(9)])
        odd = np.empty(9)
        for part in parts:
            odd[part] = np.abs(gaps[part] - gaps[part].mean()) / gaps[part].std()
        expected.append(np.mean(odd >= odd[patient] * (1 - 1e-9)))
    assert name_ranks(far, has, frequency, smallest=3) == pytest.approx(expected)


def test_name_ranks_without_spread_say_nothing():
    _, has = toy()
    assert name_ranks(np.ones((4, 5)), has, None).tolist() == [1, 1, 1, 1]


def test_the_smallest_rank_is_one_in_all_patients():
    rng = np.random.default_rng(0)
    far = rng.random((50, 8))
    has = np.eye(50, 8, dtype=bool) | (np.arange(8) == 7)
    far[3, has[3]] -= 100
    p = name_ranks(far, has, None)
    assert p[3] == 1 / 50 and p.min() >= 1 / 50


# What the tests claim, in small simulations: no name knows anything of its bearer, but frequency
# tracks illness.


def tracking_world(rng, n=200, m=30):
    """Distances that grow with name frequency times diagnosis prevalence; frequent names are of
    patients with more.
    """
    odds = np.exp(rng.normal(0, 1.5, m))
    sizes = 1 + rng.binomial(14, rng.beta(1, 2, n))
    keys = np.log(odds) + rng.gumbel(size=(n, m))
    has = np.argsort(np.argsort(-keys, axis=1), axis=1) < sizes[:, None]
    frequency = sizes * np.exp(rng.normal(0, 0.3, n))
    far = np.sqrt(frequency)[:, None] * np.log(odds)[None, :] + rng.normal(0, 1, (n, m))
    return far, has, frequency


def permutation_p_of(far, has, parts, rng):
    found = permute_names(far, has, parts, 99, rng)
    own = differences(far, has).mean()
    centre = found.expected.mean()
    return (np.sum(np.abs(found.means - centre) >= abs(own - centre)) + 1) / 100


def test_free_permutation_rejects_too_often_and_the_stratified_one_does_not():
    free = []
    stratified = []
    signed_rank = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        far, has, frequency = tracking_world(rng)
        free.append(permutation_p_of(far, has, [np.arange(len(far))], rng))
        stratified.append(permutation_p_of(far, has, strata(has.sum(axis=1), frequency), rng))
        signed_rank.append(wilcoxon_p(differences(far, has)))
    assert np.mean(np.array(free) <= 0.05) > 0.2
    assert np.mean(np.array(stratified) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)
    assert np.mean(np.array(signed_rank) <= 0.05) > 0.5  # Wilcoxon rejects with no link at all


@pytest.mark.slow
def test_uniform_draws_reject_too_often_and_ranks_do_not():
    shares = {"uniform": [], "ranks": []}
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        far, has, frequency = tracking_world(rng)
        shares["uniform"] += ((uniform_counts(far, has, 199, rng) + 1) / 200).tolist()
        shares["ranks"] += name_ranks(far, has, frequency).tolist()
    rejected = {test: np.mean(np.array(p) <= 0.05) for test, p in shares.items()}
    assert rejected["uniform"] > 0.15
    assert 0.02 < rejected["ranks"] < 0.08
