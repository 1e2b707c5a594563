"""Mechanism `neighbours`: replace a word with one of its N nearest words, never with itself (paper A, Algorithm 1).

It has no epsilon: two words with different neighbours can be distinguished with certainty. What an attacker recovers
is measured (`attacks/channel`), not guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.settings import N_HELP, N_PER_HELP, N
from clinveil.core.keys import Key
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints


@mechanisms.register("neighbours")
class NeighbourMechanism(Mechanism):
    """N fixed or drawn from a range, per occurrence or, as a keyed secret, per word type."""

    name: ClassVar[str] = "neighbours"
    n: N = flag("3-14", N_HELP, short="-n")
    n_per: Literal["occurrence", "type"] = flag("occurrence", N_PER_HELP)

    @property
    def reach(self) -> int:
        """The greatest N."""
        return self.n.high

    @property
    def description(self) -> str:
        """The range of N."""
        return f"N {self.n}"

    def compile(self, material: Material) -> Channel:
        """Return the channel. Raises ValueError: the table has too few neighbours, or N per word type has no key."""
        low, high, words = self.n.low, self.n.high, material.vectors.words
        if material.table is None or material.table.k < high:
            raise ValueError(f"the table of neighbours cannot serve N = {high}")
        nearest = material.table.ids[:, :high]
        parameters = {"low": low, "high": high, "n_per": self.n_per}
        if self.n_per == "occurrence":
            chances = np.tile(rank_distribution(low, high), len(words))
            return material.channel(self.name, parameters, np.full(len(words), high), nearest.ravel(), chances)
        if material.key is None:
            raise ValueError("N per word type needs a key")
        lengths = sizes_of(words, low, high, material.key)
        taken = np.arange(high) < lengths[:, None]
        return material.channel(self.name, parameters, lengths, nearest[taken], np.repeat(1 / lengths, lengths))


def rank_distribution(low: int, high: int) -> Doubles:
    """Return P(rank r), r = 1..high, for N uniform on low..high and the rank uniform on 1..N; shape (high,).

    P(r) = mean over N of 1[r <= N] / N. Source: paper A, Algorithm 1, with N drawn per occurrence ("3-14").
    """
    sizes = np.arange(low, high + 1)
    ranks = np.arange(1, high + 1)
    return np.asarray(((ranks[:, None] <= sizes) / sizes).mean(axis=1))


def sizes_of(words: Sequence[str], low: int, high: int, key: Key) -> Ints:
    """Return N per word, uniform on low..high, (n_words,): a keyed pseudo-random function of the word."""
    draws = (key.stream("channel neighbours per type", word).below(high - low + 1) for word in words)
    return low + np.fromiter(draws, dtype=np.int64, count=len(words))
