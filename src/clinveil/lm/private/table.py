"""The noisy table of a private release: the sum of one vector per patient, of L2 norm at most 1,
plus Gaussian noise.

The vector has one cell for each pair of label and word, and one for each label. A patient's cells
depend on that patient's notes and on public text only. Everything computed from a `NoisyTable` and
public text is post-processing and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from clinveil.core import Doubles, Ints, Key
from clinveil.lm.private.gaussian import normals
from clinveil.lm.private.public_text import PublicText

GRID = 2.0**-10  # cells and noise are multiples of this
LABELS = 0.3  # share of the norm for the labels of a patient
TERMS = 60  # most specific cells of a patient
EVIDENCE = 7.0  # log odds that a cell is empty, before it is seen: about 1,000 to 1
PRIVATE_SHARE = (
    0.5  # of the words of a note drawn from the noisy table; the others from the public text
)


@dataclass(frozen=True)
class LabelledNote:
    """One private note: its patient, number of its label, and text; `repr` shows none of these."""

    patient: str = field(repr=False)
    label: int = field(repr=False)
    text: str = field(repr=False)


@dataclass(frozen=True)
class Layout:
    """The cells of the vector: labels times words, then labels.

    Attributes:
        labels: number of labels, assumed public. words: number of vocabulary words. terms: word
            cells of one patient.
    """

    labels: int
    words: int
    terms: int = TERMS

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.labels * (self.words + 1)


@dataclass(frozen=True)
class Contribution:
    """The cells of one patient that are not 0: places, and values in units of `GRID`,
    (n_cells,).
    """

    places: Ints = field(repr=False)
    values: Ints = field(repr=False)


def contribution(notes: Sequence[LabelledNote], public: PublicText, layout: Layout) -> Contribution:
    """Return the vector of one patient with these notes.

    The most specific cells are those with the largest count times log ratio of the word's share in
    the notes to its share in the public text. They have equal values.
    """
    texts: dict[int, list[str]] = {}
    for note in notes:
        texts.setdefault(note.label, []).append(note.text)
    places, scores = _scored(texts, public)
    best = np.lexsort((places, -scores))[: layout.terms]
    best = best[scores[best] > 0]
    labels = layout.labels * layout.words + np.array(sorted(texts), dtype=np.int64)
    cells = _grid(sqrt(1 - LABELS**2), best.size)
    values = np.concatenate([cells, _grid(LABELS, labels.size)])
    return Contribution(np.concatenate([places[best], labels]), values)


def _scored(texts: Mapping[int, Sequence[str]], public: PublicText) -> tuple[Ints, Doubles]:
    """Return all cells of texts by label with words of the vocabulary, and their specificity."""
    places = [np.zeros(0, dtype=np.int64)]
    scores = [np.zeros(0)]
    for label, some in texts.items():
        ids, counts, total = public.counts_in(some)
        places.append(label * len(public.ids) + ids)
        scores.append(counts * (np.log(counts / max(total, 1)) - np.log(public.frequencies[ids])))
    return np.concatenate(places), np.concatenate(scores)


def _grid(norm: float, n: int) -> Ints:
    """Return n equal values with at most this norm, rounded down to the grid."""
    return (
        np.full(n, int(norm / sqrt(n) / GRID), dtype=np.int64) if n else np.zeros(0, dtype=np.int64)
    )


def summed(notes: Iterable[LabelledNote], public: PublicText, layout: Layout) -> Ints:
    """Return the sum of the vectors of all patients, (n_cells,), in units of `GRID`."""
    by_patient: dict[str, list[LabelledNote]] = {}
    for note in notes:
        by_patient.setdefault(note.patient, []).append(note)
    cells = np.zeros(layout.size, dtype=np.int64)
    for own in by_patient.values():
        one = contribution(own, public, layout)
        cells[one.places] += one.values  # the places of one patient are distinct
    return cells


@dataclass(frozen=True)
class NoisyTable:
    """The released vector.

    Attributes:
        sigma: standard deviation of the noise of each cell, for L2 sensitivity 1.
        cells: (labels, words) sums of the word cells. patients: (labels,) patients per label; can
            be negative.
    """

    sigma: float
    cells: Doubles = field(repr=False)
    patients: Doubles = field(repr=False)


def noisy(cells: Ints, layout: Layout, sigma: float, key: Key, question: str) -> NoisyTable:
    """Add Gaussian noise to the sum of all contributions.

    Args:
        cells: (n_cells,) sum in units of `GRID`. sigma: standard deviation for L2 sensitivity 1.
        question: identity of notes and settings. Other noise is drawn for another question, because
            the difference of two sums with equal noise would disclose a patient.
    """
    noise = normals(key.stream("private release", question), layout.size) * sigma
    released = np.asarray((cells + np.rint(noise / GRID)) * GRID, dtype=np.float64)
    split = layout.labels * layout.words
    return NoisyTable(
        sigma, released[:split].reshape(layout.labels, layout.words), released[split:] / LABELS
    )


def word_shares(table: NoisyTable) -> Doubles:
    """Return the estimated shares of the words of each label, (labels, words); rows sum to 1, or to
    0 without evidence.

    Cells are shrunk twice: the sum over labels towards 0, and each label's cell towards its share
    of this sum.
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
    """Return word probabilities per label: estimated and public shares, (labels, words); rows sum
    to 1.
    """
    private = PRIVATE_SHARE * shares.sum(axis=1, keepdims=True)
    return np.asarray(PRIVATE_SHARE * shares + (1 - private) * frequencies)


def notes_per_label(table: NoisyTable, notes: int | None) -> Ints:
    """Return how many notes to write for each label, (labels,): equally many, so that rare labels
    can be learned.

    notes: in total; None: one per noisy patient.
    """
    labels = len(table.patients)
    total = (
        max(labels, round(float(np.maximum(table.patients, 0.0).sum()))) if notes is None else notes
    )
    return total // labels + (np.arange(labels) < total % labels)
