"""What could stand behind each output, for who holds the channel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clinveil.attacks.adversary import AdversaryView, Reading, from_table
from clinveil.core.types import Doubles, Ints, Mask

_TINY = 1e-300
MOST = 60
"""Inputs of an output that readers of context weigh; in a cluster channel there are hundreds, most of them hopeless."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The inputs of each output, in order of their rows.

    Attributes:
        starts: (n_words + 1,) places of each output in the others. rows: inputs. weights: P(output | input).
    """

    starts: Ints
    rows: Ints
    weights: Doubles


@dataclass(frozen=True, eq=False)
class Weighed(Candidates):
    """Candidates of which context weighs some; of the rest it changes nothing.

    Attributes:
        prior: (n_words,) of inputs. weighed: whether context weighs this input.
    """

    prior: Doubles
    weighed: Mask

    def reading(self, outputs: Ints) -> Reading:
        """Bayes' rule for each output alone."""
        return from_table(outputs, self.starts, self.rows, self.posterior)

    @cached_property
    def posterior(self) -> Doubles:
        """P(input | output) of each entry, by Bayes' rule."""
        joint = np.maximum(self.weights * self.prior[self.rows], _TINY)
        sums = np.add.reduceat(np.append(joint, 0.0), self.starts[:-1])
        return np.asarray(joint / np.repeat(sums, np.diff(self.starts)))

    def lattice(self, outputs: Ints) -> Lattice:
        """The inputs of a note's outputs."""
        sizes = self.starts[outputs + 1] - self.starts[outputs]
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries = np.repeat(self.starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
        weighed = self.weighed[entries]
        starts = np.concatenate([[0], np.cumsum(weighed)])[begin].astype(np.int64)
        every = Reading(begin, self.rows[entries], self.posterior[entries])
        return Lattice(starts, every.rows[weighed], self.weights[entries[weighed]], every, weighed)


@dataclass(frozen=True, eq=False)
class Lattice:
    """What could stand at each place of a note.

    Attributes:
        begin: (n + 1,) of each place its first candidate. rows, weights: candidates, and P(output | candidate).
        alone: of all inputs, those that are not weighed too, what each output tells alone. weighed: which they are.
    """

    begin: Ints
    rows: Ints
    weights: Doubles
    alone: Reading
    weighed: Mask

    def reading(self, chances: Doubles, order: Doubles | None = None) -> Reading:
        """A reading by the chances of the candidates; inputs that were not weighed keep what their output tells."""
        found, place = self.alone.chances.copy(), np.repeat(np.arange(self.begin.size - 1), np.diff(self.alone.starts))
        held = np.bincount(place[self.weighed], found[self.weighed], self.begin.size - 1)
        found[self.weighed] = np.maximum(chances * held[place[self.weighed]], _TINY)
        return Reading(self.alone.starts, self.alone.rows, found, order)


def candidates(view: AdversaryView, most: int | None = None, prior: Doubles | None = None) -> Weighed:
    """The inputs of each output; with `most` only so many are weighed by context, the likeliest without."""
    matrix = view.by_output
    starts, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    weights, prior = matrix.data.astype(np.float64), view.prior if prior is None else prior
    weighed = np.ones(rows.size, dtype=np.bool_)
    if most is not None and (np.diff(starts) > most).any():
        output = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        order = np.lexsort((rows, -weights * prior[rows], output))
        weighed[order] = np.arange(order.size) - starts[output[order]] < most
    return Weighed(starts, rows, weights, prior, weighed)
