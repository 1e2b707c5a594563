"""Correlations of many rows: against SciPy, by hand, where nothing varies, and with gaps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from clinveil.utility import Correlated
from clinveil.utility.pairs import in_blocks, prepared, products

SCIPYS = {"pearson": scipy.stats.pearsonr, "spearman": scipy.stats.spearmanr}


def pearson(one, other, statistic="pearson"):
    return float(products(prepared(one[None], statistic), prepared(other[None], statistic))[0])


def spearman(one, other):
    return pearson(one, other, "spearman")


numbers = st.lists(st.integers(-4, 4), min_size=3, max_size=15)


@given(numbers, st.randoms())
def test_equal_scipys(values, random):
    one = np.array(values, dtype=float)
    other = np.array(random.sample(values, len(values)), dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [scipy.stats.pearsonr(one, other)[0], scipy.stats.spearmanr(one, other)[0]]
    assert [pearson(one, other), spearman(one, other)] == pytest.approx(
        expected, nan_ok=True, abs=1e-12
    )


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 1e9 + 0.1])
def test_what_does_not_vary_has_no_correlation_however_its_mean_is_rounded(constant):
    values = np.full(7, constant)
    assert np.isnan(pearson(values, np.arange(7.0)))
    assert np.isnan(pearson(np.arange(7.0), values))
    assert np.isnan(spearman(values, np.arange(7.0)))


def test_blocks_give_every_row_once():
    sizes = []

    def values(n):
        sizes.append(n)
        return np.full(n, float(len(sizes)))

    assert in_blocks(10, 1 << 20, values).tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert sizes == [2] * 5


def gappy(n=40, seed=0, **more):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    cosines = np.clip(scores / 3 + rng.normal(0, 0.1, n), -1, 1)
    cosines[: n // 2] = np.nan
    return Correlated(cosines, scores, **more)


@pytest.mark.parametrize("statistic", SCIPYS)
def test_the_mean_over_fillings_equals_scipys_mean(statistic):
    """Ten thousand fillings by SciPy, one by one, agree with our hundred at once, within their
    noise.
    """
    measured = gappy(statistic=statistic, random=True)
    rng = np.random.default_rng(5)
    gaps = np.isnan(measured.cosines)
    values = []
    for _ in range(2_000):
        filled = measured.cosines.copy()
        filled[gaps] = rng.uniform(-1, 1, gaps.sum())
        values.append(SCIPYS[statistic](filled, measured.scores)[0])
    ours = np.mean([measured.value(np.random.default_rng(s)) for s in range(20)])
    assert ours == pytest.approx(np.mean(values), abs=4 * np.std(values) / np.sqrt(2_000))


def test_permutations_are_exact_for_three_pairs():
    """The six orders of three scores, by hand: correlations 1, 1/2 twice, -1/2 twice, -1."""
    measured = Correlated(np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), "pearson")
    found = measured.permuted(np.random.default_rng(0))
    values, counts = np.unique(found.round(9), return_counts=True)
    assert values.tolist() == [-1.0, -0.5, 0.5, 1.0]
    assert counts / found.size == pytest.approx([1 / 6, 1 / 3, 1 / 3, 1 / 6], abs=0.06)


@pytest.mark.parametrize("statistic", SCIPYS)
def test_the_bootstrap_draws_pairs_and_agrees_with_scipys(statistic):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=60)
    cosines = scores + rng.normal(size=60)
    found = Correlated(cosines, scores, statistic).resampled(np.random.default_rng(0), 2_000)
    peer = scipy.stats.bootstrap(
        (cosines, scores),
        lambda a, b: SCIPYS[statistic](a, b)[0],
        paired=True,
        vectorized=False,
        n_resamples=1_000,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    assert np.quantile(found, [0.025, 0.975]) == pytest.approx(
        list(peer.confidence_interval), abs=0.05
    )
