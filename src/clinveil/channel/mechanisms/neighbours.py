"""Mechanism `neighbours`: replace a word with one of its N nearest words, never with itself (paper
A, Algorithm 1).

It has no epsilon: two words with different neighbours can be distinguished with certainty. What an
attacker recovers is measured (`attacks/channel`), not guaranteed.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.settings import N_HELP, N
from clinveil.core.settings import flag
from clinveil.core.types import Doubles


@mechanisms.register("neighbours")
class NeighbourMechanism(Mechanism):
    """N fixed, or drawn from a range per occurrence."""

    name: ClassVar[str] = "neighbours"
    n: N = flag("3-14", N_HELP, short="-n")

    @property
    def reach(self) -> int:
        """The greatest N."""
        return self.n.high

    @property
    def description(self) -> str:
        """The range of N."""
        return f"N {self.n}"

    def compile(self, material: Material) -> Channel:
        """Return the channel. Raises ValueError if the table has too few neighbours."""
        low = self.n.low
        high = self.n.high
        words = material.vectors.words
        if material.table is None or material.table.k < high:
            raise ValueError(f"the table of neighbours cannot serve N = {high}")
        nearest = material.table.ids[:, :high]
        parameters = {"low": low, "high": high, "n_per": "occurrence"}
        chances = np.tile(rank_distribution(low, high), len(words))
        return material.channel(
            self.name, parameters, np.full(len(words), high), nearest.ravel(), chances
        )


def rank_distribution(low: int, high: int) -> Doubles:
    """Return P(rank r), r = 1..high, for N uniform on low..high and the rank uniform on 1..N; shape
    (high,).

    P(r) = mean over N of 1[r <= N] / N. Source: paper A, Algorithm 1, with N drawn per occurrence
    ("3-14").
    """
    sizes = np.arange(low, high + 1)
    ranks = np.arange(1, high + 1)
    return np.asarray(((ranks[:, None] <= sizes) / sizes).mean(axis=1))
