"""Mechanism `neighbours`: a word is replaced by one of its N nearest words (paper A, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.errors import InputError
from clinveil.keys import Key
from clinveil.vectors.table import Neighbours

Pool = tuple[NDArray[np.int32], NDArray[np.float64]]
NO_POOL: Pool = (np.zeros(0, dtype=np.int32), np.zeros(0))


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
    """

    low: int
    high: int
    per_type: bool = False
    key: Key | None = None

    name = "neighbours"

    def compile(self, words: Sequence[str], table: Neighbours, pool: Pool = NO_POOL) -> Channel:
        """The channel of these words; unknown words draw from the pool (ids, probabilities), or are dropped without one.

        Raises InputError if the table holds fewer than `high` neighbours a word.
        """
        if table.k < self.high:
            raise InputError(f"a table of {table.k} neighbours cannot serve N = {self.high}")
        sizes = self._sizes(words)
        if sizes is None:
            probabilities = np.tile(rank_distribution(self.low, self.high), len(words))
            indices, lengths = table.ids[:, : self.high].ravel(), np.full(len(words), self.high)
        else:
            taken = np.arange(self.high) < sizes[:, None]
            indices, lengths = table.ids[:, : self.high][taken], sizes
            probabilities = np.repeat(1 / sizes, sizes)
        return Channel(
            words,
            np.concatenate([[0], np.cumsum([*lengths, len(pool[0])])]).astype(np.int64),
            np.concatenate([indices, pool[0]]).astype(np.int32),
            np.concatenate([probabilities, pool[1]]),
            table.eligible,
            self.name,
            {"low": self.low, "high": self.high, "n_per": "type" if self.per_type else "occurrence"},
        )

    def _sizes(self, words: Sequence[str]) -> NDArray[np.int64] | None:
        if not self.per_type or self.low == self.high:
            return None
        if self.key is None:
            raise InputError("N per word type is a keyed secret and needs a key")
        span = self.high - self.low + 1
        draws = (self.key.stream("neighbours per type", word).below(span) for word in words)
        return self.low + np.fromiter(draws, dtype=np.int64, count=len(words))


def common_pool(counts: NDArray[np.int64], eligible: NDArray[np.bool_], size: int = 1000) -> Pool:
    """The most frequent eligible words, drawn by their frequency: what stands for a word that the channel does not know."""
    order = np.argsort(-counts, kind="stable")
    ids = order[eligible[order]][:size].astype(np.int32)
    mass = np.maximum(counts[ids], 1).astype(np.float64)
    return ids, mass / mass.sum()
