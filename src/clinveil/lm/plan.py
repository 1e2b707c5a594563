"""Which tokens stand in which row of which batch: fixed by the notes' lengths and the seed, whatever the weights.

`Rows`: each note goes through one lane, window by window, from a state of zeros; so a note touches the rest of the
training through its own loss only, and leaving it out means a weight of 0. `Columns`: paper C's seamless text.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Floats, Ints, Mask
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.vocabulary import END, Ids

NO_NOTE = -1


@dataclass(frozen=True)
class Batch:
    """One step of training: (window, lanes) tokens and weights, 1 where the loss counts, else 0.

    Attributes:
        reset: (lanes,) whether the lane's state starts from zeros. normaliser: what the summed loss is divided by: the
            tokens of the batch, masked ones too, so that masking changes nothing else.
    """

    inputs: Ids = field(repr=False)
    targets: Ids = field(repr=False)
    weights: Floats = field(repr=False)
    reset: Mask = field(repr=False)
    normaliser: float


@dataclass(frozen=True)
class Rows:
    """Notes in lanes, each by itself; epochs follow one another without a gap, each in a new random order.

    Attributes:
        notes: (steps, lanes) which note, -1 for an idle lane. starts: (steps, lanes) where in it.
        masked: (n_notes,) notes whose loss weighs 0: those left out.
    """

    encoded: EncodedNotes
    window: int
    steps_per_epoch: int
    notes: Ids = field(repr=False)
    starts: Ids = field(repr=False)
    masked: Mask = field(repr=False)

    @property
    def steps(self) -> int:
        """Over all epochs."""
        return len(self.notes)

    def batch(self, step: int) -> Batch:
        """One batch; idle places hold ends of notes, and weigh 0."""
        shape = (self.window, self.notes.shape[1])
        inputs, targets = np.full(shape, END, dtype=np.int32), np.full(shape, END, dtype=np.int32)
        weights, tokens = np.zeros(shape, dtype=np.float32), 0
        for lane, (row, start) in enumerate(zip(self.notes[step], self.starts[step], strict=True)):
            if row == NO_NOTE:
                continue
            note = self.encoded.note(row)
            piece = note[start : start + self.window]
            targets[: piece.size, lane] = piece
            inputs[: piece.size, lane] = note[start - 1 : start - 1 + piece.size] if start else (END, *piece[:-1])
            weights[: piece.size, lane] = not self.masked[row]
            tokens += piece.size
        return Batch(inputs, targets, weights, self.starts[step] == 0, float(max(tokens, 1)))

    def without(self, rows: Ints) -> Rows:
        """The same plan with these notes left out."""
        masked = self.masked.copy()
        masked[rows] = True
        return Rows(self.encoded, self.window, self.steps_per_epoch, self.notes, self.starts, masked)

    def first_step_of(self, rows: Ints) -> int:
        """The first step in which one of these notes stands: up to it, leaving them out changes nothing."""
        return int(np.isin(self.notes, rows).any(axis=1).argmax())


def rows_plan(encoded: EncodedNotes, *, lanes: int, window: int, epochs: int, seed: int) -> Rows:
    """Lay out notes: the next note goes to the lane that is free first. Raises InputError for no note."""
    if not len(encoded):
        raise InputError("there is no note to train on")
    order = np.concatenate(
        [np.random.default_rng([seed, epoch, 0xC11F]).permutation(len(encoded)) for epoch in range(epochs)]
    )
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
    return Rows(encoded, window, -(-steps // epochs), notes, starts, np.zeros(len(encoded), dtype=np.bool_))


@dataclass(frozen=True)
class Columns:
    """One seamless text in columns of equal length, (rows, lanes); what does not fit is dropped (paper C's code)."""

    text: Ids = field(repr=False)
    window: int
    epochs: int

    @property
    def steps_per_epoch(self) -> int:
        """Windows of the columns."""
        return -(-(len(self.text) - 1) // self.window)

    @property
    def steps(self) -> int:
        """Over all epochs."""
        return self.steps_per_epoch * self.epochs

    def batch(self, step: int) -> Batch:
        """One window of all columns; the state starts from zeros with each epoch."""
        start = step % self.steps_per_epoch * self.window
        piece = self.text[start : start + self.window + 1]
        weights = np.ones(piece[1:].shape, dtype=np.float32)
        reset = np.full(self.text.shape[1], start == 0)
        return Batch(piece[:-1], piece[1:], weights, reset, float(weights.size))


def columns_plan(ids: Ids, *, lanes: int, window: int, epochs: int) -> Columns:
    """Cut a text, the notes one after another. Raises InputError where it is shorter than two rows of the columns."""
    length = ids.size // lanes
    if length < 2:
        raise InputError(f"{ids.size} tokens do not fill {lanes} lanes", hint="fewer --lanes")
    return Columns(np.ascontiguousarray(ids[: length * lanes].reshape(lanes, length).T), window, epochs)


Plan = Rows | Columns
