"""What could stand behind each output, for who holds the channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinveil.attacks.reader import Reading, Scene, from_table
from clinveil.core.types import Doubles, Ints

MOST = 60
"""Inputs of an output that readers of context weigh; in a cluster channel there are hundreds, most of them hopeless."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The inputs of each output, in order of their rows.

    Attributes:
        starts: (n_words + 1,) places of each output in the other two. rows: inputs. weights: P(output | input).
    """

    starts: Ints
    rows: Ints
    weights: Doubles

    def reading(self, outputs: Ints, prior: Doubles) -> Reading:
        """Bayes' rule for each output alone, by a prior (n_words,)."""
        return from_table(outputs, self.starts, self.rows, self.posterior(prior))

    def posterior(self, prior: Doubles) -> Doubles:
        """P(input | output) of each entry, by a prior (n_words,)."""
        joint = self.weights * prior[self.rows]
        sums = np.add.reduceat(np.append(joint, 0.0), np.minimum(self.starts[:-1], joint.size))
        return np.asarray(joint / np.repeat(sums, np.diff(self.starts)))


def candidates(scene: Scene, most: int | None = None) -> Candidates:
    """The inputs of each output; with `most` only so many, the likeliest by prior and channel."""
    matrix = scene.by_output
    starts, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    weights = matrix.data.astype(np.float64)
    if most is None or (np.diff(starts) <= most).all():
        return Candidates(starts, rows, weights)
    output = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    order = np.lexsort((rows, -weights * scene.prior[rows], output))
    kept = np.sort(order[np.arange(order.size) - starts[output[order]] < most])
    sizes = np.bincount(output[kept], minlength=starts.size - 1)
    return Candidates(np.concatenate([[0], np.cumsum(sizes)]), rows[kept], weights[kept])
