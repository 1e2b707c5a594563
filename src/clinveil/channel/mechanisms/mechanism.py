"""What a token mechanism is: something that compiles to a `Channel`. One mechanism a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.vectors.table import Neighbours, Vectors

# Rows and probabilities of the words that stand for a word that the channel does not know.
Pool = tuple[NDArray[np.int32], NDArray[np.float64]]
NO_POOL: Pool = (np.zeros(0, dtype=np.int32), np.zeros(0))
POOL_WORDS = 1000


class Mechanism(Protocol):
    """A frozen value that turns vectors into a channel; what it promises is said in its file."""

    @property
    def name(self) -> str:
        """What the manifest calls it."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Its settings, for the manifest; never a secret."""
        ...

    @property
    def reach(self) -> int:
        """How many neighbours a word it needs in the table; 0 if it does not look at them."""
        ...

    def compile(self, vectors: Vectors, table: Neighbours, pool: Pool = NO_POOL) -> Channel:
        """The channel over the vectors' words; only words that the table calls eligible come out.

        Args:
            vectors: words, matrix, counts.
            table: neighbours, and the rare-word floor.
            pool: the row of unknown words; without one they are dropped.
        """
        ...


def assemble(
    mechanism: Mechanism,
    vectors: Vectors,
    eligible: NDArray[np.bool_],
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    pool: Pool = NO_POOL,
    measured: Mapping[str, Any] = MappingProxyType({}),
) -> Channel:
    """The channel of a mechanism's rows and the pool.

    Args:
        mechanism: whose name and parameters the channel carries.
        vectors: whose words it is over.
        eligible: (n_words,) bool, what may come out.
        rows: (n_words,) lengths of the rows, and the outputs and probabilities of all rows, end to end.
        pool: the row of unknown words.
        measured: what the compile found out, beside the mechanism's own parameters.
    """
    lengths, indices, probabilities = rows
    indptr = np.zeros(len(vectors) + 2, dtype=np.int64)
    np.cumsum([*lengths, len(pool[0])], out=indptr[1:])
    return Channel(
        vectors.words,
        indptr,
        np.concatenate([indices, pool[0]]).astype(np.int32),
        np.concatenate([probabilities, pool[1]]),
        eligible,
        mechanism.name,
        {**mechanism.parameters, **measured},
    )


def common_pool(counts: NDArray[np.int64], eligible: NDArray[np.bool_], size: int = POOL_WORDS) -> Pool:
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
