"""The inner loop of skip-gram with negative samples.

Each word of the text is a centre. Every word around it is trained to distinguish the centre from
`negative` random words. All words around a centre share these samples (Ji, Satish, Li and Dubey,
Parallelizing Word2Vec in Shared and Distributed Memory, 2016), so a centre reads a few rows from
memory instead of hundreds, even for large vocabularies. Two words are trained at a time, so that a
target in a register is used for both.

A lane updates copies of the rows that it uses. Its changes are added to the model afterwards, lane
by lane, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Floats, Ints, compiled, helper, kernel
from clinveil.vectors.sentences import Ids

_AT_ONCE = 6  # targets per loop over the dimensions: all of the default
_HALF = 8  # two words have a multiple of 16 gradients: whole vector registers
_LARGEST = np.float32(20)  # the sigmoid of larger numbers is 0 or 1 in single precision
_END = -1  # `sentences.END`: a kernel may use constants of its own file only


class SampledVectors(NamedTuple):
    """Trained vectors and the distribution of negative samples.

    Attributes:
        inputs, outputs: (n_words, dim) vectors of words around a centre, and of centres and
            samples.
        cumulative: (n_words,) probability that a sample is this word or one before; the last is 1.
        guide: (g,) the first word with a cumulative probability above i / g, where the search for a
            draw begins.
    """

    inputs: Floats
    outputs: Floats
    cumulative: NDArray[np.float64]
    guide: Ids


class RowCopies(NamedTuple):
    """Copies of rows of one matrix: `vectors[slot]` is a copy of `rows[slot]`; `slots[row]` is -1
    if there is none.

    `used[0]` is the number of slots in use. When a lane is done, `vectors` contains the changes of
    the rows.
    """

    slots: Ids
    rows: Ids
    vectors: Floats
    used: Ids


class Lane(NamedTuple):
    """Working memory of a lane: copies of rows, and the targets of the current centre with their
    gradients.

    `held`: (n, dim) vectors of targets, 0 beyond the last. `wanted`, `rates`, `gains`: (2 m,) with
    m >= n for each
    target, of one word and then of another: the label, the learning rate (0 beyond the last target)
    and the factor of the gradient. `old`: (2, dim) both words before the step. `blank`: (dim,) the
    second word if there is only one.
    """

    inputs: RowCopies
    outputs: RowCopies
    targets: Ids
    held: Floats
    wanted: Floats
    rates: Floats
    gains: Floats
    old: Floats
    blank: Floats


class PairSampling(NamedTuple):
    """The largest window and the number of negative samples."""

    window: int
    negative: int


def new_lane(n_words: int, dim: int, *, centres: int, window: int, negative: int) -> Lane:
    """Return a lane for `centres` centres at a time."""

    def side(capacity: int) -> RowCopies:
        slots = np.full(n_words, -1, np.int32)
        return RowCopies(
            slots,
            np.empty(capacity, np.int32),
            np.empty((capacity, dim), np.float32),
            np.zeros(1, np.int32),
        )

    width = -(-(negative + 1) // _AT_ONCE) * _AT_ONCE
    half = -(-width // _HALF) * _HALF
    return Lane(
        side(min(n_words, centres + 2 * window)),
        side(min(n_words, centres * (negative + 1))),
        np.zeros(width, np.int32),
        np.zeros((width, dim), np.float32),
        (np.arange(2 * half) % half == 0).astype(np.float32),
        np.zeros(2 * half, np.float32),
        np.zeros(2 * half, np.float32),
        np.empty((2, dim), np.float32),
        np.empty(dim, np.float32),
    )


@kernel
def subsample_lines(
    ids: Ids, starts: Ints, order: Ints, keep: Floats, rng: np.random.Generator, kept: Ids
) -> int:
    """Copy lines in the given order and keep each word with its probability; return the length.

    Args:
        ids: words, `END` after each line. starts: (lines,) starts of lines. order: (lines,)
            permutation.
        keep: (n_words,) the probability that an occurrence is kept; 1 or more keeps all.
        kept: output of the size of `ids`, with `END` after each line.
    """
    length = 0
    for line in order:
        position = starts[line]
        while ids[position] != _END:
            word = ids[position]
            if keep[word] >= 1 or rng.random() < keep[word]:
                kept[length] = word
                length += 1
            position += 1
        kept[length] = _END
        length += 1
    return length


@helper
def _copied(side: RowCopies, matrix: Floats, row: int) -> int:
    """Return the slot of a row; copy the row if it has none."""
    slot = side.slots[row]
    if slot < 0:
        slot = side.used[0]
        side.used[0] += 1
        side.slots[row] = slot
        side.rows[slot] = row
        for k in range(matrix.shape[1]):
            side.vectors[slot, k] = matrix[row, k]
    return slot


@helper
def _draw_targets(
    centre: int, model: SampledVectors, lane: Lane, negative: int, rng: np.random.Generator
) -> int:
    """Set the targets of a centre: the centre and distinct negative samples; return the number of
    targets.
    """
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
        held = lane.held[target]
        vector = lane.outputs.vectors[lane.targets[target]]
        for k in range(held.size):
            held[k] = vector[k] if target < n_targets else 0
    return n_targets


@compiled(any_order=True, inlined=True)
def _predict(u: Floats, v: Floats, held: Floats, gains: Floats, first: int) -> None:
    """Set `gains` to the products of two words and six targets."""
    t0 = held[first]
    t1 = held[first + 1]
    t2 = held[first + 2]
    t3 = held[first + 3]
    t4 = held[first + 4]
    t5 = held[first + 5]
    a0 = a1 = a2 = a3 = a4 = a5 = b0 = b1 = b2 = b3 = b4 = b5 = np.float32(0)
    for k in range(u.size):
        x = u[k]
        y = v[k]
        a0 = a0 + x * t0[k]
        a1 = a1 + x * t1[k]
        a2 = a2 + x * t2[k]
        a3 = a3 + x * t3[k]
        a4 = a4 + x * t4[k]
        a5 = a5 + x * t5[k]
        b0 = b0 + y * t0[k]
        b1 = b1 + y * t1[k]
        b2 = b2 + y * t2[k]
        b3 = b3 + y * t3[k]
        b4 = b4 + y * t4[k]
        b5 = b5 + y * t5[k]
    a = gains[first:]
    b = gains[gains.size // 2 + first :]
    a[0] = a0
    a[1] = a1
    a[2] = a2
    a[3] = a3
    a[4] = a4
    a[5] = a5
    b[0] = b0
    b[1] = b1
    b[2] = b2
    b[3] = b3
    b[4] = b4
    b[5] = b5


@compiled(any_order=True, inlined=True)
def _differentiate(lane: Lane) -> None:
    """Replace each product by the factor of its gradient.

    exp(x) is (exp(x / 64))^64 with a polynomial, which compiles to vector instructions. The
    absolute error of the sigmoid is below 2e-6.
    """
    for i in range(lane.gains.size):
        x = max(-_LARGEST, min(_LARGEST, lane.gains[i])) * np.float32(-1 / 64)
        power = np.float32(1 / 24) + x * np.float32(1 / 120)
        power = np.float32(1) + x * (
            np.float32(1) + x * (np.float32(1 / 2) + x * (np.float32(1 / 6) + x * power))
        )
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        lane.gains[i] = (
            lane.wanted[i] - np.float32(1) / (np.float32(1) + power * power)
        ) * lane.rates[i]


@compiled(any_order=True, inlined=True)
def _update(u: Floats, v: Floats, old: Floats, held: Floats, gains: Floats, first: int) -> None:
    """Add the gradients of two words and six targets, from the same old vectors."""
    x_old = old[0]
    y_old = old[1]
    t0 = held[first]
    t1 = held[first + 1]
    t2 = held[first + 2]
    t3 = held[first + 3]
    t4 = held[first + 4]
    t5 = held[first + 5]
    a = gains[first:]
    b = gains[gains.size // 2 + first :]
    a0 = a[0]
    a1 = a[1]
    a2 = a[2]
    a3 = a[3]
    a4 = a[4]
    a5 = a[5]
    b0 = b[0]
    b1 = b[1]
    b2 = b[2]
    b3 = b[3]
    b4 = b[4]
    b5 = b[5]
    for k in range(u.size):
        x = x_old[k]
        y = y_old[k]
        x0 = t0[k]
        x1 = t1[k]
        x2 = t2[k]
        x3 = t3[k]
        x4 = t4[k]
        x5 = t5[k]
        u[k] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3 + a4 * x4 + a5 * x5
        # After u: both may be one word.
        v[k] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3 + b4 * x4 + b5 * x5
        t0[k] = x0 + a0 * x + b0 * y
        t1[k] = x1 + a1 * x + b1 * y
        t2[k] = x2 + a2 * x + b2 * y
        t3[k] = x3 + a3 * x + b3 * y
        t4[k] = x4 + a4 * x + b4 * y
        t5[k] = x5 + a5 * x + b5 * y


@compiled(any_order=True, inlined=True)
def _step(u: Floats, v: Floats, lane: Lane) -> None:
    """Update two words around the centre and all targets; a constant offset of the first six is
    faster than a loop.
    """
    held = lane.held
    gains = lane.gains
    old = lane.old
    _predict(u, v, held, gains, 0)
    for first in range(_AT_ONCE, held.shape[0], _AT_ONCE):
        _predict(u, v, held, gains, first)
    _differentiate(lane)
    for k in range(u.size):
        old[0, k] = u[k]
        old[1, k] = v[k]
    _update(u, v, old, held, gains, 0)
    for first in range(_AT_ONCE, held.shape[0], _AT_ONCE):
        _update(u, v, old, held, gains, first)


@compiled(any_order=True, inlined=True)
def _train_lane(
    ids: Ids,
    first: int,
    last: int,
    model: SampledVectors,
    lane: Lane,
    rule: PairSampling,
    alpha: np.float32,
    rng: np.random.Generator,
) -> None:
    """Train on the centres from `first` to before `last`; windows do not cross lines."""
    for centre in range(first, last):
        if ids[centre] == _END:
            continue
        reach = 1 + int(rng.random() * rule.window)
        n_targets = _draw_targets(ids[centre], model, lane, rule.negative, rng)
        for i in range(lane.rates.size):
            lane.rates[i] = alpha if i % (lane.rates.size // 2) < n_targets else 0
        position = centre
        left = -1
        while position > 0 and centre - position < reach and ids[position - 1] != _END:
            position -= 1
        while position < ids.size and position - centre <= reach and ids[position] != _END:
            if position != centre:
                slot = _copied(lane.inputs, model.inputs, ids[position])
                if left < 0:
                    left = slot
                else:
                    _step(lane.inputs.vectors[left], lane.inputs.vectors[slot], lane)
                    left = -1
            position += 1
        if left >= 0:
            for k in range(lane.blank.size):
                lane.blank[k] = 0
            _step(lane.inputs.vectors[left], lane.blank, lane)
        for target in range(n_targets):
            held = lane.held[target]
            vector = lane.outputs.vectors[lane.targets[target]]
            for k in range(held.size):
                vector[k] = held[k]
    _subtract(lane.inputs, model.inputs)
    _subtract(lane.outputs, model.outputs)


@helper
def _subtract(side: RowCopies, matrix: Floats) -> None:
    for slot in range(side.used[0]):
        row = side.rows[slot]
        for k in range(matrix.shape[1]):
            side.vectors[slot, k] -= matrix[row, k]


@helper
def _add(side: RowCopies, matrix: Floats) -> None:
    for slot in range(side.used[0]):
        row = side.rows[slot]
        side.slots[row] = -1
        for k in range(matrix.shape[1]):
            matrix[row, k] += side.vectors[slot, k]
    side.used[0] = 0


@helper
def _add_lanes(lanes: tuple[Lane, ...], model: SampledVectors) -> None:
    for lane in lanes:
        _add(lane.inputs, model.inputs)
        _add(lane.outputs, model.outputs)


@compiled(any_order=True)
def train_rounds(
    ids: Ids,
    centres: Ints,
    alphas: Floats,
    model: SampledVectors,
    lanes: tuple[Lane, ...],
    rule: PairSampling,
    rngs: tuple[np.random.Generator, ...],
    worker: int,
    workers: int,
) -> None:
    """Train every `workers`-th lane, round by round; a worker that is alone also applies the
    changes of each round.

    Args:
        ids: words of all lanes. centres: (rounds, lanes, 2) the first centre of each lane and the
            one after its last.
        alphas: (rounds,) learning rates.

    Source: Mikolov et al., Distributed Representations of Words and Phrases and their
    Compositionality, 2013.
    """
    for number in range(alphas.size):
        for lane in range(worker, len(lanes), workers):
            first, last = centres[number, lane]
            _train_lane(ids, first, last, model, lanes[lane], rule, alphas[number], rngs[lane])
        if workers == 1:
            _add_lanes(lanes, model)


@kernel
def add_changes(lanes: tuple[Lane, ...], model: SampledVectors) -> None:
    """Add the changes of all lanes to the model, lane by lane, and clear the lanes."""
    _add_lanes(lanes, model)
