from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.stats.group_draws import Matching, inclusion_steps, matched_p, uniform_counts

DRAWS = 40_000


def masks(*rows, m=7):
    has = np.zeros((len(rows), m), dtype=bool)
    for row, own in enumerate(rows):
        has[row, list(own)] = True
    return has


def exact_uniform(far, has):
    """The share of all groups of the own size whose |in - out| is at least the own one's."""
    m, size = len(far), int(has.sum())

    def gap(group):
        return far[list(group)].mean() - np.delete(far, list(group)).mean()

    own = abs(gap(np.flatnonzero(has)))
    return np.mean([abs(gap(group)) >= own - 1e-12 for group in combinations(range(m), size)])


def exact_matched(far, has, matching):
    """The same over groups with as many of each class, weighed by the product of their odds."""
    own = set(np.flatnonzero(has).tolist())
    wanted = [len(own & set(codes.tolist())) for codes in matching.classes]
    sums, weights = [], []
    for group in combinations(range(len(far)), len(own)):
        if [len(set(group) & set(codes.tolist())) for codes in matching.classes] == wanted:
            sums.append(far[list(group)].sum())
            weights.append(matching.odds[list(group)].prod())
    sums, weights = np.array(sums), np.array(weights) / sum(weights)
    centre = (sums * weights).sum()
    return weights[np.abs(sums - centre) >= abs(far[has].sum() - centre) - 1e-12].sum()


def within(share, exact, draws=DRAWS):
    assert share == pytest.approx(exact, abs=4.5 * np.sqrt(max(exact * (1 - exact), 0) / draws) + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_uniform_draws_are_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    far, has = rng.random((4, 7)), masks([0], [1, 4], [0, 2, 5], [0, 1, 2, 3, 6])
    counts = uniform_counts(far, has, DRAWS, rng)
    for row in range(4):
        within(counts[row] / DRAWS, exact_uniform(far[row], has[row]))


def test_four_diagnoses_by_hand():
    far, has = np.array([[1.0, 2.0, 3.0, 10.0]]), masks([3], m=4)
    # Of the four groups of one, only the own one deviates by as much.
    within(uniform_counts(far, has, DRAWS, np.random.default_rng(0))[0] / DRAWS, 0.25)
    # Drawn with odds 1 2 1 2 the mean is 28 / 6, and again only the own one lies as far off: 2 in 6.
    matching = Matching(np.arange(4), np.array([0, 4]), np.array([1.0, 2.0, 1.0, 2.0]))
    p = matched_p(far, has, matching, DRAWS, np.random.default_rng(0), enough=DRAWS + 1)
    within(p[0], 1 / 3)


@pytest.mark.parametrize("seed", range(4))
def test_matched_draws_are_a_weighted_enumeration(seed):
    rng = np.random.default_rng(seed)
    far, has = rng.random((4, 7)), masks([0], [1, 4], [0, 2, 5], [0, 1, 2, 3, 6])
    matching = Matching.of(rng.integers(1, 9, 7), np.array([1, 1, 2, 1, 2, 1, 1]), 10)
    p = matched_p(far, has, matching, DRAWS, rng, enough=DRAWS + 1)
    for row in range(4):
        within(p[row], exact_matched(far[row], has[row], matching))


def test_a_draw_that_ended_early_tells_the_same():
    rng = np.random.default_rng(5)
    far, has = rng.random((1, 7)), masks([0, 2, 5])
    matching = Matching.of(np.arange(1, 8), np.ones(7, dtype=int), 10)
    exact = exact_matched(far[0], has[0], matching)
    early = [matched_p(far, has, matching, DRAWS, rng, enough=100)[0] for _ in range(200)]
    assert np.mean(early) == pytest.approx(exact, rel=0.05)


def test_a_heavy_diagnosis_is_drawn_item_by_item_and_right():
    """Where one of the odds is huge, repeats would be drawn nearly always."""
    rng = np.random.default_rng(6)
    far, has = rng.random((2, 7)), masks([0, 3], [1, 2, 3, 4])
    matching = Matching.of(np.array([99, 1, 1, 1, 2, 1, 1]), np.ones(7, dtype=int), 100)
    p = matched_p(far, has, matching, DRAWS, rng, enough=DRAWS + 1)
    for row in range(2):
        within(p[row], exact_matched(far[row], has[row], matching))


def test_no_freedom_is_no_evidence():
    far = np.array([[5.0, 1.0, 2.0, 3.0]])
    lengths = np.array([3, 1, 1, 1])
    matching = Matching.of(np.array([4, 2, 2, 2]), lengths, 9)
    assert matched_p(far, masks([0], m=4), matching, 500, np.random.default_rng(0))[0] == 1


def test_ties_count_as_exceeding():
    far, has = np.full((1, 6), 0.1), masks([1, 4], m=6)
    assert uniform_counts(far, has, 300, np.random.default_rng(0))[0] == 300


def test_sums_in_another_order_are_equal():
    """The own group drawn again is a tie, whatever order the sum is made in."""
    far, has = np.array([[0.1, 0.2, 0.3, 0.7, 1e-9, 5.0]]), masks([0, 1, 2, 3, 4], m=6)
    counts = uniform_counts(far, has, 6_000, np.random.default_rng(1))
    within(counts[0] / 6_000, 1 / 6, 6_000)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_nothing_depends_on_threads(seed, threads):
    rng = np.random.default_rng(seed)
    far, has = rng.random((40, 9)), rng.random((40, 9)) < 0.4
    has[:, 0], has[:, 1] = True, False
    matching = Matching.of(has.sum(axis=0), np.arange(9) % 2, 40)
    one = uniform_counts(far, has, 50, np.random.default_rng(seed), threads=1)
    assert (uniform_counts(far, has, 50, np.random.default_rng(seed), threads=threads) == one).all()
    p = matched_p(far, has, matching, 50, np.random.default_rng(seed), threads=1)
    assert (matched_p(far, has, matching, 50, np.random.default_rng(seed), threads=threads) == p).all()


def test_another_seed_draws_otherwise():
    rng = np.random.default_rng(0)
    far, has = rng.random((20, 12)), masks(*[[0, 3, 5]] * 20, m=12)
    one, two = (uniform_counts(far, has, 1_000, np.random.default_rng(seed)) for seed in (1, 2))
    assert (one != two).any()


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=7), st.integers(0, 3))
def test_steps_give_each_set_its_share(odds, most):
    """The product along any path of takings is the set's odds over the sum of all sets' odds."""
    odds, n = np.array(odds), len(odds)
    size = min(most, n)
    steps = inclusion_steps(odds, most)
    total = sum(odds[list(group)].prod() for group in combinations(range(n), size))
    for group in combinations(range(n), size):
        chance, left = 1.0, size
        for item in range(n):
            chance *= steps[item, left] if item in group else 1 - steps[item, left]
            left -= item in group
        assert chance == pytest.approx(odds[list(group)].prod() / total, rel=1e-6)


def test_steps_of_many_codes_do_not_overflow():
    steps = inclusion_steps(np.linspace(1e-6, 1e6, 3_000), 1_500)
    assert np.isfinite(steps).all() and steps.min() >= 0 and steps.max() <= 1 + 1e-9


def test_a_diagnosis_that_nobody_has_is_never_drawn():
    far, has = np.array([[1.0, 2.0, 50.0]]), masks([0], m=3)
    matching = Matching.of(np.array([3, 3, 0]), np.ones(3, dtype=int), 9)
    assert matched_p(far, has, matching, 1_000, np.random.default_rng(0))[0] == 1
