"""The shape of a token mechanism: settings that compile to a `Channel`.

A mechanism is one file of `channel/mechanisms`, or a class that anybody registers. This is a whole one:

    from typing import ClassVar

    import numpy as np

    from clinveil.channel.mechanism import Material, Mechanism, mechanisms
    from clinveil.core.settings import flag

    @mechanisms.register("common")
    class Common(Mechanism):
        \"\"\"Every word becomes one of the most frequent words that may come out.\"\"\"

        name: ClassVar[str] = "common"
        words: int = flag(10, "How many frequent words are drawn from.", ge=1)

        def compile(self, material):
            common = np.flatnonzero(material.eligible)[: self.words]  # the most frequent word comes first
            outputs = np.tile(common, len(material.vectors))
            lengths, chances = np.full(len(material.vectors), common.size), np.full(outputs.size, 1 / common.size)
            return material.channel(self.name, self.model_dump(), lengths, outputs, chances)

Other distributions name their class in the entry point group `clinveil.mechanisms`.
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

# Rows and probabilities of the words that stand for a word that the channel does not know.
Pool = tuple[SmallInts, Doubles]
NO_POOL: Pool = (np.zeros(0, dtype=np.int32), np.zeros(0))
POOL_WORDS, DRAWS = 1000, 200


@dataclass(frozen=True)
class Material:
    """What a mechanism compiles from.

    Attributes:
        vectors: words, matrix, counts; all words are inputs.
        eligible: (n_words,) bool, the words that may come out: the rare-word floor.
        pool: the row of unknown words; without one they are dropped.
        table: the nearest eligible words, `Mechanism.reach` of each.
        key: of what is a keyed secret in the channel itself. seed: of draws that it is compiled by.
        draws: of each word on average, where a mechanism is compiled by drawing. threads: they change nothing.
        names: words of the names of known patients, lookup forms.
    """

    vectors: Vectors
    eligible: Mask = field(repr=False)
    pool: Pool = field(default=NO_POOL, repr=False)
    table: Neighbours | None = None
    key: Key | None = None
    seed: int = 0
    draws: int = DRAWS
    threads: int = 1
    names: frozenset[str] = field(default=frozenset(), repr=False)

    def channel(
        self, name: str, parameters: Mapping[str, Any], lengths: Ints, outputs: NDArray[np.integer], chances: Doubles
    ) -> Channel:
        """The channel of a mechanism's rows and the pool.

        Args:
            name, parameters: what the manifest says of the mechanism; never a secret.
            lengths: (n_words,) of the rows. outputs, chances: of all rows, end to end.
        """
        indptr = np.zeros(len(self.vectors) + 2, dtype=np.int64)
        np.cumsum([*lengths, len(self.pool[0])], out=indptr[1:])
        indices = np.concatenate([outputs, self.pool[0]]).astype(np.int32)
        all_chances = np.concatenate([chances, self.pool[1]])
        return Channel(self.vectors.words, indptr, indices, all_chances, self.eligible, name, dict(parameters))


class Mechanism(Settings):
    """One way to replace words: its fields are its settings; what it promises is said in its file."""

    name: ClassVar[str]

    @property
    def reach(self) -> int:
        """How many neighbours of each word it looks at."""
        return 1

    @property
    def need(self) -> int:
        """How many words must be able to come out."""
        return self.reach + 1

    @property
    def said(self) -> str:
        """It and its settings in a few words, for people."""
        return self.name

    @abstractmethod
    def compile(self, material: Material) -> Channel:
        """The channel over the vectors' words; only eligible words come out."""


def common_pool(counts: Ints, eligible: Mask, size: int = POOL_WORDS) -> Pool:
    """The most frequent eligible words, each as likely as it is frequent: they stand for unknown words.

    Args:
        counts: (n_words,) occurrences; where all are 0 the first eligible words are taken, all as likely.
        eligible: (n_words,) bool, what may come out.
        size: how many words at most.
    """
    order = np.argsort(-counts, kind="stable")
    ids = order[eligible[order]][:size].astype(np.int32)
    mass = np.maximum(counts[ids], 1).astype(np.float64)
    return ids, mass / mass.sum()


__all__ = ["NO_POOL", "Material", "Mechanism", "Pool", "common_pool", "mechanisms"]
