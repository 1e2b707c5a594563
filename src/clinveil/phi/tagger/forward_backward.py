"""The loop over the tokens of one note: forward, backward, and the chance of each label at each place."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import helper, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@helper
def _scores(ids: Ints, at: int, rows: Floats, kinds: Ints, pairs: Floats, into: Floats) -> None:
    """exp(score - highest score) of each label at one place; `ids` has two edges before and two after."""
    highest = -math.inf
    for label in range(into.size):
        score = 0.0
        for seen in range(5):
            score += rows[ids[at + seen], seen, label]
        score += pairs[0, kinds[ids[at + 1]], kinds[ids[at + 2]], label]
        score += pairs[1, kinds[ids[at + 2]], kinds[ids[at + 3]], label]
        score += pairs[2, kinds[ids[at + 1]], kinds[ids[at + 3]], label]
        score += pairs[3, kinds[ids[at]], kinds[ids[at + 2]], label]
        into[label] = score
        highest = max(highest, score)
    for label in range(into.size):
        into[label] = math.exp(into[label] - highest)


@helper
def _to_one(values: Floats) -> None:
    """Scale to a sum of 1."""
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
    """The chance of each label at each token.

    Args:
        ids: of the tokens, with two edges before and two after them.
        rows: token x offset x label; the weights of a token's properties, summed.
        kinds: the coarse kind of each token. pairs: pair x kind x kind x label.
        moves: exp of the weight of one label after another, from x to.

    Returns:
        token x label; each row sums to 1.
    """
    size, labels = ids.size - 4, moves.shape[0]
    here, chances = np.empty((size, labels)), np.empty((size, labels))
    before, behind, moved = np.ones(labels), np.ones(labels), np.empty(labels)
    for at in range(size):
        _scores(ids, at, rows, kinds, pairs, here[at])
        if at > 0:
            _move(before, moves, moved)
        for label in range(labels):
            before[label] = here[at, label] * (moved[label] if at > 0 else 1.0)
        _to_one(before)
        chances[at] = before
    for at in range(size - 1, -1, -1):
        for label in range(labels):
            chances[at, label] *= behind[label]
            before[label] = here[at, label] * behind[label]
        _to_one(chances[at])
        _move(before, moves.T, behind)
        _to_one(behind)
    return chances
