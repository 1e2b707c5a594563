"""Words that come out unchanged, by distance: by hand, for identity, and for a mechanism that never keeps a word."""

from __future__ import annotations

import numpy as np
import pytest
from test_inversion import channel_of

from clinveil.attacks.channel.name_outputs import unchanged_by_distance

FOUR = channel_of([{0: 0.5, 1: 0.5}, {2: 1.0}, {2: 0.25, 3: 0.75}, {3: 1.0}, {0: 1.0}])
COUNTS = np.array([4, 3, 2, 1])


def of(findings, label="all words"):
    return next(f for f in findings if f.detail["label"] == label)


def test_four_words_by_hand():
    found = unchanged_by_distance(FOUR, COUNTS, np.array([0.1, 0.2, 0.3, 0.4]))
    every = of(found)
    assert every.value == pytest.approx((4 * 0.5 + 2 * 0.25 + 1) / 10)
    assert every.detail["by_word"] == pytest.approx((0.5 + 0 + 0.25 + 1) / 4)
    assert every.n == 10
    # Outputs come out with 0: .2, 1: .2, 2: .35, 3: .25, so a random output is the word itself with:
    assert every.chance == pytest.approx(0.4 * 0.2 + 0.3 * 0.2 + 0.2 * 0.35 + 0.1 * 0.25)
    assert of(found, "tenth 1 by distance").value == 0.5
    assert of(found, "tenth 4 by distance").value == 1.0


def test_identity_and_never():
    identity = channel_of([{i: 1.0} for i in range(4)] + [{0: 1.0}])
    never = channel_of([{(i + 1) % 4: 1.0} for i in range(4)] + [{0: 1.0}])
    distance = np.arange(4.0)
    assert all(f.value == pytest.approx(1) for f in unchanged_by_distance(identity, COUNTS, distance))
    assert all(f.value == 0 for f in unchanged_by_distance(never, COUNTS, distance))


def test_tenths_are_ordered_by_distance():
    found = unchanged_by_distance(FOUR, COUNTS, np.array([0.4, 0.3, 0.2, 0.1]))
    assert of(found, "tenth 1 by distance").value == 1.0
    distances = [f.detail["distance"] for f in found[1:]]
    assert distances == sorted(distances)


def test_words_that_never_occur_say_so():
    found = unchanged_by_distance(FOUR, np.array([0, 3, 2, 1]), np.array([0.1, 0.2, 0.3, 0.4]))
    first = of(found, "tenth 1 by distance")
    assert first.value is None
    assert "occurs" in first.detail["why"]
