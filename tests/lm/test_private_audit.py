"""Lower bounds of epsilon from one run: the formula, honest mechanisms below epsilon, and faults
that are caught.
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
from private_cases import public_text
from scipy import stats

from clinveil.core import Key
from clinveil.lm import Audit, Layout, PublicText, audited_table, summed
from clinveil.lm.private import audit
from clinveil.lm.private.audit import guessed
from clinveil.lm.private.gaussian import noise_for

PUBLIC = public_text()
LAYOUT = Layout(2, len(PUBLIC.ids))
EPSILON = 1.0
DELTA = 1e-3
SIGMA = noise_for(EPSILON, DELTA)


def test_binomial_tails_by_hand():
    """W = number of correct guesses of randomized response; P[W >= v] + 2 m delta max_i P[v > W >=
    v - i] / i.
    """
    two = Audit(
        canaries=4, guesses=2, correct=2, delta=0.01
    )  # W of 2 guesses with q = 3/4: 1/16, 6/16, 9/16
    assert two.p_value(log(3)) == pytest.approx(9 / 16 + 2 * 4 * 0.01 * 6 / 16)
    four = Audit(canaries=10, guesses=4, correct=4, delta=0.001)  # q = 1/2: 1, 4, 6, 4, 1 of 16
    steepest = max(4 / 16, (4 + 6) / 16 / 2, (4 + 6 + 4) / 16 / 3, 15 / 16 / 4)
    assert steepest == 10 / 32, "not the first term"
    assert four.p_value(0.0) == pytest.approx(1 / 16 + 2 * 10 * 0.001 * 10 / 32)
    assert Audit(4, 2, 0, 0.01).p_value(1.0) == 1.0 and Audit(4, 2, 2, 1.0).p_value(log(3)) == 1.0


def test_bounds_that_the_paper_prints():
    """Appendix D and section 7 of arXiv 2305.08846; the second one is cut after three digits."""
    assert Audit(1000, 100, 75, 1e-4).epsilon == pytest.approx(0.673, abs=5e-4)
    assert Audit(100_000, 1510, 1439, 1e-5).epsilon == pytest.approx(2.675, abs=1e-3)


@pytest.mark.parametrize(("guesses", "correct"), [(20, 20), (100, 75), (1000, 560)])
def test_without_delta_it_is_the_clopper_pearson_limit(guesses, correct):
    lowest = stats.beta.ppf(0.05, correct, guesses - correct + 1)
    assert Audit(5000, guesses, correct, 0.0).epsilon == pytest.approx(
        log(lowest / (1 - lowest)), abs=1e-6
    )
    assert Audit(5000, guesses, guesses // 2, 0.0).epsilon == 0.0


def test_the_guesses_are_the_extremes():
    included = np.array([True, False, True, False, True, False, False, False])
    scores = np.array([9.0, -9.0, 8.0, -8.0, -7.0, 7.0, 0.0, 0.1])
    assert guessed(included, scores, 0.0, 0.5) == Audit(8, 4, 4, 0.0)
    assert guessed(included, scores, 0.0, 0.75) == Audit(8, 6, 4, 0.0)
    assert guessed(included, -scores, 0.0, 0.5).correct == 0


def audits(sigma, n, key=0):
    return [audited_table(PUBLIC, LAYOUT, sigma, DELTA, Key.from_seed(key + i)) for i in range(n)]


def test_the_bound_is_below_epsilon_in_100_private_tables():
    bounds = [one.epsilon for one in audits(SIGMA, 100)]
    assert sum(bound <= EPSILON for bound in bounds) >= 95
    assert np.median(bounds) > 0.05, "the attack has power"


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_too_little_noise_is_caught(noise):
    assert all(one.epsilon > EPSILON for one in audits(noise * SIGMA, 5))


def test_a_limit_per_note_is_caught(monkeypatch):
    """The mechanism with each note as a patient: a canary with five notes contributes a norm of
    5.
    """

    def by_note(notes, public, layout):
        return summed(
            (replace(note, patient=f"{i}") for i, note in enumerate(notes)), public, layout
        )

    monkeypatch.setattr(audit, "summed", by_note)
    assert all(one.epsilon > EPSILON for one in audits(SIGMA, 5))


def test_a_private_vocabulary_is_caught():
    """An attacker looks up the word of each canary in the vocabulary."""
    rng = np.random.default_rng(1)
    included = rng.random(100) < 0.5
    words = [f"canary{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(100)]
    notes = [f"{word} {word}" for word, member in zip(words, included, strict=True) if member]
    for public, caught in ((PUBLIC, False), (PublicText.of([*PUBLIC.texts, *notes]), True)):
        scores = np.array([float(word in public.ids) for word in words])
        assert (guessed(included, scores, DELTA, 0.8).epsilon > EPSILON) == caught


def test_the_table_of_many_words_has_canaries_of_many_words():
    words = [
        f"w{chr(97 + i // 676)}{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}" for i in range(9_000)
    ]
    public = PublicText.of([" ".join(words)] * 2)
    one = audited_table(public, Layout(4, len(public.ids)), 1e-9, 1e-4, Key.from_seed(1))
    assert one == Audit(2_000, 600, 600, 1e-4)
    assert one.epsilon == one.highest > 3
