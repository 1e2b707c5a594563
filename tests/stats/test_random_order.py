"""Phrases by chance: against all orders of tiny notes, the level and the power of the test by
simulation.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinveil.stats.random_order import (
    SELDOM,
    PhraseOdds,
    found_p,
    found_refused_from,
    one_refused_below,
)
from clinveil.stats.refusals import ALPHA

few_words = st.lists(st.sampled_from("abc"), max_size=7)


@given(few_words, st.lists(st.sampled_from("abc"), min_size=2, max_size=4))
def test_the_chance_is_that_of_all_orders(note, phrase):
    """Repeated words, phrases longer than the note and words that are not there among them."""
    starts = range(len(note) - len(phrase) + 1)
    found = [
        sum(list(order[i : i + len(phrase)]) == phrase for i in starts)
        for order in permutations(note)
    ]
    odds = PhraseOdds.of(phrase)
    held = [note.count(word) for word in odds.words]
    assert odds.times(held, len(note)) == pytest.approx(np.mean(found))
    chance = odds.chance(held, len(note))
    truth = np.mean([n > 0 for n in found])
    assert chance >= truth - 1e-12 if odds.overlaps else chance == pytest.approx(truth)
    assert not (odds.overlaps and len(set(phrase)) == len(phrase))


def test_the_chance_holds_at_both_ends():
    """Words that are half of the note stand together surely; ten that stand once in a thousand
    words hardly ever.
    """
    assert PhraseOdds.of(["a", "b"]).chance([500, 500], 1_000) == 1.0
    assert PhraseOdds.of(["a", "b"]).chance([60, 60], 240) == pytest.approx(1.0, abs=1e-5)
    ten = PhraseOdds.of([f"w{i}" for i in range(10)])
    assert 0 < ten.chance([1] * 10, 1_000) < 1e-26
    assert PhraseOdds.of(["a", "b"]).chance([1, 1], 280) == pytest.approx(1 / 280)


def releases(rng, chances, n):
    """Refused share of n releases in which phrases stand by chance alone, the second half with the
    first: nested.
    """
    refused = 0
    for _ in range(n):
        drawn = rng.random(chances.size)
        whose = np.arange(chances.size)
        both = (
            np.append(chances, chances),
            np.append(drawn < chances, drawn < chances),
            np.append(whose, whose),
        )
        refused += found_p(chances, drawn < chances, whose) < ALPHA
        assert found_p(*both) >= found_p(chances, drawn < chances, whose)
    return refused / n


@pytest.mark.parametrize("expected", [0.004, 0.05, 0.3, 2.0, 20.0])
def test_the_level_is_kept(expected):
    """Phrases of all kinds: chances over six orders of magnitude, some patients' sure to stand
    there.
    """
    rng = np.random.default_rng(int(expected * 1_000))
    spread = 10 ** rng.uniform(-6, 0, 400)
    chances = np.minimum(spread * expected / spread.sum(), 1.0)
    assert releases(rng, chances, 2_000) <= ALPHA + 3 * (ALPHA / 2_000) ** 0.5


@pytest.mark.parametrize("expected", [0.0, 0.004, 0.3, 5.0])
def test_the_power_is_that_of_phrases_left_in(expected):
    rng = np.random.default_rng(7)
    chances = expected * rng.dirichlet(np.ones(50)) if expected else np.zeros(50)
    limit = one_refused_below(chances)
    many = found_refused_from(expected)

    def refused(*left):
        """Whether so many, each of such a chance, are refused where nothing stands there by
        chance.
        """
        both = np.append(chances, left)
        whose = np.arange(50 + len(left))
        return found_p(both, whose >= 50, whose) < ALPHA

    assert refused(0.99 * limit) and not refused(1.01 * limit)
    assert refused(*[SELDOM] * many)
    assert many == 2 or not refused(*[SELDOM] * (many - 1))
    assert found_p(chances, np.zeros(50, dtype=bool), np.arange(50)) == 1.0


def test_one_that_cannot_be_chance_is_refused_among_many_that_are():
    chances = np.append(np.full(20_000, 1 / 280), 1e-9)
    found = np.random.default_rng(1).random(20_001) < chances
    found[-1] = False
    assert found.sum() > 40 and found_p(chances, found, np.arange(20_001)) > ALPHA
    found[-1] = True
    assert found_p(chances, found, np.arange(20_001)) == pytest.approx(1e-9 / 0.8)
