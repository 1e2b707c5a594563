"""The area under the curve and hits at a rate: by hand, against scikit-learn, and where they cannot
be had.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.special import logit, ndtri
from sklearn.metrics import roc_auc_score
from statsmodels.stats.nonparametric import rank_compare_2indep

from clinveil.core import InputError
from clinveil.stats import RocScores, clopper_pearson

scores = st.lists(st.integers(-3, 3), min_size=1, max_size=12)


def separation(members, others):
    return RocScores(np.array(members, dtype=float), np.array(others, dtype=float))


@given(scores, scores)
def test_area_equals_sklearn(members, others):
    truth = [1] * len(members) + [0] * len(others)
    assert separation(members, others).auc == pytest.approx(roc_auc_score(truth, members + others))


def test_area_by_hand():
    # Of 6 pairs the member is above in 4 and level in 1.
    assert separation([3, 2, 1], [2, 0]).auc == pytest.approx((2 + 1.5 + 1) / 6)


def test_area_is_inverted_by_turning_the_scores():
    one = separation([3, 2, 1], [2, 0])
    assert separation([-3, -2, -1], [-2, 0]).auc == pytest.approx(1 - one.auc)


def covered(members, others, truth, repetitions=300, seed=0):
    """How often the interval of the area holds the true one: two normal sides, one moved."""
    rng = np.random.default_rng(seed)
    moved = np.sqrt(2) * ndtri(truth)
    held = 0
    for _ in range(repetitions):
        low, high = separation(
            rng.normal(moved, 1, members), rng.normal(size=others)
        ).auc_interval()
        held += low <= truth <= high
    return held / repetitions


@pytest.mark.parametrize(
    ("members", "others", "truth"),
    [(107, 60, 0.6), (37, 15, 0.85), (37, 15, 0.5), (10, 10, 0.5), (50, 5, 0.5), (50, 5, 0.9)],
)
def test_the_intervals_of_small_and_unequal_sides_hold_their_level(members, others, truth):
    """Percentile bootstrap: .868 at 50 against 5, and .905 at 37 against 15 with an area of .85."""
    assert covered(members, others, truth) >= 0.92


def test_the_interval_has_the_variance_of_brunner_and_munzel():
    rng = np.random.default_rng(1)
    members = rng.normal(0.5, 2, 30)
    others = rng.normal(size=12)
    theirs = rank_compare_2indep(members, others)
    found = separation(members, others)
    low, high = found.auc_interval()
    half = (
        scipy_stats.t.ppf(0.975, theirs.df)
        * np.sqrt(theirs.var / 42)
        / (found.auc * (1 - found.auc))
    )
    assert found.auc == pytest.approx(theirs.prob1)
    assert (logit(low), logit(high)) == pytest.approx(
        (logit(found.auc) - half, logit(found.auc) + half)
    )


def test_ties_only_and_one_patient_say_next_to_nothing():
    low, high = separation([1] * 9, [1] * 7).auc_interval()
    assert low < 0.25 and high > 0.75
    assert "Clopper-Pearson" in separation([1] * 9, [1] * 7).auc_method
    low, high = separation([2], [1, 3]).auc_interval()
    assert low < 0.05 and high > 0.95


@pytest.mark.parametrize(("members", "auc"), [([5, 6, 7], 1.0), ([-5, -6, -7], 0.0)])
def test_sides_wholly_apart_have_the_exact_interval(members, auc):
    found = separation(members, [0, 1, 2, 3])
    assert found.auc == auc
    assert found.auc_interval() == pytest.approx((0.2924, 1.0) if auc else (0.0, 0.7076), abs=1e-4)


def test_rates_need_five_expected_false_alarms():
    found = separation(np.arange(50), np.arange(499))
    assert not found.measurable(0.01)
    with pytest.raises(InputError, match=r"60 non-members are too few .* 500"):
        separation(np.arange(50), np.arange(60)).tpr_at_fpr(0.01)
    assert separation([1], np.arange(500)).measurable(0.01)
    assert not separation([1], np.arange(4_999)).measurable(0.001)
    assert separation([1], np.arange(5_000)).measurable(0.001)


@pytest.mark.parametrize(
    ("members", "others", "rate", "truth"),
    [(1000, 1000, 0.01, 0.204), (1000, 1000, 0.01, 0.01), (107, 60, 0.1, 0.5), (107, 60, 0.1, 0.1)],
)
def test_tpr_at_fpr_hold_their_level_with_and_without_signal(members, others, rate, truth):
    """Clopper-Pearson at the observed threshold: .52 with signal, for the threshold is estimated
    too.
    """
    rng = np.random.default_rng(2)
    moved = ndtri(truth) - ndtri(rate)
    held = 0
    for _ in range(300):
        _, (low, high) = separation(
            rng.normal(moved, 1, members), rng.normal(size=others)
        ).tpr_at_fpr(rate)
        held += low <= truth <= high
    assert held / 300 >= 0.93


def test_the_interval_of_hits_holds_the_share_and_is_that_of_the_members_at_a_sure_threshold():
    far = separation([10.0] * 30 + [-10.0] * 70, np.linspace(-1, 1, 1000))
    share, interval = far.tpr_at_fpr(0.01)
    assert share == 0.3
    assert interval == pytest.approx(clopper_pearson(30, 100))


def test_hits_by_hand():
    # Of 1,000 non-members 0..999 ten may pass: the threshold is 989, ties at it do not pass.
    share, (low, high) = separation([989, 990, 2000, 5], np.arange(1000)).tpr_at_fpr(0.01)
    assert share == 0.5
    assert low < 0.5 < high


def test_hits_never_pass_more_than_the_rate_with_ties():
    others = np.array([0] * 500 + [1] * 500)
    share, _ = separation([1] * 10, others).tpr_at_fpr(0.01)
    assert (
        share == 0
    )  # level with half of the non-members: no threshold lets them pass and only ten of those


@pytest.mark.parametrize(
    ("members", "others"), [([], [1]), ([1], []), ([float("nan")], [1]), ([1], [float("inf")])]
)
def test_empty_sides_and_broken_scores_are_refused(members, others):
    with pytest.raises(InputError):
        separation(members, others)
