"""Intervals: against SciPy and statsmodels, by hand, and by coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

from clinveil.errors import InputError
from clinveil.stats import (
    Interval,
    bootstrap_clusters,
    bootstrap_weights,
    clopper_pearson,
    ratio,
    rule_of_three,
    share_by_patient,
    share_method,
    t_interval,
    wilson,
)

SHARES = [(0, 1), (1, 1), (0, 30), (30, 30), (3, 10), (17, 128), (5000, 10_000), (1, 10_000_000)]


@pytest.mark.parametrize("k,n", SHARES)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_shares_equal_statsmodels(k, n, level):
    assert wilson(k, n, level) == pytest.approx(proportion_confint(k, n, 1 - level, "wilson"), abs=1e-12)
    assert clopper_pearson(k, n, level) == pytest.approx(proportion_confint(k, n, 1 - level, "beta"), abs=1e-12)


@pytest.mark.parametrize("k,n", SHARES)
def test_shares_equal_scipy(k, n):
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = scipy_stats.binomtest(k, n).proportion_ci(0.95, method=method)
        assert ours(k, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 10**9), st.floats(0, 1), st.floats(0.5, 0.999))
def test_a_share_lies_in_its_interval_and_the_exact_one_is_the_other_way_up_too(n, share, level):
    k = int(share * n)
    for interval in (wilson(k, n, level), clopper_pearson(k, n, level)):
        assert 0 <= interval.low <= k / n + 1e-12 and k / n - 1e-12 <= interval.high <= 1
    mirrored = wilson(n - k, n, level)
    assert wilson(k, n, level).low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize("k,n", [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_share_is_refused(k, n):
    for function in (wilson, clopper_pearson):
        with pytest.raises(InputError):
            function(k, n)


def test_a_level_outside_0_and_1_is_refused():
    with pytest.raises(InputError):
        wilson(1, 2, 95)


def test_rule_of_three_is_about_three_over_n_and_the_one_sided_exact_bound():
    assert rule_of_three(1) == pytest.approx(0.95)
    assert rule_of_three(1000) == pytest.approx(3 / 1000, rel=0.01)
    assert rule_of_three(40) == pytest.approx(clopper_pearson(0, 40, 0.90).high)
    with pytest.raises(InputError):
        rule_of_three(0)


def test_t_interval_equals_scipy():
    runs = [0.71, 0.74, 0.69, 0.70, 0.75]
    theirs = scipy_stats.t.interval(0.95, 4, loc=np.mean(runs), scale=scipy_stats.sem(runs))
    assert t_interval(runs) == pytest.approx(theirs)
    with pytest.raises(InputError):
        t_interval([1.0])


def test_bootstrap_of_equal_patients_is_a_point():
    values = np.tile([1, 4], (10, 1))
    assert bootstrap_clusters(values, ratio, np.random.default_rng(1)) == Interval(0.25, 0.25)


def test_bootstrap_of_a_mean_agrees_with_scipy():
    values = np.random.default_rng(5).normal(size=80)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(6)
    ).confidence_interval
    ours = bootstrap_clusters(values, lambda v: float(v.mean()), np.random.default_rng(7), draws=4000)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_clusters_widen_the_interval_by_the_root_of_their_size():
    # 40 patients with 25 identical tokens each know no more than 40 tokens do.
    hits = np.random.default_rng(2).random(40) < 0.5
    by_patient = np.stack([hits * 25, np.full(40, 25)], axis=1)
    low, high = bootstrap_clusters(by_patient, ratio, np.random.default_rng(3))
    naive = wilson(int(hits.sum() * 25), 1000)
    assert (high - low) / (naive.high - naive.low) == pytest.approx(5, rel=0.15)


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(200):
        tokens = rng.integers(1, 30, size=60)
        hits = rng.binomial(tokens, rng.beta(2, 6, size=60))
        low, high = bootstrap_clusters(np.stack([hits, tokens], axis=1), ratio, rng, draws=200)
        covered += low <= 0.25 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_weights_sum_to_the_patients_and_the_seed_decides():
    seen = []
    first = bootstrap_weights(7, lambda w: seen.append(int(w.sum())) or float(w[0]), np.random.default_rng(1), draws=50)
    again = bootstrap_weights(7, lambda w: float(w[0]), np.random.default_rng(1), draws=50)
    assert set(seen) == {7} and first == again


def test_draws_without_a_number_are_left_out_and_none_at_all_is_refused():
    values = np.array([[0, 0], [1, 2]])
    assert bootstrap_clusters(values, ratio, np.random.default_rng(1)) == Interval(0.5, 0.5)
    with pytest.raises(InputError):
        bootstrap_clusters(np.zeros((3, 2)), ratio, np.random.default_rng(1))
    with pytest.raises(InputError):
        bootstrap_clusters(np.zeros((0, 2)), ratio, np.random.default_rng(1))


def test_a_share_of_nothing_or_all_keeps_the_doubt_of_its_patients():
    none, all_hits = np.array([[0, 9], [0, 1], [0, 0]]), np.array([[9, 9], [1, 1]])
    assert share_by_patient(none, np.random.default_rng(1)) == clopper_pearson(0, 2)
    assert share_by_patient(all_hits, np.random.default_rng(1)) == clopper_pearson(2, 2)
    some = np.array([[1, 2], [0, 3]])
    assert share_by_patient(some, np.random.default_rng(1)) == bootstrap_clusters(some, ratio, np.random.default_rng(1))
    with pytest.raises(InputError):
        share_by_patient(np.zeros((2, 2)), np.random.default_rng(1))
    assert share_method(some, "notes") == "bootstrap over notes, 95 %"
    for values in (none, all_hits):
        assert "Clopper-Pearson" in share_method(values, "notes") and "bootstrap" not in share_method(values, "notes")
