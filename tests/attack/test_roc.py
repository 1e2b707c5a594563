"""The area under the curve and hits at a rate: by hand, against scikit-learn, and where they cannot be had."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from clinveil.attack.roc import Separation
from clinveil.errors import InputError

scores = st.lists(st.integers(-3, 3), min_size=1, max_size=12)


def separation(members, others):
    return Separation(np.array(members, dtype=float), np.array(others, dtype=float))


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


def test_interval_covers_chance_where_there_is_nothing_and_holds_its_level():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(100):
        low, high = separation(rng.normal(size=60), rng.normal(size=50)).auc_interval(rng, draws=300)
        covered += low <= 0.5 <= high
    assert 88 <= covered <= 100


def test_interval_of_ties_only_is_a_half():
    low, high = separation([1] * 9, [1] * 7).auc_interval(np.random.default_rng(0), draws=50)
    assert low == high == 0.5


@pytest.mark.parametrize(("members", "auc"), [([5, 6, 7], 1.0), ([-5, -6, -7], 0.0)])
def test_sides_wholly_apart_have_the_exact_interval(members, auc):
    found = separation(members, [0, 1, 2, 3])
    low, high = found.auc_interval(np.random.default_rng(0))
    assert found.auc == auc
    assert (low, high) == pytest.approx((0.2924, 1.0) if auc else (0.0, 0.7076), abs=1e-4)


def test_rates_need_ten_expected_false_alarms():
    found = separation(np.arange(50), np.arange(999))
    assert not found.measurable(0.01)
    with pytest.raises(InputError, match="1000 can"):
        found.hits_at(0.01)
    assert separation([1], np.arange(1000)).measurable(0.01)
    assert not separation([1], np.arange(9_999)).measurable(0.001)
    assert separation([1], np.arange(10_000)).measurable(0.001)


def test_hits_by_hand():
    # Of 1,000 non-members 0..999 ten may pass: the threshold is 989, ties at it do not pass.
    share, (low, high) = separation([989, 990, 2000, 5], np.arange(1000)).hits_at(0.01)
    assert share == 0.5
    assert low < 0.5 < high


def test_hits_never_pass_more_than_the_rate_with_ties():
    others = np.array([0] * 500 + [1] * 500)
    share, _ = separation([1] * 10, others).hits_at(0.01)
    assert share == 0  # level with half of the non-members: no threshold lets them pass and only ten of those


@pytest.mark.parametrize(("members", "others"), [([], [1]), ([1], []), ([float("nan")], [1]), ([1], [float("inf")])])
def test_empty_sides_and_broken_scores_are_refused(members, others):
    with pytest.raises(InputError):
        separation(members, others)
