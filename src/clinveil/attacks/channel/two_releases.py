"""Two releases of the same notes: what an attacker reads who lays them side by side, one draw of each word from each.

Exact, without context: they name the word with the largest pi(x) C1(y1|x) C2(y2|x), and are given which places of the
two releases belong together. The two channels may be of different vectors and settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import EXACT, GUESSING, NO_SUCH_WORD, RARE, channel_and_counts
from clinveil.channel.channel import Channel
from clinveil.core.finding import Detail, Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.core.words import words_beside
from clinveil.stats.findings import unmeasured

CELLS = 2_000_000  # of words and pairs of outputs, held at once
SOURCE = "Bayes vulnerability of two independent draws: Smith 2009; averaging attack"


@attacks.register("two-releases")
class TwoReleases(Attack):
    """How many words are read back from a release and an earlier one of the same notes."""

    needs = frozenset({"channel", "counts", "earlier"})
    words = words_beside(__file__)
    on_release = True
    order = 950
    rare: int = flag(RARE, "Words of fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """All words, and the rare ones, that both releases know."""
        channel, counts, _ = channel_and_counts(context)
        if context.earlier is None:
            raise ValueError("two releases are needed")
        pair = Pair(channel, context.earlier, counts)
        strata = {"all": pair.shared, f"below {self.rare}": pair.shared & (counts < self.rare)}
        return [pair.finding(stratum, mask) for stratum, mask in strata.items()]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two channels that the same words went through; `counts`: (n_words,) of the first one's words."""

    one: Channel
    other: Channel
    counts: Ints

    @property
    def shared(self) -> Mask:
        """(n_words,) the words of the first that occur and have an output in both."""
        rows = self._rows
        return (self.counts > 0) & (rows >= 0) & self.one.speaks[:-1] & self.other.speaks[rows]

    @property
    def _rows(self) -> Ints:
        """(n_words,) the row of each word of the first in the other; -1 where it has none."""
        return np.array([self.other.ids.get(word, -1) for word in self.one.words], dtype=np.int64)

    def finding(self, stratum: str, mask: Mask) -> Finding:
        """The share of these words, (n_words,) bool, that who knows that they are of these names from both draws."""
        mass = np.where(mask, self.counts, 0).astype(np.float64)
        detail: Detail = {"stratum": stratum}
        if not mass.any():
            return unmeasured("attack.two_releases", NO_SUCH_WORD, detail=detail, source=SOURCE, unit="tokens")
        won, shuffled = self._won(mass / mass.sum())
        alone = self.one.posterior(mass / mass.sum()).vulnerability
        told: dict[str, Any] = {"source": SOURCE, "detail": {**detail, "alone": alone}, "method": EXACT, **GUESSING}
        told |= {"chance": float(mass.max() / mass.sum()), "control": min(1.0, shuffled)}
        return Finding("attack.two_releases", min(1.0, won), int(mass.sum()), "lower", **told)

    def _won(self, prior: Doubles) -> tuple[float, float]:
        """sum over (y1, y2) of max over x of the joint, and what the same names win when outputs are shuffled."""
        won = shuffled = 0.0
        for rows, pairs, chances in self._cells(prior):
            order = np.lexsort((rows, -chances, pairs))
            first = np.flatnonzero(np.diff(pairs[order], prepend=-1))
            won += float(chances[order][first].sum())
            shuffled += float((np.add.reduceat(chances[order], first) * prior[rows[order][first]]).sum())
        return won, shuffled

    def _cells(self, prior: Doubles) -> Iterator[tuple[Ints, Ints, Doubles]]:
        """Rows, pairs of outputs and joint probabilities, with all of one first output in one block."""
        matrix = self.one.matrix().tocoo()
        live = np.flatnonzero(np.append(prior, 0.0)[matrix.row] > 0)
        live = live[np.argsort(matrix.col[live], kind="stable")]
        rows, firsts = matrix.row[live].astype(np.int64), matrix.col[live].astype(np.int64)
        joint, others = matrix.data[live] * prior[rows], self._rows[rows]
        sizes = np.diff(self.other.indptr)[others]
        ends = np.cumsum(sizes)
        last = np.append(np.flatnonzero(np.diff(firsts)), firsts.size - 1)  # where an output's entries end
        cuts = last[np.flatnonzero(np.diff(ends[last] // CELLS, append=-1))] + 1
        for begin, end in pairwise([0, *cuts.tolist()]):
            part = slice(begin, end)
            place = np.arange(sizes[part].sum()) - np.repeat(np.cumsum(sizes[part]) - sizes[part], sizes[part])
            entry = np.repeat(self.other.indptr[others[part]], sizes[part]) + place
            seconds = self.other.indices[entry].astype(np.int64)
            pairs = np.repeat(firsts[part], sizes[part]) * len(self.other.words) + seconds
            chances = np.repeat(joint[part], sizes[part]) * self.other.probabilities[entry]
            yield np.repeat(rows[part], sizes[part]), pairs, chances
