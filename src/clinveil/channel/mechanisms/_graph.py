"""Of each word the words that it may become, itself among them, and how far they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinveil.channel.mechanism import Material
from clinveil.core.errors import UsageError
from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts


@dataclass(frozen=True)
class Graph:
    """Candidates of each word; the distance is the Euclidean one of vectors at length 1, sqrt(2 - 2 cosine).

    Attributes:
        indptr: (n_words + 1,) int64. outputs: (n_entries,) int32 rows. distances: (n_entries,) float64, 0 of a word
            with itself; a zero vector is sqrt(2) from all others.
    """

    indptr: Ints
    outputs: SmallInts
    distances: Doubles

    @property
    def lengths(self) -> Ints:
        """(n_words,) candidates of each word."""
        return np.diff(self.indptr)

    def sums(self, values: Doubles) -> Doubles:
        """(n_words,) the values of each row together; no row is empty."""
        return np.asarray(np.add.reduceat(values, self.indptr[:-1]), dtype=np.float64)

    def mean_distance(self, chances: Doubles, prior: Doubles) -> float:
        """How far a word of the prior (n_words,) is moved on average."""
        return float(self.sums(chances * self.distances) @ prior)


def prior_of(material: Material) -> Doubles:
    """(n_words,) the share of each word; a word of no occurrences counts as one."""
    counts = material.vectors.counts
    mass = np.ones(len(material.vectors)) if counts is None else np.maximum(counts, 1).astype(np.float64)
    return np.asarray(mass / mass.sum())


def near_graph(material: Material, k: int) -> Graph:
    """The k nearest eligible words of each word and, where it may come out, itself. Raises ValueError as the table."""
    table = material.table
    if table is None or table.k < k:
        raise ValueError(f"the table of neighbours cannot serve {k} of them")
    rows = np.arange(len(table), dtype=np.int32)[:, None]
    apart = np.sqrt(np.maximum(0.0, 2 - 2 * table.similarities[:, :k].astype(np.float64)))
    outputs = np.concatenate([rows, table.ids[:, :k]], axis=1)
    distances = np.concatenate([np.zeros((len(table), 1)), apart], axis=1)
    taken = np.ones(outputs.shape, dtype=np.bool_)
    taken[:, 0] = material.eligible
    return _graph(taken.sum(axis=1), outputs[taken], distances[taken])


def whole_graph(material: Material, most: int, name: str) -> Graph:
    """Every eligible word for every word. Raises UsageError where that are more than `most` entries."""
    n, outputs = len(material.vectors), np.flatnonzero(material.eligible).astype(np.int32)
    if n * outputs.size > most:
        raise UsageError(
            f"{name} compiles {n:,} words by {outputs.size:,} that may come out: more than {most:,} entries",
            hint="take it for smaller vocabularies, or another mechanism",
        )
    apart = whole_distances(material.vectors.matrix, material.eligible)
    return _graph(np.full(n, outputs.size), np.tile(outputs, n), apart.ravel())


def whole_distances(matrix: Floats, eligible: Mask) -> Doubles:
    """The distance of each word to each eligible one, (n_words, n_eligible)."""
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    units = np.divide(matrix, lengths, out=np.zeros(matrix.shape), where=lengths > 0)
    apart = np.sqrt(np.maximum(0.0, 2 - 2 * units @ units[eligible].T))
    outputs = np.flatnonzero(eligible)
    apart[outputs, np.arange(outputs.size)] = 0.0
    return np.asarray(apart)


def _graph(lengths: Ints, outputs: SmallInts, distances: Doubles) -> Graph:
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Graph(indptr, outputs, distances)
