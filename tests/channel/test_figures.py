"""Exact figures of a channel against brute force over dense tables: dropped words, an unknown row,
kept words.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.channel import Channel


@st.composite
def channels(draw):
    """A sparse channel with empty rows, rows in no order, and kept words; a prior over its rows, 0
    now and then.
    """
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
    spoken = np.flatnonzero(channel.has_output)
    prior = st.lists(st.integers(0, 20), min_size=n + 1, max_size=n + 1)
    prior = prior.map(np.array).filter(lambda tokens: spoken.size == 0 or tokens[spoken].any())
    return channel, draw(prior) * channel.has_output


@given(channels())
@settings(max_examples=150, deadline=None)
def test_guesses_equal_brute_force(case):
    channel, prior = case
    if not prior.any():
        return
    table = channel.matrix().toarray()
    posterior = channel.posterior(prior)
    joint = (table.T * prior).T
    rows, won = posterior.best
    assert won == pytest.approx(joint.max(axis=0)) and posterior.vulnerability == pytest.approx(
        won.sum()
    )
    assert all(
        joint[rows[y], y] == pytest.approx(won[y]) for y in np.flatnonzero(rows >= 0).tolist()
    )
    assert posterior.single().tolist() == ((joint > 0).sum(axis=0) == 1).tolist()
    if prior[-1]:
        several = (joint > 0).sum(axis=0) + 2 * (table[-1] > 0)
        assert posterior.single(types=3).tolist() == (several == 1).tolist()
