"""Mechanism `neighbours`: a word is replaced by one of its N nearest words, never by itself (paper A, Algorithm 1).

It has no epsilon: two words with different neighbours can be told apart for certain. What it leaves an attacker is
measured (`attack/`), not promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.mechanisms.mechanism import NO_POOL, Pool, assemble
from clinveil.core.errors import InputError
from clinveil.core.keys import Key
from clinveil.vectors.table import Neighbours, Vectors


def rank_distribution(low: int, high: int) -> NDArray[np.float64]:
    """P(rank r), r = 1..high, when N is uniform on low..high and the rank uniform on 1..N; shape (high,).

    P(r) = mean over N of 1[r <= N] / N. Source: paper A, Algorithm 1, with N drawn per occurrence ("3-14").
    """
    sizes = np.arange(low, high + 1)
    ranks = np.arange(1, high + 1)
    return np.asarray(((ranks[:, None] <= sizes) / sizes).mean(axis=1))


@dataclass(frozen=True)
class NeighbourMechanism:
    """N fixed (low = high) or drawn from low..high, per occurrence or per word type.

    Attributes:
        key: only for `per_type`: N of each word is a keyed secret.

    Raises:
        InputError: a range upside down, or no key where one is needed.
    """

    low: int
    high: int
    per_type: bool = False
    key: Key | None = None

    name = "neighbours"

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high:
            raise InputError(f"N from {self.low} to {self.high} is no range")
        if self.per_type and self.key is None:
            raise InputError("N per word type is a keyed secret and needs a key")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The range of N, and what it is drawn per."""
        return MappingProxyType(
            {"low": self.low, "high": self.high, "n_per": "type" if self.per_type else "occurrence"}
        )

    @property
    def reach(self) -> int:
        """Neighbours that the table must hold for each word."""
        return self.high

    def compile(self, vectors: Vectors, table: Neighbours, pool: Pool = NO_POOL) -> Channel:
        """The channel; see `Mechanism`. Raises InputError if the table holds fewer than `high` neighbours a word."""
        if table.k < self.high:
            raise InputError(f"a table of {table.k} neighbours cannot serve N = {self.high}")
        nearest = table.ids[:, : self.high]
        if self.key is None or not self.per_type:
            lengths = np.full(len(vectors), self.high, dtype=np.int64)
            chances = np.tile(rank_distribution(self.low, self.high), len(vectors))
            return assemble(self, vectors, table.eligible, (lengths, nearest.ravel(), chances), pool)
        lengths = sizes_of(vectors.words, self.low, self.high, self.key)
        taken = np.arange(self.high) < lengths[:, None]
        return assemble(self, vectors, table.eligible, (lengths, nearest[taken], np.repeat(1 / lengths, lengths)), pool)


def sizes_of(words: Sequence[str], low: int, high: int, key: Key) -> NDArray[np.int64]:
    """N of each word, uniform on low..high, (n_words,): a keyed pseudo-random function of the word."""
    draws = (key.stream("channel neighbours per type", word).below(high - low + 1) for word in words)
    return low + np.fromiter(draws, dtype=np.int64, count=len(words))


def neighbour_channel(
    vectors: Vectors,
    table: Neighbours,
    low: int,
    high: int,
    *,
    pool: Pool = NO_POOL,
    per_type: bool = False,
    key: Key | None = None,
) -> Channel:
    """The channel of paper A: `NeighbourMechanism(low, high, per_type, key).compile(vectors, table, pool)`."""
    return NeighbourMechanism(low, high, per_type, key).compile(vectors, table, pool)
