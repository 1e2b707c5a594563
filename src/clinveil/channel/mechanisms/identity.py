"""Mechanism `identity`: every word stays; the positive control of attackers who know the channel, never a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanisms.mechanism import NO_POOL, Pool, assemble
from clinveil.vectors.table import Neighbours, Vectors


@dataclass(frozen=True)
class IdentityMechanism:
    """Every known word comes out as it went in; an attacker who knows the channel must recover all of them."""

    name = "identity"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """None."""
        return MappingProxyType({})

    @property
    def reach(self) -> int:
        """It looks at no neighbours."""
        return 0

    def compile(self, vectors: Vectors, table: Neighbours, pool: Pool = NO_POOL) -> Channel:
        """The channel; see `Mechanism`. Every word is eligible, the rare-word floor does not hold."""
        n_words = len(vectors)
        rows = np.ones(n_words, dtype=np.int64), np.arange(n_words, dtype=np.int32), np.ones(n_words)
        return assemble(self, vectors, np.ones(n_words, dtype=np.bool_), rows, pool)


def identity_channel(words: Sequence[str]) -> Channel:
    """The identity over some words; unknown words are dropped."""
    n_words = len(words)
    vectors = Vectors(words, np.zeros((n_words, 1), dtype=np.float32))
    no_neighbours = np.zeros((n_words, 0), dtype=np.int32)
    none = Neighbours(no_neighbours, no_neighbours.astype(np.float32), np.ones(n_words, dtype=np.bool_))
    return IdentityMechanism().compile(vectors, none)
