"""Mechanism `exponential`: a word becomes one of its K nearest or itself, the likelier the nearer: exp(-epsilon d / 2).

d is the Euclidean distance of vectors at length 1. Cut at K words, no epsilon holds between two words unless the same
words may come of both: it is finite only where output sets are common, and that is rare. With `--bulk` every word that
may come out may come of every word, at no less than the chance that one at distance gamma has: then any output is at
most exp(epsilon d(x, x')) likelier of x than of x', for one draw, given the vectors. The vectors are trained on the
notes, and no part of that promise.

Source: McSherry and Talwar 2007 (FOCS); the truncated form with a bulk is that of Carvalho et al. 2021 (TEM, arXiv
2107.07923) without its noise on gamma, which here is the median distance to the K-th nearest.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from pydantic import model_validator

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.mechanisms._graph import Graph, near_graph, prior_of, whole_graph
from clinveil.channel.settings import EPSILON_HELP, NEAREST_HELP
from clinveil.core.settings import flag

MOST = 1 << 24  # entries with a bulk: some 4,000 words, 200 MB


@mechanisms.register("exponential")
class ExponentialMechanism(Mechanism):
    """The exponential mechanism over the K nearest, or over all words with a bulk."""

    name: ClassVar[str] = "exponential"
    epsilon: float | None = flag(None, EPSILON_HELP, ge=1e-6, le=1e6)
    nearest: int = flag(50, NEAREST_HELP, ge=1, le=1000)
    bulk: bool = flag(False, "exponential: all other words too, as likely as one at the distance of the K-th.")

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if self.epsilon is None:
            raise ValueError("exponential needs epsilon")
        return self

    @property
    def reach(self) -> int:
        """K."""
        return self.nearest

    @property
    def said(self) -> str:
        """The settings in a few words."""
        return f"exponential, epsilon {self.epsilon:g} over the {self.nearest} nearest{' and a bulk' * self.bulk}"

    def compile(self, material: Material) -> Channel:
        """The channel. Raises UsageError where a bulk would hold more than 16,777,216 entries."""
        assert self.epsilon is not None
        graph = near_graph(material, self.nearest)
        if self.bulk:
            graph = _capped(
                whole_graph(material, MOST, "--bulk"), float(np.median(graph.distances[graph.indptr[1:] - 1]))
            )
        weights = np.maximum(np.exp(-self.epsilon * graph.distances / 2), np.finfo(np.float64).tiny)
        chances = weights / np.repeat(graph.sums(weights), graph.lengths)
        said = self.model_dump() | {"epsilon_guaranteed": self.bulk}
        said["mean_distance"] = graph.mean_distance(chances, prior_of(material))
        return material.channel(self.name, said, graph.lengths, graph.outputs, chances)


def _capped(graph: Graph, gamma: float) -> Graph:
    return Graph(graph.indptr, graph.outputs, np.minimum(graph.distances, gamma))
