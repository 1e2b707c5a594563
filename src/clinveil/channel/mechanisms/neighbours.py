"""Mechanism `neighbours`: a word is replaced by one of its N nearest words, never by itself (paper A, Algorithm 1).

It has no epsilon: two words with different neighbours can be told apart for certain. What it leaves an attacker is
measured (`attacks/channel`), not promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, Pool, mechanisms
from clinveil.channel.settings import N_HELP, N_PER_HELP, N
from clinveil.core.keys import Key
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.vectors.neighbours import neighbours


@mechanisms.register("neighbours")
class NeighbourMechanism(Mechanism):
    """N fixed or drawn from a range, per occurrence or, as a keyed secret, per word type."""

    name: ClassVar[str] = "neighbours"
    n: N = flag("3-14", N_HELP, short="-n")
    n_per: Literal["occurrence", "type"] = flag("occurrence", N_PER_HELP)
    in_degree: int = flag(0, "neighbours: words that every output can come from, at least.", ge=0, le=10_000)

    @property
    def reach(self) -> int:
        """The greatest N."""
        return self.n.high

    @property
    def said(self) -> str:
        """N, as it is written."""
        return f"N {self.n}" + f", outputs of {self.in_degree} words or more" * (self.in_degree > 1)

    def compile(self, material: Material) -> Channel:
        """The channel. Raises ValueError where the table has too few neighbours, or no key makes N per word type.

        With a floor on the in-degree, words that fewer can become come out no more: who had one of them takes the
        next in the row, as with a higher rare-word floor. That only adds to the in-degree of the others, so it ends;
        the floor is raised by doubling, so that no more words go than must. Raises InputError where not more than N
        words are left.
        """
        made, asked = self._rows(material), 2
        while asked < 2 * self.in_degree:
            made, material = self._with_floor(made, material, min(asked, self.in_degree))
            asked *= 2
        return made

    def _with_floor(self, made: Channel, material: Material, floor: int) -> tuple[Channel, Material]:
        """The channel without outputs of fewer than `floor` inputs, and what it is made from."""
        seen = material.vectors.counts
        n = len(material.vectors)
        occurs = np.ones(n, dtype=np.bool_) if seen is None or not seen.any() else seen > 0
        degrees = np.bincount(made.indices[np.append(occurs, False)[made.rows]], minlength=n)
        assert material.table is not None
        stays = material.table.eligible & (degrees >= floor)
        table = neighbours(material.vectors, self.n.high, eligible=stays, threads=material.threads, seed=material.seed)
        again = replace(material, table=table, pool=_within(material.pool, stays))
        said = {"in_degree": self.in_degree, "left": int(stays.sum())}
        made = self._rows(again)
        return replace(made, parameters={**made.parameters, **said}), again

    def _rows(self, material: Material) -> Channel:
        low, high, words = self.n.low, self.n.high, material.vectors.words
        if material.table is None or material.table.k < high:
            raise ValueError(f"the table of neighbours cannot serve N = {high}")
        nearest = material.table.ids[:, :high]
        said = {"low": low, "high": high, "n_per": self.n_per}
        if self.n_per == "occurrence":
            chances = np.tile(rank_distribution(low, high), len(words))
            return material.channel(self.name, said, np.full(len(words), high), nearest.ravel(), chances)
        if material.key is None:
            raise ValueError("N per word type is a keyed secret and needs a key")
        lengths = sizes_of(words, low, high, material.key)
        taken = np.arange(high) < lengths[:, None]
        return material.channel(self.name, said, lengths, nearest[taken], np.repeat(1 / lengths, lengths))


def _within(pool: Pool, stays: Mask) -> Pool:
    """The pool without words that come out no more."""
    ids, chances = pool[0][stays[pool[0]]], pool[1][stays[pool[0]]]
    return ids, chances / chances.sum()


def rank_distribution(low: int, high: int) -> Doubles:
    """P(rank r), r = 1..high, when N is uniform on low..high and the rank uniform on 1..N; shape (high,).

    P(r) = mean over N of 1[r <= N] / N. Source: paper A, Algorithm 1, with N drawn per occurrence ("3-14").
    """
    sizes = np.arange(low, high + 1)
    ranks = np.arange(1, high + 1)
    return np.asarray(((ranks[:, None] <= sizes) / sizes).mean(axis=1))


def sizes_of(words: Sequence[str], low: int, high: int, key: Key) -> Ints:
    """N of each word, uniform on low..high, (n_words,): a keyed pseudo-random function of the word."""
    draws = (key.stream("channel neighbours per type", word).below(high - low + 1) for word in words)
    return low + np.fromiter(draws, dtype=np.int64, count=len(words))
