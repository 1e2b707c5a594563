"""Noise of the Gaussian mechanism: the exact formula, its composition, and the draws."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clinveil.core import Key, UsageError
from clinveil.lm import composed, epsilon_of
from clinveil.lm.private.gaussian import default_delta, delta_of, noise_for, normals

CASES = [(0.1, 1e-6), (1.0, 1e-4), (3.0, 1e-5), (8.0, 1 / (1186 * log(1186)))]


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_the_noise_agrees_with_dp_accounting(epsilon, delta):
    accounting = pytest.importorskip("dp_accounting")
    sigma = noise_for(epsilon, delta)
    assert epsilon_of(sigma, delta) == pytest.approx(epsilon, abs=1e-6)
    assert accounting.get_epsilon_gaussian(sigma, delta) == pytest.approx(epsilon, abs=1e-6)


def test_composition_agrees_with_dp_accounting():
    accounting = pytest.importorskip("dp_accounting")
    pld = pytest.importorskip("dp_accounting.pld")
    accountant = pld.PLDAccountant()
    for sigma in (2.0, 3.5):
        accountant.compose(accounting.GaussianDpEvent(sigma))
    both = accountant.get_epsilon(1e-5)
    assert epsilon_of(composed([2.0, 3.5]), 1e-5) == pytest.approx(
        both, abs=1e-4
    )  # the grid of two losses adds up
    assert composed([2.0, 2.0]) == pytest.approx(2 / sqrt(2)) and composed([3.0]) == pytest.approx(
        3.0
    )


@given(st.floats(0.01, 20), st.floats(1e-9, 0.1))
def test_the_noise_is_sufficient_and_not_more(epsilon, delta):
    sigma = noise_for(epsilon, delta)
    assert delta_of(sigma, epsilon) <= delta < delta_of(0.999 * sigma, epsilon)


def test_delta_by_hand():
    """Theorem 8 with the normal distribution of SciPy."""
    by_hand = stats.norm.cdf(0.5 / 2 - 1.0 * 2) - exp(1.0) * stats.norm.cdf(-0.5 / 2 - 1.0 * 2)
    assert delta_of(2.0, 1.0) == pytest.approx(by_hand, rel=1e-9)
    assert default_delta(1000) == pytest.approx(1 / (1000 * log(1000)))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-5), (-1.0, 1e-5), (101.0, 1e-5), (1.0, 0.0), (1.0, 1e-320), (1.0, 1.0)],
)
def test_parameters_out_of_range(epsilon, delta):
    with pytest.raises(UsageError, match=r"synthetic\.(epsilon|delta) must be"):
        noise_for(epsilon, delta)


def test_draws_are_standard_normal_and_keyed():
    draws = normals(Key.from_seed(1).stream("noise", "a"), 20_000)
    assert stats.kstest(draws, "norm").pvalue > 0.001
    assert np.array_equal(draws[:50], normals(Key.from_seed(1).stream("noise", "a"), 50))
    assert not np.array_equal(draws[:50], normals(Key.from_seed(1).stream("noise", "b"), 50))
    assert not np.array_equal(draws[:50], normals(Key.from_seed(2).stream("noise", "a"), 50))
