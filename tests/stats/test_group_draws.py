from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.stats import uniform_counts

DRAWS = 40_000


def masks(*rows, m=7):
    has = np.zeros((len(rows), m), dtype=bool)
    for row, own in enumerate(rows):
        has[row, list(own)] = True
    return has


def exact_uniform(far, has):
    """The share of all groups of the own size whose |in - out| is at least the own one's."""
    m = len(far)
    size = int(has.sum())

    def gap(group):
        return far[list(group)].mean() - np.delete(far, list(group)).mean()

    own = abs(gap(np.flatnonzero(has)))
    return np.mean([abs(gap(group)) >= own - 1e-12 for group in combinations(range(m), size)])


def within(share, exact, draws=DRAWS):
    assert share == pytest.approx(
        exact, abs=4.5 * np.sqrt(max(exact * (1 - exact), 0) / draws) + 1e-9
    )


@pytest.mark.parametrize("seed", range(4))
def test_uniform_draws_are_an_enumeration(seed):
    rng = np.random.default_rng(seed)
    far = rng.random((4, 7))
    has = masks([0], [1, 4], [0, 2, 5], [0, 1, 2, 3, 6])
    counts = uniform_counts(far, has, DRAWS, rng)
    for row in range(4):
        within(counts[row] / DRAWS, exact_uniform(far[row], has[row]))


def test_four_diagnoses_by_hand():
    far = np.array([[1.0, 2.0, 3.0, 10.0]])
    has = masks([3], m=4)
    # Of the four groups of one, only the own one deviates by as much.
    within(uniform_counts(far, has, DRAWS, np.random.default_rng(0))[0] / DRAWS, 0.25)


def test_ties_count_as_exceeding():
    far = np.full((1, 6), 0.1)
    has = masks([1, 4], m=6)
    assert uniform_counts(far, has, 300, np.random.default_rng(0))[0] == 300


def test_sums_in_another_order_are_equal():
    """The own group drawn again is a tie, whatever order the sum is made in."""
    far = np.array([[0.1, 0.2, 0.3, 0.7, 1e-9, 5.0]])
    has = masks([0, 1, 2, 3, 4], m=6)
    counts = uniform_counts(far, has, 6_000, np.random.default_rng(1))
    within(counts[0] / 6_000, 1 / 6, 6_000)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_nothing_depends_on_threads(seed, threads):
    rng = np.random.default_rng(seed)
    far = rng.random((40, 9))
    has = rng.random((40, 9)) < 0.4
    has[:, 0] = True
    has[:, 1] = False
    one = uniform_counts(far, has, 50, np.random.default_rng(seed), threads=1)
    assert (uniform_counts(far, has, 50, np.random.default_rng(seed), threads=threads) == one).all()


def test_another_seed_draws_otherwise():
    rng = np.random.default_rng(0)
    far = rng.random((20, 12))
    has = masks(*[[0, 3, 5]] * 20, m=12)
    one, two = (uniform_counts(far, has, 1_000, np.random.default_rng(seed)) for seed in (1, 2))
    assert (one != two).any()
