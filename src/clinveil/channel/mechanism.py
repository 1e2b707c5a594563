"""Base class of token mechanisms: settings that compile to a `Channel`.

A mechanism is one file of `channel/mechanisms`, or any registered class; docs/extending.md has a
complete example. Other distributions register their class in the entry point group
`clinveil.mechanisms`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.mechanisms import mechanisms
from clinveil.core.keys import Key
from clinveil.core.settings import Settings
from clinveil.core.types import Doubles, Ints, Mask, SmallInts
from clinveil.vectors.table import Neighbours, Vectors

# Rows and probabilities of the words that replace unknown words.
Pool = tuple[SmallInts, Doubles]
NO_POOL: Pool = (np.zeros(0, dtype=np.int32), np.zeros(0))
POOL_WORDS = 1000


@dataclass(frozen=True)
class Material:
    """Input of `Mechanism.compile`.

    Attributes:
        vectors: words, matrix, counts; all words are inputs.
        eligible: (n_words,) bool, words that may be outputs (at or above the rare-word floor).
        pool: the row of unknown words; they are dropped if it is empty.
        table: the `Mechanism.reach` nearest eligible words of each word.
        key: derives secrets of the channel itself. seed: of random choices during compilation.
        names: words of known patients' names, in lookup form.
    """

    vectors: Vectors
    eligible: Mask = field(repr=False)
    pool: Pool = field(default=NO_POOL, repr=False)
    table: Neighbours | None = None
    key: Key | None = None
    seed: int = 0
    names: frozenset[str] = field(default=frozenset(), repr=False)

    def channel(
        self,
        name: str,
        parameters: Mapping[str, Any],
        lengths: Ints,
        outputs: NDArray[np.integer],
        chances: Doubles,
    ) -> Channel:
        """Return the channel with these rows and the pool.

        Args:
            name, parameters: recorded in the manifest; must not contain secrets.
            lengths: (n_words,) outputs per row. outputs, chances: of all rows, concatenated.
        """
        indptr = np.zeros(len(self.vectors) + 2, dtype=np.int64)
        np.cumsum([*lengths, len(self.pool[0])], out=indptr[1:])
        indices = np.concatenate([outputs, self.pool[0]]).astype(np.int32)
        all_chances = np.concatenate([chances, self.pool[1]])
        return Channel(
            self.vectors.words, indptr, indices, all_chances, self.eligible, name, dict(parameters)
        )


class Mechanism(Settings):
    """One way to replace words; its fields are its settings."""

    name: ClassVar[str]

    @property
    def reach(self) -> int:
        """Number of neighbours needed per word."""
        return 1

    @property
    def need(self) -> int:
        """Number of eligible words needed."""
        return self.reach + 1

    @property
    def description(self) -> str:
        """The mechanism and its settings in a few words."""
        return self.name

    @abstractmethod
    def compile(self, material: Material) -> Channel:
        """Return a channel over the words of the vectors; only eligible words may be outputs."""


def common_pool(counts: Ints, eligible: Mask, size: int = POOL_WORDS) -> Pool:
    """Return the most frequent eligible words with probabilities proportional to frequency; they
    replace unknown words.

    Args:
        counts: (n_words,) occurrences; if all are 0, the first eligible words with equal
            probabilities.
        eligible: (n_words,) bool, words that may be outputs.
        size: maximum number of words.
    """
    order = np.argsort(-counts, kind="stable")
    ids = order[eligible[order]][:size].astype(np.int32)
    mass = np.maximum(counts[ids], 1).astype(np.float64)
    return ids, mass / mass.sum()


__all__ = ["NO_POOL", "Material", "Mechanism", "Pool", "common_pool", "mechanisms"]
