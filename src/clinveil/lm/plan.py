"""Layout of training tokens in batches, determined by the lengths of the notes and the seed only.

`RowPlan`: each note is processed in one lane, window by window, from a state of zeros. `Packed`:
for networks without a state, notes follow each other in full rows. In both a note affects training
only through its own loss, so leaving it out is a weight of 0. `TextColumns`: one continuous text,
as in paper C.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

import numpy as np

from clinveil.core import Floats, InputError, Ints, Mask
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import Recipe
from clinveil.lm.vocabulary import END, Ids

NO_NOTE = -1


@dataclass(frozen=True)
class Batch:
    """One training step: (window, lanes) tokens, and weights of the loss, 1 or 0.

    Attributes:
        reset: (lanes,) whether the state of the lane starts from zeros. normaliser: divisor of the
            summed loss, the tokens of the batch including masked ones, so that masking changes
            nothing else.
    """

    inputs: Ids = field(repr=False)
    targets: Ids = field(repr=False)
    weights: Floats = field(repr=False)
    reset: Mask = field(repr=False)
    normaliser: float


@dataclass(frozen=True)
class RowPlan:
    """Independent notes in lanes; epochs follow without a gap, each in a new random order.

    Attributes:
        notes: (steps, lanes) note, -1 for an idle lane. starts: (steps, lanes) offset in the note.
        masked: (n_notes,) left-out notes, with loss weight 0.
    """

    encoded: EncodedNotes
    window: int
    steps_per_epoch: int
    notes: Ids = field(repr=False)
    starts: Ids = field(repr=False)
    masked: Mask = field(repr=False)

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return len(self.notes)

    def batch(self, step: int) -> Batch:
        """Return one batch; idle positions contain ends of notes with weight 0."""
        shape = (self.window, self.notes.shape[1])
        inputs = np.full(shape, END, dtype=np.int32)
        targets = np.full(shape, END, dtype=np.int32)
        weights = np.zeros(shape, dtype=np.float32)
        tokens = 0
        for lane, (row, start) in enumerate(zip(self.notes[step], self.starts[step], strict=True)):
            if row == NO_NOTE:
                continue
            note = self.encoded.note(row)
            piece = note[start : start + self.window]
            targets[: piece.size, lane] = piece
            inputs[: piece.size, lane] = (
                note[start - 1 : start - 1 + piece.size] if start else (END, *piece[:-1])
            )
            weights[: piece.size, lane] = not self.masked[row]
            tokens += piece.size
        return Batch(inputs, targets, weights, self.starts[step] == 0, float(max(tokens, 1)))

    def without(self, rows: Ints) -> RowPlan:
        """Return the plan with some notes left out."""
        return replace(self, masked=self.masked | np.isin(np.arange(self.masked.size), rows))


def rows_plan(encoded: EncodedNotes, *, lanes: int, window: int, epochs: int, seed: int) -> RowPlan:
    """Lay out notes; each note goes to the first free lane. Raises InputError if there are none."""
    order = _order(encoded, epochs, seed)
    pieces = -(-encoded.lengths // window)
    free = [(0, lane) for lane in range(lanes)]
    placed = []
    for row in order.tolist():
        step, lane = heapq.heappop(free)
        placed.append((row, step, lane))
        heapq.heappush(free, (step + int(pieces[row]), lane))
    steps = max(step for step, _ in free)
    notes = np.full((steps, lanes), NO_NOTE, dtype=np.int32)
    starts = np.zeros((steps, lanes), dtype=np.int32)
    for row, step, lane in placed:
        notes[step : step + pieces[row], lane] = row
        starts[step : step + pieces[row], lane] = np.arange(pieces[row]) * window
    return RowPlan(
        encoded, window, -(-steps // epochs), notes, starts, np.zeros(len(encoded), dtype=np.bool_)
    )


def _order(encoded: EncodedNotes, epochs: int, seed: int) -> Ints:
    """Return the notes of all epochs, each epoch in a random order. Raises InputError if there are
    none.
    """
    if not len(encoded):
        raise InputError("no note to train on")
    orders = (
        np.random.default_rng([seed, epoch, 0xC11F]).permutation(len(encoded))
        for epoch in range(epochs)
    )
    return np.concatenate(list(orders))


@dataclass(frozen=True)
class Packed:
    """Notes one after another in rows of `window` tokens; a note continues in the next row without
    its context.

    An end among the inputs marks the start of a note.

    Attributes:
        order: (n,) note of each place in the text of all epochs. ends: (n,) its end in this text.
            masked: as in `RowPlan`.
    """

    encoded: EncodedNotes
    window: int
    lanes: int
    epochs: int
    order: Ints = field(repr=False)
    ends: Ints = field(repr=False)
    masked: Mask = field(repr=False)

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return int(-(-self.ends[-1] // (self.window * self.lanes)))

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch; the last epoch can have fewer."""
        return -(-self.steps // self.epochs)

    def batch(self, step: int) -> Batch:
        """Return one batch; only the last one has idle positions, which contain ends of notes with
        weight 0.
        """
        size = self.window * self.lanes
        places = np.arange(step * size, min((step + 1) * size, self.ends[-1]))
        row = np.searchsorted(self.ends, places, side="right")
        note = self.order[row]
        inside = places - self.ends[row] + self.encoded.lengths[note]
        at = self.encoded.offsets[note] + inside
        inputs = np.full(size, END, dtype=np.int32)
        targets = np.full(size, END, dtype=np.int32)
        weights = np.zeros(size, dtype=np.float32)
        inputs[: places.size] = np.where(inside == 0, END, self.encoded.ids[at - 1])
        targets[: places.size] = self.encoded.ids[at]
        weights[: places.size] = ~self.masked[note]
        shape = (self.lanes, self.window)
        reset = np.ones(self.lanes, dtype=np.bool_)
        rows = inputs.reshape(shape).T, targets.reshape(shape).T
        return Batch(*rows, weights.reshape(shape).T, reset, float(places.size))

    def without(self, rows: Ints) -> Packed:
        """Return the plan with some notes left out."""
        return replace(self, masked=self.masked | np.isin(np.arange(self.masked.size), rows))


def packed_plan(
    encoded: EncodedNotes, *, lanes: int, window: int, epochs: int, seed: int
) -> Packed:
    """Lay out notes in full rows. Raises InputError if there are none."""
    order = _order(encoded, epochs, seed)
    ends = np.cumsum(encoded.lengths[order])
    return Packed(
        encoded, window, lanes, epochs, order, ends, np.zeros(len(encoded), dtype=np.bool_)
    )


@dataclass(frozen=True)
class TextColumns:
    """One continuous text in columns of equal length, (rows, lanes); the rest is dropped (paper C's
    code).
    """

    text: Ids = field(repr=False)
    window: int
    epochs: int

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch."""
        return -(-(len(self.text) - 1) // self.window)

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return self.steps_per_epoch * self.epochs

    def batch(self, step: int) -> Batch:
        """Return one window of all columns; the state starts from zeros in each epoch."""
        start = step % self.steps_per_epoch * self.window
        piece = self.text[start : start + self.window + 1]
        weights = np.ones(piece[1:].shape, dtype=np.float32)
        reset = np.full(self.text.shape[1], start == 0)
        return Batch(piece[:-1], piece[1:], weights, reset, float(weights.size))


def columns_plan(ids: Ids, *, lanes: int, window: int, epochs: int) -> TextColumns:
    """Cut the joined notes into columns. Raises InputError if they have fewer than two rows."""
    length = ids.size // lanes
    if length < 2:
        raise InputError(
            f"{ids.size} tokens are too few for {lanes} lanes", hint="pass a smaller lm.lanes"
        )
    return TextColumns(
        np.ascontiguousarray(ids[: length * lanes].reshape(lanes, length).T), window, epochs
    )


Plan = RowPlan | Packed | TextColumns


def plan_of(encoded: EncodedNotes, recipe: Recipe, seed: int) -> Plan:
    """Return the batches of a training."""
    lanes = recipe.lanes
    window = recipe.window
    epochs = recipe.epochs
    if recipe.plan == "stream":
        return columns_plan(encoded.ids, lanes=lanes, window=window, epochs=epochs)
    return notes_plan(encoded, recipe, seed)


def notes_plan(encoded: EncodedNotes, recipe: Recipe, seed: int) -> RowPlan | Packed:
    """Return batches of independent notes."""
    make = packed_plan if recipe.plan == "packed" else rows_plan
    return make(encoded, lanes=recipe.lanes, window=recipe.window, epochs=recipe.epochs, seed=seed)
