"""Intervals: against SciPy and statsmodels, by hand, and by coverage where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

from clinveil.core import InputError
from clinveil.stats import (
    Interval,
    bootstrap_clusters,
    bootstrap_weights,
    clopper_pearson,
    jackknife_t,
    ratio,
    share_by_patient,
    share_method,
    t_interval,
    weighted_poisson,
    wilson,
)

SHARES = [(0, 1), (1, 1), (0, 30), (30, 30), (3, 10), (17, 128), (5000, 10_000), (1, 10_000_000)]


@pytest.mark.parametrize("k,n", SHARES)
def test_shares_equal_statsmodels(k, n):
    assert wilson(k, n) == pytest.approx(proportion_confint(k, n, 0.05, "wilson"), abs=1e-12)
    assert clopper_pearson(k, n) == pytest.approx(proportion_confint(k, n, 0.05, "beta"), abs=1e-12)


@pytest.mark.parametrize("k,n", SHARES)
def test_shares_equal_scipy(k, n):
    for ours, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
        theirs = scipy_stats.binomtest(k, n).proportion_ci(0.95, method=method)
        assert ours(k, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 10**9), st.floats(0, 1))
def test_a_share_lies_in_its_interval_and_the_exact_one_is_the_other_way_up_too(n, share):
    k = int(share * n)
    for interval in (wilson(k, n), clopper_pearson(k, n)):
        assert 0 <= interval.low <= k / n + 1e-12 and k / n - 1e-12 <= interval.high <= 1
    mirrored = wilson(n - k, n)
    assert wilson(k, n).low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize("k,n", [(-1, 3), (4, 3), (0, 0)])
def test_what_is_no_share_is_refused(k, n):
    for function in (wilson, clopper_pearson):
        with pytest.raises(ValueError):
            function(k, n)


def test_t_interval_equals_scipy():
    runs = [0.71, 0.74, 0.69, 0.70, 0.75]
    theirs = scipy_stats.t.interval(0.95, 4, loc=np.mean(runs), scale=scipy_stats.sem(runs))
    assert t_interval(runs) == pytest.approx(theirs)
    with pytest.raises(ValueError):
        t_interval([1.0])


def test_bootstrap_of_equal_patients_is_a_point():
    values = np.tile([1, 4], (10, 1))
    assert bootstrap_clusters(values, ratio, np.random.default_rng(1)) == Interval(0.25, 0.25)


def test_bootstrap_of_a_mean_agrees_with_scipy():
    values = np.random.default_rng(5).normal(size=80)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(6)
    ).confidence_interval
    ours = bootstrap_clusters(
        values, lambda v: float(v.mean()), np.random.default_rng(7), draws=4000
    )
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
    first = bootstrap_weights(
        7, lambda w: seen.append(int(w.sum())) or float(w[0]), np.random.default_rng(1), draws=50
    )
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
    none = np.array([[0, 9], [0, 1], [0, 0]])
    all_hits = np.array([[9, 9], [1, 1]])
    assert share_by_patient(none) == clopper_pearson(0, 2)
    assert share_by_patient(all_hits) == clopper_pearson(2, 2)
    some = np.array([[1, 2], [0, 3]])
    with pytest.raises(ValueError):
        share_by_patient(np.zeros((2, 2)))
    assert share_method(some, "notes") == "Korn-Graubard by notes, 95 %"
    for values in (none, all_hits):
        assert "Clopper-Pearson" in share_method(
            values, "notes"
        ) and "bootstrap" not in share_method(values, "notes")


@pytest.mark.parametrize(
    ("patients", "share"), [(60, 0.01), (60, 0.03), (60, 0.5), (20, 0.1), (10, 0.3)]
)
def test_shares_of_few_clustered_hits_hold_their_level(patients, share):
    """Hits come in some patients only (correlation 0.1 within one); the percentile bootstrap
    covered .84 at 1 %.
    """
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        things = 1 + rng.poisson(np.exp(rng.normal(3, 0.7, patients)))
        hits = rng.binomial(things, rng.beta(9 * share, 9 * (1 - share), size=patients))
        low, high = share_by_patient(np.stack([hits, things], axis=1))
        covered += low <= share <= high
    assert covered / 300 >= 0.92


def test_a_share_of_independent_things_is_nearly_the_exact_one():
    things = np.ones(400, dtype=int)
    found = share_by_patient(np.stack([np.arange(400) < 100, things], axis=1))
    assert found == pytest.approx(clopper_pearson(100, 400), abs=0.002)
    assert share_by_patient(np.array([[1, 4]] * 50)) == clopper_pearson(50, 200), (
        "no patient differs: things count"
    )
    low, high = share_by_patient(np.array([[3, 9]]))
    assert low < 0.05 and high > 0.9, "one patient says next to nothing"


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30))
def test_a_share_by_patient_lies_in_its_interval_whatever_the_counts(pairs):
    values = np.array([[min(pair), max(pair)] for pair in pairs])
    if not values[:, 1].sum():
        return
    low, high = share_by_patient(values)
    assert 0 <= low <= ratio(values) <= high <= 1


def test_rare_events_have_the_exact_interval_of_a_poisson_count():
    """0, 1 and 3 hits of 600, as in any table of Poisson limits (Garwood 1936)."""
    for hits, low, high in ((0, 0, 3.689), (1, 0.0253, 5.572), (3, 0.619, 8.767)):
        assert weighted_poisson(np.ones(hits)) == pytest.approx((low, high), abs=1e-3)
    for hits in (1, 7, 30):
        low, high = weighted_poisson(np.ones(hits))
        assert scipy_stats.poisson.sf(hits - 1, low) == pytest.approx(0.025)
        assert scipy_stats.poisson.cdf(hits, high) == pytest.approx(0.025)
    assert weighted_poisson([3, 3]).high > weighted_poisson(np.ones(6)).high, (
        "two events that bring three hits each"
    )
    with pytest.raises(ValueError):
        weighted_poisson([1, 0])


def test_the_jackknife_of_a_mean_is_the_t_interval():
    values = np.linspace(-1, 3, 9)
    columns = np.stack([values, np.ones(9)], axis=1)
    assert jackknife_t(columns, lambda sums: sums[0] / sums[1]) == pytest.approx(t_interval(values))
    columns[-1, 0] = (
        40  # one patient makes nearly all of the spread: what is known of it is less than nine tell
    )
    low, high = jackknife_t(columns, lambda sums: sums[0] / sums[1])
    assert high - low > 1.3 * np.diff(t_interval(columns[:, 0]))[0]
    with pytest.raises(InputError, match="two patients"):
        jackknife_t(columns[:1], lambda sums: sums[0])
    with pytest.raises(InputError, match="undefined without"):
        jackknife_t(
            np.array([[0.0, 0.0], [1.0, 1.0]]),
            lambda sums: float(np.divide(*sums)) if sums[1] else np.nan,
        )


def test_the_jackknife_of_a_ratio_holds_its_level_with_few_patients():
    """A percentile bootstrap of eight patients covers about .88."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        sizes = rng.integers(20, 60, size=8)
        totals = sizes * rng.normal(4, 0.4, size=8)
        low, high = jackknife_t(np.stack([totals, sizes], axis=1), lambda sums: sums[0] / sums[1])
        covered += low <= 4 <= high
    assert covered / 300 >= 0.92
