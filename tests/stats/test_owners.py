"""P of own names by chance: the formula against all permutations, the fallback, and the power
against simulation.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.stats import ALPHA, alone, has_power, leaks_refused_from, own_name_p
from clinveil.stats.refusals import EXACT


def every(patient, name, n):
    """The same P by all n! permutations."""
    count = sum(p == q for p, q in zip(patient, name, strict=True))
    hits = [
        sum(order[p] == q for p, q in zip(patient, name, strict=True))
        for order in permutations(range(n))
    ]
    return np.mean([h >= count for h in hits])


@given(st.integers(1, 6), st.data())
def test_the_formula_equals_all_permutations(n, data):
    patient = data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, n))]
    name = data.draw(st.permutations(range(n)))[: len(patient)]
    p, how = own_name_p(
        np.array(patient, dtype=int), np.array(name, dtype=int), n, np.random.default_rng(0), 99
    )
    assert how == EXACT
    assert p == pytest.approx(every(patient, name, n))


def test_one_leak_has_one_in_n_and_two_one_in_n_times_n_less_one():
    for n in (5, 50, 101, 1_000):
        one, two = (
            own_name_p(np.arange(k), np.arange(k), n, np.random.default_rng(0), 9)[0]
            for k in (1, 2)
        )
        assert (one, two) == pytest.approx((1 / n, 1 / n / (n - 1)))
    assert (
        own_name_p(np.arange(1_000), np.arange(1_000), 1_000, np.random.default_rng(0), 9)[0] == 0
    )
    assert [has_power(n) for n in (0, 1, 100, 101)] == [False, False, False, True]


def test_a_name_in_several_notes_is_permuted():
    patient = np.array([0, 1, 2, 3])
    name = np.array([0, 0, 0, 3])
    p, how = own_name_p(patient, name, 5, np.random.default_rng(0), 4_000)
    assert how == "4,000 permutations of owners"
    assert p == pytest.approx(every(patient, name, 5), abs=0.03)


def test_alone_are_names_that_fewer_than_two_others_have():
    patient = np.array([0, 1, 2, 2, 3, 4, 5])
    name = np.array([0, 1, 1, 2, 2, 2, 5])  # 0: own only; 1: one other; 2: two others; 5: own only
    assert alone(patient, name, 6) == 3
    assert alone(patient[:0], name[:0], 6) == 0


@pytest.mark.parametrize(("n", "expected"), [(200, 0.0), (200, 0.3), (1_000, 2.0), (5_000, 10.0)])
def test_the_power_is_that_of_simulated_leaks(n, expected):
    rng = np.random.default_rng(1)
    least = leaks_refused_from(n, expected)

    def refused(leaks):
        """Share of releases with so many leaks, and own names by chance, whose Poisson tail is
        below the level.
        """
        from scipy.stats import poisson

        own = rng.poisson(expected, 4_000) + leaks
        return (poisson.sf(own - 1, expected + leaks / n) < ALPHA).mean()

    assert refused(least) >= 0.94
    assert least == 1 or refused(least - 1) < 0.96


def test_few_patients_have_no_test_and_one_leak_is_refused_by_rule():
    assert leaks_refused_from(50, 3.0) == 1
