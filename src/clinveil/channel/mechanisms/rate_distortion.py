"""Mechanism `rate-distortion`: of all channels over a word's K nearest and itself, the one that tells least.

At a given mean distance between a word and what comes out of it no channel over the same candidates has a smaller
mutual information, so none lets an attacker with any context learn less a token on average. One number turns it: the
slope beta (bits lost for distance gained), or the mean distance itself. The outputs may collapse to few words, which
is its virtue: what is never said tells nothing. The channel has no epsilon.

Source: Shannon 1959; Blahut 1972 and Arimoto 1972 (IEEE Trans. Inf. Theory 18): alternating steps that never raise
I + beta d, with bounds that say how far from the least it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.mechanisms._graph import Graph, near_graph, prior_of
from clinveil.channel.settings import DISTORTION_HELP, NEAREST_HELP
from clinveil.core.compiled import kernel
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, SmallInts

GAP, ROUNDS = 1e-4, 5000  # nats above the least at which the steps end, and how many at most
LOWEST, HIGHEST, HALVINGS = 1e-3, 1e4, 40  # of the slope, where the mean distance is given
NEGLIGIBLE = 1e-12  # chances below it are left out


@mechanisms.register("rate-distortion")
class RateDistortionMechanism(Mechanism):
    """Least mutual information at a mean distance, over the K nearest eligible words and the word itself."""

    name: ClassVar[str] = "rate-distortion"
    nearest: int = flag(50, NEAREST_HELP, ge=1, le=1000)
    beta: float = flag(4.0, "rate-distortion: slope; small moves words far and tells little.", gt=0, le=HIGHEST)
    distortion: float | None = flag(None, DISTORTION_HELP, ge=0, le=2)

    @property
    def reach(self) -> int:
        """K."""
        return self.nearest

    @property
    def said(self) -> str:
        """The settings in a few words."""
        how = f"beta {self.beta:g}" if self.distortion is None else f"mean distance {self.distortion:g}"
        return f"least information at {how} over the {self.nearest} nearest"

    def compile(self, material: Material) -> Channel:
        """The channel; its parameters say its slope, mean distance, and the bits that it may be above the least."""
        graph, prior = near_graph(material, self.nearest), prior_of(material)
        found = least_information(graph, prior, self.beta) if self.distortion is None else self._at(graph, prior)
        stays = found.chances > NEGLIGIBLE
        lengths = graph.sums(stays.astype(np.float64)).astype(np.int64)
        chances = found.chances[stays] / np.repeat(graph.sums(np.where(stays, found.chances, 0.0)), lengths)
        said = {"nearest": self.nearest, "beta": found.beta, "bits_above_least": found.gap / np.log(2)}
        said |= {"mean_distance": graph.mean_distance(found.chances, prior), "rounds": found.rounds}
        return material.channel(self.name, said, lengths, graph.outputs[stays], chances)

    def _at(self, graph: Graph, prior: Doubles) -> Least:
        """By halving: the smallest slope whose mean distance is not above the wanted one."""
        low, high, wanted = LOWEST, HIGHEST, self.distortion or 0.0
        best = least_information(graph, prior, high)
        for _ in range(HALVINGS):
            if high / low < 1.001:
                break
            found = least_information(graph, prior, float(np.sqrt(low * high)))
            if graph.mean_distance(found.chances, prior) > wanted:
                low = found.beta
            else:
                high, best = found.beta, found
        return best


@dataclass(frozen=True)
class Least:
    """A channel: beta, chances (n_entries,), nats above the least that it may be, and the steps that it took."""

    beta: float
    chances: Doubles
    gap: float
    rounds: int


def least_information(graph: Graph, prior: Doubles, beta: float, *, gap: float = GAP, rounds: int = ROUNDS) -> Least:
    """The channel over a graph that makes I(X; Y) + beta E d least, in nats, by a prior (n_words,)."""
    nearest = np.minimum.reduceat(graph.distances, graph.indptr[:-1])  # a row's scale is nothing; this one cannot be 0
    weights = np.exp(-beta * (graph.distances - np.repeat(nearest, graph.lengths)))
    spread = np.repeat(prior / graph.lengths, graph.lengths)
    outputs = np.bincount(graph.outputs, spread, len(prior)).astype(np.float64)
    ratios, norms = np.empty_like(outputs), np.empty_like(prior)
    above, took = _alternate(graph.indptr, graph.outputs, weights, prior, outputs, ratios, norms, gap, rounds)
    chances = weights * outputs[graph.outputs]
    return Least(beta, chances / np.repeat(graph.sums(chances), graph.lengths), above, took)


@kernel
def _alternate(
    indptr: Ints,
    targets: SmallInts,
    weights: Doubles,
    prior: Doubles,
    outputs: Doubles,
    ratios: Doubles,
    norms: Doubles,
    gap: float,
    rounds: int,
) -> tuple[float, int]:
    """Blahut's steps on the outputs' chances, in place; his bounds are max log c - sum q c log c apart."""
    above = np.inf
    for done in range(rounds):
        ratios[:] = 0.0
        for x in range(prior.size):
            norm = 0.0
            for e in range(indptr[x], indptr[x + 1]):
                norm += outputs[targets[e]] * weights[e]
            norms[x] = norm
            for e in range(indptr[x], indptr[x + 1]):
                ratios[targets[e]] += prior[x] * weights[e] / norm
        greatest, mean = 0.0, 0.0
        for y in range(outputs.size):
            if ratios[y] > 0.0:
                greatest = max(greatest, ratios[y])
                if outputs[y] > 0.0:
                    mean += outputs[y] * ratios[y] * np.log(ratios[y])
        above = np.log(greatest) - mean
        if above <= gap:
            return above, done
        for y in range(outputs.size):
            outputs[y] *= ratios[y]
    return above, rounds
