"""P-values: against SciPy and statsmodels, and by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from clinveil.stats import benjamini_hochberg, holm, hypergeometric_tail, permutation_p

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_permutation_p_counts_the_observed_order_among_the_permutations():
    assert permutation_p(3, [1, 2, 3, 4]) == 3 / 5
    assert permutation_p(9, [1, 2, 3, 4]) == 1 / 5
    assert permutation_p(0, [0, 0, 0]) == 1.0


def test_permutation_p_is_uniform_where_there_is_nothing():
    rng = np.random.default_rng(1)
    p = [permutation_p(rng.normal(), rng.normal(size=99)) for _ in range(2000)]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.015)


def test_permutation_p_of_all_orders_equals_scipy():
    x = np.array([1.0, 2, 4, 7, 5])
    y = np.array([2.0, 1, 5, 9, 6])
    orders = [float(x @ y[list(order)]) for order in permutations(range(5))]
    theirs = scipy_stats.permutation_test(
        (y,),
        lambda z: x @ z,
        permutation_type="pairings",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert (permutation_p(float(x @ y), orders) * 121 - 1) / 120 == pytest.approx(theirs.pvalue)


def test_permutation_p_refuses_what_is_no_number():
    for observed, null in ((1.0, []), (float("nan"), [1.0]), (1.0, [float("nan")])):
        with pytest.raises(ValueError):
            permutation_p(observed, null)


@given(P_VALUES)
@settings(max_examples=15, deadline=None)
@pytest.mark.slow
def test_adjusted_p_values_equal_statsmodels(p):
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1])


def test_adjusted_by_hand():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert benjamini_hochberg([0.04, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])


@given(P_VALUES)
def test_adjusting_never_helps_and_holm_is_the_stricter(p):
    assert (benjamini_hochberg(p) >= np.array(p) - 1e-15).all()
    assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all()


def test_no_p_value_or_a_wrong_one():
    assert holm([]).size == 0 and benjamini_hochberg([]).size == 0
    for function in (holm, benjamini_hochberg):
        for wrong in ([1.1], [-0.1], [float("nan")]):
            with pytest.raises(ValueError):
                function(wrong)


@given(st.integers(1, 60), st.data())
def test_hypergeometric_tail_equals_fishers_test(population, data):
    marked = data.draw(st.integers(0, population))
    drawn = data.draw(st.integers(0, population))
    k = data.draw(st.integers(max(0, drawn + marked - population), min(marked, drawn)))
    table = [[k, marked - k], [drawn - k, population - marked - drawn + k]]
    theirs = scipy_stats.fisher_exact(table, alternative="greater").pvalue
    assert hypergeometric_tail(k, population, marked, drawn) == pytest.approx(theirs, rel=1e-6)


def test_hypergeometric_tail_by_hand():
    # Two of four are marked, two are drawn: both marked in 1 of 6 hands, at least one in 5 of 6.
    assert hypergeometric_tail(2, 4, 2, 2) == pytest.approx(1 / 6)
    assert hypergeometric_tail(1, 4, 2, 2) == pytest.approx(5 / 6)
    assert hypergeometric_tail(0, 4, 2, 2) == pytest.approx(1.0)
    with pytest.raises(ValueError):
        hypergeometric_tail(1, 4, 5, 2)
