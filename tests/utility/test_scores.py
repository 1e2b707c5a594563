"""Scores: against scikit-learn for one and several labels; paired differences; seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from papers.jamia_2020.training import log_loss
from sklearn.metrics import f1_score

from clinveil.utility import Scores, choose, decided
from clinveil.utility.scores import THRESHOLDS, f1_sums, macro_f1, majority_of, micro_f1, score

tables = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        arrays(bool, (n, 3)), arrays(bool, (n, 3)), arrays(np.int64, n, elements=st.integers(0, 3))
    )
)


@given(tables)
def test_several_labels_equal_sklearn(table):
    truth, guess, weights = table
    live = (truth | guess)[weights > 0].any(axis=0)
    sums = weights @ f1_sums(truth, guess, 3)
    if not live.any():
        assert np.isnan(micro_f1(sums)) and np.isnan(macro_f1(sums))
        return
    scores = f1_score(truth, guess, average=None, sample_weight=weights, zero_division=0)
    assert macro_f1(sums) == pytest.approx(scores[live].mean())
    assert micro_f1(sums) == pytest.approx(
        f1_score(truth, guess, average="micro", sample_weight=weights)
    )


def scores_of(truth, patients=None):
    patients = patients or [f"p{i}" for i in range(len(truth))]
    return Scores(truth, patients, majority_of(truth, len(truth)), ("x",))


def test_original_against_itself_loses_exactly_nothing():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    guesses = [rng.integers(0, 3, 60) for _ in range(3)]
    loss = scores_of(truth).loss("macro_f1", guesses, guesses, rng)
    assert (loss.value, loss.low, loss.high) == (0.0, 0.0, 0.0)


def test_a_loss_is_paired():
    """Both sides err on the same half; the difference is a tenth, for certain, though each side is
    uncertain.
    """
    truth = np.array([0, 1] * 100)
    ours = np.where(np.arange(200) % 4 < 2, truth, 1 - truth)
    theirs = np.where(np.arange(200) < 180, ours, 1 - truth)
    loss = scores_of(truth).loss("accuracy", [ours], [theirs], np.random.default_rng(0))
    side = scores_of(truth).side("accuracy", "original", [ours], [], np.random.default_rng(0))
    assert loss.value == pytest.approx(0.05)
    assert loss.high - loss.low < side.high - side.low


def test_the_interval_draws_patients_not_notes():
    truth = np.zeros(100, dtype=np.int64)
    truth[50:] = 1
    guess = np.where(np.arange(100) % 20 < 10, truth, 1 - truth)
    by_patient = scores_of(truth, [f"p{i // 10}" for i in range(100)])
    wide = by_patient.side("accuracy", "o", [guess], [], np.random.default_rng(0))
    narrow = scores_of(truth).side("accuracy", "o", [guess], [], np.random.default_rng(0))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_seeds_count_by_their_mean_and_their_spread_is_said():
    truth = np.array([0, 1, 0, 1])
    runs = [truth, 1 - truth, np.array([0, 1, 1, 0])]
    side = scores_of(truth).side("accuracy", "original", runs, [runs[1]], np.random.default_rng(0))
    assert side.value == 0.5
    assert side.control == 0.0
    assert (side.numbers["seeds"], side.numbers["worst"], side.numbers["best"]) == (3, 0.0, 1.0)
    assert side.numbers["seed_sd"] == pytest.approx(0.5)


def test_thresholds_are_chosen_by_micro_f1():
    truth = np.array([[True, False], [False, True], [True, False]])
    probabilities = np.array([[0.25, 0.15], [0.15, 0.35], [0.45, 0.05]])
    assert choose(truth, probabilities) == (1.0, 0.2)
    assert choose(np.zeros((2, 2), dtype=bool), probabilities[:2]) == (0.0, THRESHOLDS[-1])
    assert decided(probabilities, 0.2, several=True).tolist() == truth.tolist()
    assert log_loss(truth, probabilities) == pytest.approx(
        -np.log([0.25, 0.85, 0.85, 0.35, 0.45, 0.95]).mean()
    )


def test_one_class_a_note_is_the_likeliest_and_chosen_by_macro_f1():
    truth = np.array([0, 1, 1])
    probabilities = np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    assert decided(probabilities, 0.5, several=False).tolist() == [0, 0, 1]
    assert choose(truth, probabilities)[0] == pytest.approx(
        score("macro_f1", truth, np.array([0, 0, 1]))
    )
    assert log_loss(truth, probabilities) == pytest.approx(-np.log([0.6, 0.3, 0.8]).mean())
