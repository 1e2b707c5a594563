"""S-PDTP from log-probabilities: by hand, at chance, with a planted effect; the unigram's closed
form.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.attacks import leave_out
from clinveil.attacks.models.leaveout.pdtp import findings, reseed_floor, unigram_pdtp
from clinveil.core import InputError
from clinveil.stats import clopper_pearson, t_interval


def logs(*units):
    return [np.array(unit, dtype=float) for unit in units]


def measures(found):
    return {f.measure: f for f in found}


def test_two_units_by_hand():
    full = logs([-1.0, -2.0, -3.0], [-1.0, -1.0])
    without_first = logs([-1.5, -2.0, -5.0], [-1.25, -1.0])
    without_second = logs([-1.0, -1.0, -3.0], [-1.0, -0.5])
    again = logs([-1.0, -2.0, -3.5], [-2.0, -1.0])
    measured = leave_out(full, [without_first, without_second], [again])
    assert measured.largest.tolist() == [[2.0, 0.25], [1.0, 0.5]]
    assert measured.scores.tolist() == [2.0, 0.5]
    assert measured.placebos.tolist() == [1.0, 0.25]
    assert measured.signed.tolist() == [2.0, -0.5]
    assert measured.places.tolist() == [2, 1]
    assert measured.gaps == pytest.approx(np.array([[2.5 / 3, 0.125], [-1 / 3, -0.25]]))
    assert measured.reseeded.tolist() == [[0.5, 1.0]]
    found = measures(findings(measured, np.random.default_rng(0)))
    assert found["attack.pdtp"].value == 1.25
    assert found["attack.pdtp"].control == 0.625
    assert found["attack.pdtp"].numbers["reseed_floor"] == 0.75
    assert (
        found["attack.pdtp"].control_kind == "negative" and found["attack.pdtp_gap"].p is None
    )  # two units
    assert found["attack.pdtp_sign"].value == 0.5
    assert found["attack.pdtp_gap"].value == pytest.approx((2.5 / 3 - 0.25) / 2)


def test_a_model_against_itself_scores_nothing():
    full = logs([-1.0, -2.0], [-0.5], [-3.0, -1.0, -1.0])
    measured = leave_out(full, [full] * 3, [full])
    assert not measured.largest.any()
    assert not measured.reseeded.any()
    found = measures(findings(measured, np.random.default_rng(0)))
    assert found["attack.pdtp"].value == found["attack.pdtp_gap"].value == 0
    assert found["attack.pdtp_gap"].p == 1


def noisy(rng, n, effect, words=50):
    """Models that differ by noise; a unit's own leave-out lowers one of its words by `effect`."""
    full = [rng.normal(-4, 1, words) for _ in range(n)]
    others = [[unit + rng.normal(0, 0.3, words) for unit in full] for _ in range(n)]
    for i in range(n):
        others[i][i][7] -= effect
    return full, others


def test_noise_alone_has_a_score_and_all_of_it_is_floor():
    """The confounder: the score is large, and so is the placebo."""
    rng = np.random.default_rng(2)
    significant = 0
    for _ in range(20):
        found = measures(findings(leave_out(*noisy(rng, 12, 0.0)), rng))
        assert found["attack.pdtp"].value > 0.5
        assert found["attack.pdtp"].value == pytest.approx(found["attack.pdtp"].control, abs=0.2)
        significant += found["attack.pdtp_gap"].p < 0.05
    assert significant <= 4


def test_a_planted_effect_is_found_where_it_is():
    rng = np.random.default_rng(3)
    measured = leave_out(*noisy(rng, 12, 5.0))
    found = measures(findings(measured, rng))
    assert found["attack.pdtp"].low > found["attack.pdtp"].control + 3
    assert found["attack.pdtp_gap"].p < 0.05
    assert found["attack.pdtp_sign"].value == 1
    assert (measured.places == 7).all()


def test_intervals_are_students_over_patients():
    measured = leave_out(*noisy(np.random.default_rng(5), 8, 1.0))
    found = measures(findings(measured, np.random.default_rng(0)))
    for name, values in (("attack.pdtp", measured.scores), ("attack.pdtp_gap", measured.own_gaps)):
        assert (found[name].low, found[name].high) == pytest.approx(t_interval(values))
        assert found[name].method == "Student's t over patients, 95 %"


def test_the_reseed_floor_has_a_range_over_seeds_and_no_interval():
    full = logs([-1.0, -2.0], [-1.0], [-1.0])
    seeds = [logs([-1.0, -3.0], [-1.0], [-3.0]), logs([-1.0, -2.0], [-1.5], [-6.5])]
    floor = reseed_floor(leave_out(full, [full] * 3, seeds), ("exact",))
    assert floor.value == pytest.approx((0.5 + 0.25 + 3.75) / 3)
    assert (floor.low, floor.high) == (None, None) and floor.method == ""
    assert "no interval" in floor.why and floor.labels[0] == "exact"
    assert (floor.numbers["least_of_seeds"], floor.numbers["largest_of_seeds"]) == (1.0, 2.0)
    assert floor.labels[-1] == "2 seeds: 1.0000 to 2.0000"
    one = reseed_floor(leave_out(full, [full] * 3, seeds[:1]))
    assert (one.low, one.high, one.value, one.labels[-1]) == (None, None, 1.0, "1 seed")


def test_every_number_says_its_unit_and_the_sign_its_interval():
    rng = np.random.default_rng(3)
    all_positive = measures(findings(leave_out(*noisy(rng, 12, 3.0)), rng))
    units = {name.partition("_")[2]: f.labels[-1] for name, f in all_positive.items()}
    assert units == {"": "nats", "gap": "nats per token", "sign": "share of units"}
    sign = all_positive["attack.pdtp_sign"]
    assert (sign.low, sign.high) == pytest.approx(clopper_pearson(12, 12)) and sign.count == 12
    mixed = measures(findings(leave_out(*noisy(rng, 12, 0.0)), rng))["attack.pdtp_sign"]
    assert 0 < mixed.value < 1 and mixed.count < 12
    assert "Clopper-Pearson" in sign.method


@pytest.mark.parametrize(
    ("full", "others", "message"),
    [
        (logs([-1.0]), [logs([-1.0])], "two or more"),
        (logs([-1.0], [-1.0]), [logs([-1.0], [-1.0])], "1 leave-outs of 2"),
        (logs([-1.0], []), [logs([-1.0], [])] * 2, "no scored word"),
        (logs([-1.0], [-1.0]), [logs([-1.0, -2.0], [-1.0])] * 2, "different words"),
        (logs([-1.0], [-1.0]), [logs([-math.inf], [-1.0])] * 2, "zero probability"),
    ],
)
def test_what_does_not_fit_is_refused(full, others, message):
    with pytest.raises(InputError if "probability" in message else ValueError, match=message):
        leave_out(full, others)


def by_retraining(counts, unit, alpha):
    """The definition: two models, every word of the unit."""
    left = counts.copy()
    for row in unit:
        left[row] -= 1
    total = counts.sum() + alpha * counts.size
    total_left = left.sum() + alpha * counts.size
    return max(
        abs(math.log((counts[r] + alpha) / total) - math.log((left[r] + alpha) / total_left))
        for r in unit
    )


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=2, max_size=6),
    st.sampled_from([0.1, 1.0, 2.0]),
)
def test_unigram_equals_two_trained_models(notes, alpha):
    counts = np.bincount([row for note in notes for row in note], minlength=7)
    units = [tuple(np.unique(note, return_counts=True)) for note in notes]
    scores = unigram_pdtp(counts, units, alpha)
    expected = [by_retraining(counts, note, alpha) for note in notes]
    assert np.abs(scores - expected).max() <= 1e-12


def test_unigram_by_hand():
    # Words: a 3 times, b once; the unit holds "a b": a: |log 4/6 - log 3/4|, b: |log 2/6 - log
    # 1/4|.
    scores = unigram_pdtp(np.array([3, 1]), [(np.array([0, 1]), np.array([1, 1]))])
    assert scores[0] == pytest.approx(
        max(abs(math.log(4 / 6 / (3 / 4))), abs(math.log(2 / 6 / (1 / 4))))
    )


@pytest.mark.parametrize(
    ("units", "alpha"),
    [
        ([(np.array([0]), np.array([4]))], 1.0),
        ([(np.array([], dtype=int), np.array([], dtype=int))], 1.0),
        ([], 0.0),
    ],
)
def test_unigram_refuses_what_cannot_be(units, alpha):
    with pytest.raises(ValueError, match=r"unit has no word|constant"):
        unigram_pdtp(np.array([3, 1]), units, alpha)
