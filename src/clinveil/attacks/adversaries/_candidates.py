"""Candidate inputs of each output, for adversaries that know the channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clinveil.attacks.adversary import AdversaryView, Recovery, from_table
from clinveil.core.types import Doubles, Ints, Mask

_TINY = 1e-300
MAX_INPUTS = 60
"""Maximum inputs of an output that sequence models weigh; a cluster channel has hundreds, most of them improbable."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The inputs of each output, sorted by row.

    Attributes:
        starts: (n_words + 1,) offsets of each output in the other arrays. rows: inputs. weights: P(output | input).
    """

    starts: Ints
    rows: Ints
    weights: Doubles


@dataclass(frozen=True, eq=False)
class Weighed(Candidates):
    """Candidates of which a sequence model weighs only some; the others keep their context-free probability.

    Attributes:
        prior: (n_words,) of inputs. weighed: whether the sequence model weighs this input.
    """

    prior: Doubles
    weighed: Mask

    def recovery(self, outputs: Ints) -> Recovery:
        """Apply Bayes' rule to each output separately."""
        return from_table(outputs, self.starts, self.rows, self.posterior)

    @cached_property
    def posterior(self) -> Doubles:
        """Return P(input | output) of each entry, by Bayes' rule."""
        joint = np.maximum(self.weights * self.prior[self.rows], _TINY)
        sums = np.add.reduceat(np.append(joint, 0.0), self.starts[:-1])
        return np.asarray(joint / np.repeat(sums, np.diff(self.starts)))

    def lattice(self, outputs: Ints) -> Lattice:
        """Return the candidate inputs of a note's outputs."""
        sizes = self.starts[outputs + 1] - self.starts[outputs]
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        indices = np.repeat(self.starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
        weighed = self.weighed[indices]
        starts = np.concatenate([[0], np.cumsum(weighed)])[begin].astype(np.int64)
        all_inputs = Recovery(begin, self.rows[indices], self.posterior[indices])
        return Lattice(starts, all_inputs.rows[weighed], self.weights[indices[weighed]], all_inputs, weighed)


@dataclass(frozen=True, eq=False)
class Lattice:
    """Candidate words at each position of a note.

    Attributes:
        begin: (n + 1,) offset of the first candidate of each position. rows, weights: candidates, and
            P(output | candidate).
        alone: context-free probabilities of all inputs, weighed or not. weighed: mask of the weighed inputs.
    """

    begin: Ints
    rows: Ints
    weights: Doubles
    alone: Recovery
    weighed: Mask

    def recovery(self, chances: Doubles, order: Doubles | None = None) -> Recovery:
        """Return the recovery for these probabilities; inputs not weighed keep their context-free probability."""
        found, position = (
            self.alone.chances.copy(),
            np.repeat(np.arange(self.begin.size - 1), np.diff(self.alone.starts)),
        )
        mass = np.bincount(position[self.weighed], found[self.weighed], self.begin.size - 1)
        found[self.weighed] = np.maximum(chances * mass[position[self.weighed]], _TINY)
        return Recovery(self.alone.starts, self.alone.rows, found, order)


def candidates(view: AdversaryView, limit: int | None = None, prior: Doubles | None = None) -> Weighed:
    """Return the inputs of each output; with `most`, a sequence model weighs only that many, the most probable ones."""
    matrix = view.by_output
    starts, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    weights, prior = matrix.data.astype(np.float64), view.prior if prior is None else prior
    weighed = np.ones(rows.size, dtype=np.bool_)
    if limit is not None and (np.diff(starts) > limit).any():
        output = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        order = np.lexsort((rows, -weights * prior[rows], output))
        weighed[order] = np.arange(order.size) - starts[output[order]] < limit
    return Weighed(starts, rows, weights, prior, weighed)
