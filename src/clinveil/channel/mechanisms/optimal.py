"""Mechanism `optimal`: of all channels of a mean distance, the one from which one draw is guessed least often.

A linear programme over all entries, for vocabularies of some 150 words: the yardstick of other mechanisms, none of
which can have a lower vulnerability at the same mean distance. It says nothing of context, nor of several draws.

Source: Shokri et al. 2012 (CCS), optimal location privacy as a linear programme; Bayes vulnerability: Smith 2009.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from pydantic import model_validator

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.mechanisms._graph import Graph, prior_of, whole_graph
from clinveil.channel.settings import DISTORTION_HELP
from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Doubles

MOST = 150 * 150
NEGLIGIBLE = 1e-9


@mechanisms.register("optimal")
class OptimalMechanism(Mechanism):
    """Least Bayes vulnerability at a mean distance of vectors at length 1, by linear programming."""

    name: ClassVar[str] = "optimal"
    distortion: float | None = flag(None, DISTORTION_HELP, ge=0, le=2)

    @model_validator(mode="after")
    def _has_a_distance(self) -> Self:
        if self.distortion is None:
            raise ValueError("--mechanism optimal needs --distortion")
        return self

    @property
    def said(self) -> str:
        """The settings in a few words."""
        return f"least vulnerability at mean distance {self.distortion:g}"

    def compile(self, material: Material) -> Channel:
        """The channel. Raises UsageError for more than 22,500 entries, InputError where no channel is so near."""
        graph, prior = whole_graph(material, MOST, "--mechanism optimal"), prior_of(material)
        assert self.distortion is not None
        chances = least_vulnerable(graph, prior, self.distortion)
        stays = chances > NEGLIGIBLE
        lengths = graph.sums(stays.astype(np.float64)).astype(np.int64)
        chances = np.where(stays, chances, 0.0)
        chances /= np.repeat(graph.sums(chances), graph.lengths)
        said = {"distortion": self.distortion, "mean_distance": graph.mean_distance(chances, prior)}
        return material.channel(self.name, said, lengths, graph.outputs[stays], chances[stays])


def least_vulnerable(graph: Graph, prior: Doubles, distance: float) -> Doubles:
    """Chances (n_entries,) that make sum over y of max over x of prior(x) P(y|x) least at a mean distance at most.

    Raises InputError where even the nearest outputs are farther on average.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack, vstack

    n, entries = len(prior), graph.outputs.size
    owners = np.repeat(np.arange(n), graph.lengths)
    ids, columns = np.unique(graph.outputs, return_inverse=True)
    each, ones = np.arange(entries), np.ones(entries)
    below = hstack([csr_matrix((prior[owners], (each, each))), csr_matrix((-ones, (each, columns)))])
    moved = csr_matrix(np.concatenate([prior[owners] * graph.distances, np.zeros(ids.size)]))
    whole = csr_matrix((ones, (owners, each)), shape=(n, entries + ids.size))
    found = linprog(
        np.concatenate([np.zeros(entries), np.ones(ids.size)]),
        A_ub=vstack([below, moved]),
        b_ub=np.append(np.zeros(entries), distance),
        A_eq=whole,
        b_eq=np.ones(n),
        method="highs",
    )
    if found.x is None:
        raise InputError(f"no channel has a mean distance of {distance:g}", hint="allow more --distortion")
    return np.asarray(np.maximum(found.x[:entries], 0.0))
