"""Two releases of the same notes: exact against brute force, better than one, blind where nothing is to be found."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import channel_of, random_channel

from clinveil.attacks.attack import Context
from clinveil.attacks.channel import two_releases
from clinveil.attacks.channel.two_releases import TwoReleases


def found(one, other, counts, **how):
    words = SimpleNamespace(words=one.words, counts=np.asarray(counts))
    context = Context(channel=one, earlier=other, counts=words)
    return TwoReleases(**how)(context, np.random.default_rng(0))


def by_hand(one, other, counts):
    """The sum over pairs of outputs of the likeliest word's share, written out."""
    prior, first, second = np.asarray(counts) / np.sum(counts), one.matrix().toarray(), other.matrix().toarray()
    pairs = product(range(len(one.words)), repeat=2)
    return sum((prior * first[:-1, a] * second[:-1, b]).max() for a, b in pairs)


@pytest.mark.parametrize("cells", [1, 7, 10**6])
def test_it_equals_brute_force_in_blocks_of_any_size(cells, monkeypatch):
    monkeypatch.setattr(two_releases, "BLOCK", cells)
    rng = np.random.default_rng(3)
    one, other, counts = random_channel(12, 3, rng), random_channel(12, 4, rng), rng.integers(1, 90, 12)
    everything, rare = found(one, other, counts, rare=2)
    assert everything.value == pytest.approx(by_hand(one, other, counts))
    assert everything.detail["alone"] == pytest.approx(one.posterior(counts / counts.sum()).vulnerability)
    assert everything.chance == counts.max() / counts.sum() and everything.n == counts.sum()
    assert everything.value > everything.detail["alone"] > everything.control
    assert rare.value is None or rare.n == counts[counts < 2].sum()


def test_a_second_release_that_tells_nothing_adds_nothing():
    one = random_channel(12, 3, np.random.default_rng(1))
    nothing = channel_of([range(12)] * 12)
    everything, _ = found(one, nothing, np.full(12, 5))
    assert everything.value == pytest.approx(everything.detail["alone"])


def test_a_second_release_in_clear_tells_all():
    one, clear = random_channel(9, 3, np.random.default_rng(1)), channel_of([[i] for i in range(9)])
    assert found(one, clear, np.full(9, 5))[0].value == pytest.approx(1)


def test_only_words_of_both_are_counted_whatever_their_order():
    one, other = random_channel(6, 2, np.random.default_rng(1)), random_channel(9, 2, np.random.default_rng(2))
    everything, _ = found(one, other, np.full(6, 5))
    assert everything.n == 30
    swapped = random_channel(6, 2, np.random.default_rng(1))
    object.__setattr__(swapped, "words", [f"v{i}" for i in range(6)])
    assert found(one, swapped, np.full(6, 5))[0].value is None
