"""Forward-backward algorithm: the marginal probability of each label at each token of a note."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import helper, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@helper
def _scores(ids: Ints, at: int, rows: Floats, kinds: Ints, pairs: Floats, into: Floats) -> None:
    """Compute exp(score - highest score) of each label at one token; `ids` has two edge tokens at either end."""
    highest = -math.inf
    for label in range(into.size):
        score = 0.0
        for offset in range(5):
            score += rows[ids[at + offset], offset, label]
        score += pairs[0, kinds[ids[at + 1]], kinds[ids[at + 2]], label]
        score += pairs[1, kinds[ids[at + 2]], kinds[ids[at + 3]], label]
        score += pairs[2, kinds[ids[at + 1]], kinds[ids[at + 3]], label]
        score += pairs[3, kinds[ids[at]], kinds[ids[at + 2]], label]
        into[label] = score
        highest = max(highest, score)
    for label in range(into.size):
        into[label] = math.exp(into[label] - highest)


@helper
def _normalise(values: Floats) -> None:
    """Normalise to a sum of 1."""
    total = 0.0
    for at in range(values.size):
        total += values[at]
    for at in range(values.size):
        values[at] /= total


@helper
def _move(values: Floats, moves: Floats, into: Floats) -> None:
    for to in range(into.size):
        into[to] = 0.0
        for source in range(values.size):
            into[to] += values[source] * moves[source, to]


@kernel
def marginals(ids: Ints, rows: Floats, kinds: Ints, pairs: Floats, moves: Floats) -> Floats:
    """Return the marginal probability of each label at each token.

    Args:
        ids: row numbers of the tokens, with two edge tokens before and after them.
        rows: token x offset x label; summed weights of a token's properties.
        kinds: coarse kind of each token.
        pairs: pair x kind x kind x label.
        moves: exp of the transition weights, from x to.

    Returns:
        token x label; each row sums to 1.
    """
    size, labels = ids.size - 4, moves.shape[0]
    scores, marginal = np.empty((size, labels)), np.empty((size, labels))
    before, behind, moved = np.ones(labels), np.ones(labels), np.empty(labels)
    for at in range(size):
        _scores(ids, at, rows, kinds, pairs, scores[at])
        if at > 0:
            _move(before, moves, moved)
        for label in range(labels):
            before[label] = scores[at, label] * (moved[label] if at > 0 else 1.0)
        _normalise(before)
        marginal[at] = before
    for at in range(size - 1, -1, -1):
        for label in range(labels):
            marginal[at, label] *= behind[label]
            before[label] = scores[at, label] * behind[label]
        _normalise(marginal[at])
        _move(before, moves.T, behind)
        _normalise(behind)
    return marginal
