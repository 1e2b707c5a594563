"""The inner loop of skip-gram with negative samples.

Each word of the text, a centre, is told from `negative` words drawn at random, by every word around it. The words drawn
are the same for all words around a centre (Ji, Satish, Li and Dubey, Parallelizing Word2Vec in Shared and Distributed
Memory, 2016): so a centre costs a handful of rows from memory instead of hundreds, and the vocabulary may be large.

A lane works on copies of the rows that it meets, and what it changed is added to the model afterwards, lane by lane:
so the result does not depend on how many threads walk the lanes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core.compiled import compiled, helper, kernel
from clinveil.core.types import Floats, Ints
from clinveil.vectors.encoded import Ids

# Sums may be reordered, so that the loops over dimensions become vector instructions; NaN keeps its meaning.
_FAST = {"error_model": "numpy", "fastmath": {"reassoc", "contract", "arcp", "nsz"}}
_AT_ONCE = 3  # targets that one loop over the dimensions serves
_END = -1  # `encoded.END`: a kernel uses constants of its own file alone


class Model(NamedTuple):
    """What is learnt, and what negative samples are drawn by.

    Attributes:
        inputs, outputs: (n_words, dim) of each word as one around a centre, and as a centre or a sample.
        cumulative: (n_words,) chance that a sample is this word or one before; the last is 1.
        guide: (g,) the first word with a cumulative chance above i / g, where the search for a draw begins.
    """

    inputs: Floats
    outputs: Floats
    cumulative: NDArray[np.float64]
    guide: Ids


class Side(NamedTuple):
    """Copies of rows of one matrix: `rows[slot]` is copied in `vectors[slot]`; `slots[row]` is -1 where there is none.

    Of `used[0]` slots. When a lane is done, `vectors` holds what it adds to the rows.
    """

    slots: Ids
    rows: Ids
    vectors: Floats
    used: Ids


class Lane(NamedTuple):
    """What one lane works on: copies of rows, and the targets of the centre at hand with their gains."""

    inputs: Side
    outputs: Side
    targets: Ids
    held: Floats
    gains: Floats
    change: Floats


class Rule(NamedTuple):
    """The largest window, how many samples a centre is told from, and the step."""

    window: int
    negative: int
    alpha: np.float32


def new_lane(n_words: int, dim: int, *, centres: int, window: int, negative: int) -> Lane:
    """A lane for stretches of so many centres."""

    def side(capacity: int) -> Side:
        slots = np.full(n_words, -1, np.int32)
        return Side(slots, np.empty(capacity, np.int32), np.empty((capacity, dim), np.float32), np.zeros(1, np.int32))

    width = -(-(negative + 1) // _AT_ONCE) * _AT_ONCE
    return Lane(
        side(min(n_words, centres + 2 * window)),
        side(min(n_words, centres * (negative + 1))),
        np.empty(width, np.int32),
        np.zeros((width, dim), np.float32),
        np.zeros(width, np.float32),
        np.empty(dim, np.float32),
    )


@kernel
def thin_lines(ids: Ids, starts: Ints, order: Ints, keep: Floats, rng: np.random.Generator, kept: Ids) -> int:
    """Copy lines in the given order, each word with its chance; return the length, with `END` after each line.

    Args:
        ids: words, `END` after each line. starts: (lines,) where lines start. order: (lines,) permutation.
        keep: (n_words,) the chance that an occurrence is trained on; 1 and more always is.
        kept: room for as many as `ids`.
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
    """The slot of a row, which is copied where it is new."""
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
    """Slots of the centre and of different words drawn beside it, and their vectors; return how many there are."""
    found = 1
    lane.targets[0] = _copied(lane.outputs, model.outputs, centre)
    for _ in range(negative):
        draw = rng.random()
        word = model.guide[int(draw * model.guide.size)]
        while model.cumulative[word] < draw:
            word += 1
        slot = _copied(lane.outputs, model.outputs, word)
        new = True
        for other in range(found):
            new = new and lane.targets[other] != slot
        if new:
            lane.targets[found] = slot
            found += 1
    for target in range(lane.targets.size):
        for k in range(lane.change.size):
            lane.held[target, k] = lane.outputs.vectors[lane.targets[target], k] if target < found else 0
    return found


@compiled(**_FAST)
def _tell(vector: Floats, lane: Lane, found: int, alpha: np.float32) -> None:
    """One step of one word around the centre: its vector and those of all targets, by the same old vectors."""
    held, gains, change, dim = lane.held, lane.gains, lane.change, vector.size
    for first in range(0, found, _AT_ONCE):
        one, two, three = held[first], held[first + 1], held[first + 2]
        a = b = c = np.float32(0)
        for k in range(dim):
            a += vector[k] * one[k]
            b += vector[k] * two[k]
            c += vector[k] * three[k]
        gains[first], gains[first + 1], gains[first + 2] = a, b, c
    for target in range(gains.size):
        wanted = np.float32(1) if target == 0 else np.float32(0)
        told = np.float32(1) / (np.float32(1) + np.exp(-gains[target]))
        gains[target] = (wanted - told) * alpha if target < found else np.float32(0)
    change[:] = 0
    for first in range(0, found, _AT_ONCE):
        one, two, three = held[first], held[first + 1], held[first + 2]
        a, b, c = gains[first], gains[first + 1], gains[first + 2]
        for k in range(dim):
            change[k] += a * one[k] + b * two[k] + c * three[k]
            one[k] += a * vector[k]
            two[k] += b * vector[k]
            three[k] += c * vector[k]
    for k in range(dim):
        vector[k] += change[k]


@compiled(**_FAST)
def walk_lane(ids: Ids, first: int, last: int, model: Model, lane: Lane, rule: Rule, rng: np.random.Generator) -> None:
    """Train on the centres from `first` to before `last`, by the words around them; windows end where a line does.

    Changes the lane alone: `model` is as it was until `add_changes` is called.

    Source: Mikolov et al., Distributed Representations of Words and Phrases and their Compositionality, 2013.
    """
    for place in range(first, last):
        if ids[place] == _END:
            continue
        reach = 1 + int(rng.random() * rule.window)
        found = _draw_targets(ids[place], model, lane, rule.negative, rng)
        for step in (-1, 1):
            at = place + step
            while abs(at - place) <= reach and 0 <= at < ids.size and ids[at] != _END:
                slot = _copied(lane.inputs, model.inputs, ids[at])
                _tell(lane.inputs.vectors[slot], lane, found, rule.alpha)
                at += step
        for target in range(found):
            for k in range(lane.change.size):
                lane.outputs.vectors[lane.targets[target], k] = lane.held[target, k]
    _less(lane.inputs, model.inputs)
    _less(lane.outputs, model.outputs)


@helper
def _less(side: Side, matrix: Floats) -> None:
    for slot in range(side.used[0]):
        row = side.rows[slot]
        for k in range(matrix.shape[1]):
            side.vectors[slot, k] -= matrix[row, k]


@kernel
def add_changes(side: Side, matrix: Floats) -> None:
    """Add what a lane changed, and leave it empty."""
    for slot in range(side.used[0]):
        row = side.rows[slot]
        side.slots[row] = -1
        for k in range(matrix.shape[1]):
            matrix[row, k] += side.vectors[slot, k]
    side.used[0] = 0
