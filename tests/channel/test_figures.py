"""Exact figures of a channel against brute force over dense tables: dropped words, an unknown row, kept words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel.channel import Channel
from clinveil.channel.posterior import entropy


@st.composite
def channels(draw, priors=1):
    """A sparse channel with empty rows, rows in no order, and kept words; priors over its rows, 0 now and then."""
    n = draw(st.integers(2, 7))
    rows = []
    for _ in range(n + 1):
        outputs = draw(st.lists(st.integers(0, n - 1), max_size=4, unique=True))
        weights = draw(st.lists(st.integers(1, 5), min_size=len(outputs), max_size=len(outputs)))
        rows.append((outputs, [w / sum(weights) for w in weights]))
    channel = Channel(
        words=[f"w{i}" for i in range(n)],
        indptr=np.cumsum([0, *(len(outputs) for outputs, _ in rows)]).astype(np.int64),
        indices=np.array([y for outputs, _ in rows for y in outputs], dtype=np.int32),
        probabilities=np.array([p for _, chances in rows for p in chances], dtype=np.float64),
        eligible=np.ones(n, dtype=bool),
    ).keeping(draw(st.sets(st.sampled_from([f"w{i}" for i in range(n)]), max_size=2)))
    spoken = np.flatnonzero(channel.speaks)
    prior = st.lists(st.integers(0, 20), min_size=n + 1, max_size=n + 1)
    prior = prior.map(np.array).filter(lambda tokens: spoken.size == 0 or tokens[spoken].any())
    return channel, *(draw(prior) * channel.speaks for _ in range(priors))


def every_pair(channel):
    n = channel.unknown + 1
    return np.repeat(np.arange(n), n), np.tile(np.arange(n), n)


def with_nothing(channel):
    """The dense table, with a last output for dropped words."""
    table = channel.matrix().toarray()
    return np.column_stack([table, ~channel.speaks])


@given(channels(priors=2))
@settings(max_examples=150, deadline=None)
def test_guesses_equal_brute_force(case):
    channel, prior, truth = case
    if not prior.any():
        return
    table, posterior = channel.matrix().toarray(), channel.posterior(prior)
    joint = (table.T * prior).T
    assert posterior.prior_vulnerability == prior.max()
    assert posterior.leakage == pytest.approx(math.log2(joint.max(axis=0).sum() / prior.max()), abs=1e-9)
    read = np.zeros(prior.size)
    for y in range(table.shape[1]):
        if joint[:, y].any():
            best = int(joint[:, y].argmax())
            read[best] += table[best, y]
    assert posterior.read @ prior == pytest.approx(joint.max(axis=0).sum())
    unique = [y for y in range(table.shape[1]) if np.sum(np.isclose(joint[:, y], joint[:, y].max())) == 1]
    if len(unique) == np.count_nonzero(joint.any(axis=0)):  # no ties, which rounding may break otherwise
        assert posterior.read == pytest.approx(read) and posterior.read @ truth == pytest.approx(read @ truth)
    assert posterior.single().tolist() == ((joint > 0).sum(axis=0) == 1).tolist()
    if prior[-1]:
        several = (joint > 0).sum(axis=0) + 2 * (table[-1] > 0)
        assert posterior.single(types=3).tolist() == (several == 1).tolist()


@given(channels())
@settings(max_examples=150, deadline=None)
def test_bits_equal_brute_force(case):
    channel, prior = case
    table = channel.matrix().toarray()
    most = table.max(axis=0).sum()
    assert channel.capacity() == pytest.approx(math.log2(most) if most else 0.0)
    if prior.any():
        occurs = table[prior > 0].max(axis=0).sum()
        assert channel.capacity(prior > 0) == pytest.approx(math.log2(occurs))
        joint = (table.T * prior).T / prior.sum()
        bits = entropy(prior) + entropy(joint.sum(axis=0)) - entropy(joint.ravel())
        assert channel.mutual_information(prior) == pytest.approx(bits, abs=1e-9)
        assert channel.mutual_information(prior) + channel.bits_left(prior) == pytest.approx(entropy(prior), abs=1e-9)
        assert channel.posterior(prior).leakage <= channel.capacity(prior > 0) + 1e-9


@given(channels())
@settings(max_examples=100, deadline=None)
def test_pairs_equal_brute_force(case):
    channel, _ = case
    table, (one, other), epsilons = with_nothing(channel), every_pair(channel), np.array([0.0, 0.5, 1.0, 3.0])
    first, second = table[one], table[other]
    assert channel.total_variation(one, other) == pytest.approx(np.abs(first - second).sum(axis=1) / 2)
    found = channel.deltas(one, other, epsilons)
    for place, factor in enumerate(np.exp(epsilons)):
        forth = np.maximum(0, first - factor * second).sum(axis=1)
        back = np.maximum(0, second - factor * first).sum(axis=1)
        assert found[:, place] == pytest.approx(np.maximum(forth, back))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(first == second, 0.0, np.abs(np.log(first / second))).max(axis=1)
    assert channel.epsilons(one, other) == pytest.approx(ratios)
    private = np.isfinite(ratios)
    exactly = [
        channel.deltas(one[i : i + 1], other[i : i + 1], ratios[i : i + 1])[0, 0] for i in np.flatnonzero(private)
    ]
    assert exactly == pytest.approx([0.0] * int(private.sum()), abs=1e-9)


@given(channels(), st.sampled_from([0.0, 0.05, 0.3, 0.9]))
@settings(max_examples=100, deadline=None)
def test_the_spread_equals_brute_force(case, eta):
    channel, _ = case
    for row, size in enumerate(channel.spread(eta).tolist()):
        chances = np.sort(channel.row(row)[1])[::-1]
        held = np.concatenate([[0.0], np.cumsum(chances)])
        assert size == (0 if not chances.size else int(np.argmax(held >= 1 - eta - 1e-9)))


def test_clusters_have_epsilon_0_inside_and_none_between_them():
    outputs = [[0, 1, 2]] * 3 + [[3, 4, 5]] * 3
    flat = np.array([y for row in outputs for y in row], dtype=np.int32)
    indptr = np.array([0, 3, 6, 9, 12, 15, 18, 18])
    channel = Channel([f"w{i}" for i in range(6)], indptr, flat, np.full(18, 1 / 3), np.ones(6, dtype=bool))
    inside, between = (np.array([0, 4]), np.array([2, 5])), (np.array([0, 2]), np.array([3, 5]))
    assert channel.epsilons(*inside).tolist() == [0, 0] and channel.total_variation(*inside).tolist() == [0, 0]
    assert channel.epsilons(*between).tolist() == [math.inf] * 2
    assert channel.deltas(*between, np.array([8.0])) == pytest.approx(np.ones((2, 1)))
    assert channel.spread().tolist() == [3] * 6 + [0] and channel.capacity() == pytest.approx(1.0)


def test_an_eta_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match="eta must be"):
        Channel(["a"], np.array([0, 1, 1]), np.zeros(1, dtype=np.int32), np.ones(1), np.ones(1, dtype=bool)).spread(1.0)
