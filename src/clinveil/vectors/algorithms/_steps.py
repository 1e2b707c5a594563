"""The inner loop of skip-gram with negative samples.

Each word of the text is a centre. Every word around it is trained to distinguish the centre from `negative` random
words. All words around a centre share these samples (Ji, Satish, Li and Dubey, Parallelizing Word2Vec in Shared and
Distributed Memory, 2016), so a centre reads a few rows from memory instead of hundreds, even for large vocabularies.

A lane updates copies of the rows that it uses. Its changes are added to the model afterwards, lane by lane, so the
result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import INLINED, compiled, helper, kernel
from clinveil.core.types import Floats, Ints
from clinveil.vectors.sentences import Ids

# Sums may be reordered, so that loops over dimensions compile to vector instructions; NaN is still handled.
_FAST = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}}
_AT_ONCE = 6  # targets per loop over the dimensions: all of the default
_END = -1  # `sentences.END`: a kernel may use constants of its own file only


class Model(NamedTuple):
    """Trained vectors and the distribution of negative samples.

    Attributes:
        inputs, outputs: (n_words, dim) vectors of words around a centre, and of centres and samples.
        cumulative: (n_words,) probability that a sample is this word or one before; the last is 1.
        guide: (g,) the first word with a cumulative probability above i / g, where the search for a draw begins.
    """

    inputs: Floats
    outputs: Floats
    cumulative: NDArray[np.float64]
    guide: Ids


class Side(NamedTuple):
    """Copies of rows of one matrix: `vectors[slot]` is a copy of `rows[slot]`; `slots[row]` is -1 if there is none.

    `used[0]` is the number of slots in use. When a lane is done, `vectors` contains the changes of the rows.
    """

    slots: Ids
    rows: Ids
    vectors: Floats
    used: Ids


class Lane(NamedTuple):
    """Working memory of a lane: copies of rows, and the targets of the current centre with their gradients."""

    inputs: Side
    outputs: Side
    targets: Ids
    held: Floats
    gains: Floats
    old: Floats


class Rule(NamedTuple):
    """The largest window, the number of negative samples, and the learning rate."""

    window: int
    negative: int
    alpha: np.float32


def new_lane(n_words: int, dim: int, *, centres: int, window: int, negative: int) -> Lane:
    """Return a lane for `centres` centres at a time."""

    def side(capacity: int) -> Side:
        slots = np.full(n_words, -1, np.int32)
        return Side(slots, np.empty(capacity, np.int32), np.empty((capacity, dim), np.float32), np.zeros(1, np.int32))

    width = -(-(negative + 1) // _AT_ONCE) * _AT_ONCE
    return Lane(
        side(min(n_words, centres + 2 * window)),
        side(min(n_words, centres * (negative + 1))),
        np.zeros(width, np.int32),
        np.zeros((width, dim), np.float32),
        np.zeros(width, np.float32),
        np.empty(dim, np.float32),
    )


@kernel
def subsample_lines(ids: Ids, starts: Ints, order: Ints, keep: Floats, rng: np.random.Generator, kept: Ids) -> int:
    """Copy lines in the given order and keep each word with its probability; return the length.

    Args:
        ids: words, `END` after each line. starts: (lines,) starts of lines. order: (lines,) permutation.
        keep: (n_words,) the probability that an occurrence is kept; 1 or more keeps all.
        kept: output of the size of `ids`, with `END` after each line.
    """
    length = 0
    for line in order:
        at = starts[line]
        while ids[at] != _END:
            word = ids[at]
            if keep[word] >= 1 or rng.random() < keep[word]:
                kept[length] = word
                length += 1
            at += 1
        kept[length] = _END
        length += 1
    return length


@helper
def _copied(side: Side, matrix: Floats, row: int) -> int:
    """Return the slot of a row; copy the row if it has none."""
    slot = side.slots[row]
    if slot < 0:
        slot = side.used[0]
        side.used[0] += 1
        side.slots[row], side.rows[slot] = slot, row
        for k in range(matrix.shape[1]):
            side.vectors[slot, k] = matrix[row, k]
    return slot


@helper
def _draw_targets(centre: int, model: Model, lane: Lane, negative: int, rng: np.random.Generator) -> int:
    """Set the targets of a centre: the centre and distinct negative samples; return the number of targets."""
    n_targets = 1
    lane.targets[0] = _copied(lane.outputs, model.outputs, centre)
    for _ in range(negative):
        draw = rng.random()
        word = model.guide[int(draw * model.guide.size)]
        while model.cumulative[word] < draw:
            word += 1
        slot = _copied(lane.outputs, model.outputs, word)
        new = True
        for other in range(n_targets):
            new = new and lane.targets[other] != slot
        if new:
            lane.targets[n_targets] = slot
            n_targets += 1
    for target in range(lane.targets.size):
        held, vector = lane.held[target], lane.outputs.vectors[lane.targets[target]]
        for k in range(held.size):
            held[k] = vector[k] if target < n_targets else 0
    return n_targets


@compiled(**_FAST, **INLINED)
def _step(vector: Floats, lane: Lane, n_targets: int, alpha: np.float32) -> None:
    """Update the vector of one word around the centre and those of all targets, from the same old vectors."""
    held, gains, old, dim = lane.held, lane.gains, lane.old, vector.size
    for first in range(0, n_targets, _AT_ONCE):
        t0, t1, t2 = held[first], held[first + 1], held[first + 2]
        t3, t4, t5 = held[first + 3], held[first + 4], held[first + 5]
        a = b = c = d = e = f = np.float32(0)
        for k in range(dim):
            x = vector[k]
            a, b, c = a + x * t0[k], b + x * t1[k], c + x * t2[k]
            d, e, f = d + x * t3[k], e + x * t4[k], f + x * t5[k]
        gains[first], gains[first + 1], gains[first + 2] = a, b, c
        gains[first + 3], gains[first + 4], gains[first + 5] = d, e, f
    for target in range(gains.size):
        wanted = np.float32(1) if target == 0 else np.float32(0)
        predicted = np.float32(1) / (np.float32(1) + np.exp(-gains[target]))
        gains[target] = (wanted - predicted) * alpha if target < n_targets else np.float32(0)
    for k in range(dim):
        old[k] = vector[k]
    for first in range(0, n_targets, _AT_ONCE):
        t0, t1, t2 = held[first], held[first + 1], held[first + 2]
        t3, t4, t5 = held[first + 3], held[first + 4], held[first + 5]
        a, b, c = gains[first], gains[first + 1], gains[first + 2]
        d, e, f = gains[first + 3], gains[first + 4], gains[first + 5]
        for k in range(dim):
            x, x0, x1, x2, x3, x4, x5 = old[k], t0[k], t1[k], t2[k], t3[k], t4[k], t5[k]
            vector[k] += a * x0 + b * x1 + c * x2 + d * x3 + e * x4 + f * x5
            t0[k], t1[k], t2[k] = x0 + a * x, x1 + b * x, x2 + c * x
            t3[k], t4[k], t5[k] = x3 + d * x, x4 + e * x, x5 + f * x


@compiled(**_FAST)
def train_lane(ids: Ids, first: int, last: int, model: Model, lane: Lane, rule: Rule, rng: np.random.Generator) -> None:
    """Train on the centres from `first` to before `last`; windows do not cross lines.

    Changes only the lane; `add_changes` applies the changes to `model`.

    Source: Mikolov et al., Distributed Representations of Words and Phrases and their Compositionality, 2013.
    """
    for centre in range(first, last):
        if ids[centre] == _END:
            continue
        reach = 1 + int(rng.random() * rule.window)
        n_targets = _draw_targets(ids[centre], model, lane, rule.negative, rng)
        for step in (-1, 1):
            at = centre + step
            while abs(at - centre) <= reach and 0 <= at < ids.size and ids[at] != _END:
                slot = _copied(lane.inputs, model.inputs, ids[at])
                _step(lane.inputs.vectors[slot], lane, n_targets, rule.alpha)
                at += step
        for target in range(n_targets):
            held, vector = lane.held[target], lane.outputs.vectors[lane.targets[target]]
            for k in range(held.size):
                vector[k] = held[k]
    _subtract(lane.inputs, model.inputs)
    _subtract(lane.outputs, model.outputs)


@helper
def _subtract(side: Side, matrix: Floats) -> None:
    for slot in range(side.used[0]):
        row = side.rows[slot]
        for k in range(matrix.shape[1]):
            side.vectors[slot, k] -= matrix[row, k]


@kernel
def add_changes(side: Side, matrix: Floats) -> None:
    """Add the changes of a lane to a matrix, and clear the lane."""
    for slot in range(side.used[0]):
        row = side.rows[slot]
        side.slots[row] = -1
        for k in range(matrix.shape[1]):
            matrix[row, k] += side.vectors[slot, k]
    side.used[0] = 0
