"""The noisy table of a private release, and the words of each label estimated from it.

Everything computed from a `NoisyTable` and public text is post-processing and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from clinveil.core.keys import Key
from clinveil.core.types import Doubles, Ints
from clinveil.lm.private.cells import GRID, LABELS, Layout
from clinveil.lm.private.gaussian import normals, on_grid

EVIDENCE = 7.0  # log odds that a cell is empty, before it is seen: about 1,000 to 1
PRIVATE_SHARE = 0.5  # of the words of a note drawn from the noisy table; the others from the public text


@dataclass(frozen=True)
class NoisyTable:
    """The released vector.

    Attributes:
        sigma: standard deviation of the noise of each cell, for L2 sensitivity 1.
        cells: (labels, words) sums of the word cells. patients: (labels,) patients per label; can be negative.
    """

    sigma: float
    cells: Doubles = field(repr=False)
    patients: Doubles = field(repr=False)


def noisy(cells: Ints, layout: Layout, sigma: float, key: Key, question: str) -> NoisyTable:
    """Add Gaussian noise to the sum of all contributions.

    Args:
        cells: (n_cells,) sum in units of `GRID`. sigma: standard deviation for L2 sensitivity 1.
        question: identity of notes and settings. Other noise is drawn for another question, because the difference of
            two sums with equal noise would disclose a patient.
    """
    noise = on_grid(normals(key.stream("private release", question), layout.size) * sigma, GRID)
    released = (cells + noise).astype(np.float64) * GRID
    split = layout.labels * layout.words
    return NoisyTable(sigma, released[:split].reshape(layout.labels, layout.words), released[split:] / LABELS)


def word_shares(table: NoisyTable) -> Doubles:
    """Return the estimated shares of the words of each label, (labels, words); rows sum to 1, or to 0 without evidence.

    Cells are shrunk twice: the sum over labels towards 0, and each label's cell towards its share of this sum.
    """
    patients = np.maximum(table.patients, 1.0)
    together = _shrunk(table.cells.sum(axis=0), table.sigma * sqrt(len(patients)))
    expected = np.outer(patients / patients.sum(), np.maximum(together, 0.0))
    found = np.maximum(expected + _shrunk(table.cells - expected, table.sigma), 0.0)
    sums = found.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(found, sums, out=np.zeros_like(found), where=sums > 0))


def _shrunk(values: Doubles, sigma: float) -> Doubles:
    """Multiply values by the probability that they are not noise only."""
    return np.asarray(values / (1 + np.exp(np.clip(EVIDENCE - (values / sigma) ** 2 / 2, -50, 50))))


def mixed(shares: Doubles, frequencies: Doubles) -> Doubles:
    """Return word probabilities per label: estimated and public shares, (labels, words); rows sum to 1."""
    private = PRIVATE_SHARE * shares.sum(axis=1, keepdims=True)
    return np.asarray(PRIVATE_SHARE * shares + (1 - private) * frequencies)


def notes_per_label(table: NoisyTable, notes: int | None) -> Ints:
    """Return how many notes to write for each label, (labels,): equally many, so that rare labels can be learned.

    notes: in total; None: one per noisy patient.
    """
    labels = len(table.patients)
    total = max(labels, round(float(np.maximum(table.patients, 0.0).sum()))) if notes is None else notes
    return total // labels + (np.arange(labels) < total % labels)
