"""Paper A, Algorithm 1: replace a word with one of its N nearest words, never with itself.

It has no epsilon: two words with different neighbours can be distinguished with certainty. What an
attacker recovers is measured (`attacks/channel`), not guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.settings import NeighbourRange
from clinveil.core import Doubles, Ints, Mask, SmallInts
from clinveil.vectors import Neighbours

NEIGHBOURS = "neighbours"
"""Name of the mechanism, as in the manifest."""
# Rows and probabilities of the words that replace unknown words.
Pool = tuple[SmallInts, Doubles]
NO_POOL: Pool = (np.zeros(0, dtype=np.int32), np.zeros(0))
POOL_WORDS = 1000


def neighbour_channel(
    words: Sequence[str], n: NeighbourRange, table: Neighbours, pool: Pool = NO_POOL
) -> Channel:
    """Return the channel that draws from the N nearest words; N is fixed, or drawn per occurrence.

    Args:
        words: the vocabulary. table: the nearest eligible words of each of them.
        pool: the row of unknown words; they are dropped if it is empty.

    Raises:
        ValueError: the table has too few neighbours.
    """
    if table.k < n.high:
        raise ValueError(f"the table of neighbours cannot serve N = {n.high}")
    common, shares = pool
    lengths = [n.high] * len(words) + [common.size]
    outputs = np.concatenate([table.ids[:, : n.high].ravel(), common])
    chances = np.tile(rank_distribution(n.low, n.high), len(words))
    return Channel(
        words,
        indptr=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)]),
        indices=outputs.astype(np.int32),
        probabilities=np.concatenate([chances, shares]),
        eligible=table.eligible,
        mechanism=NEIGHBOURS,
        parameters={"low": n.low, "high": n.high, "n_per": "occurrence"},
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
