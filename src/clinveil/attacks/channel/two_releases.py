"""Two releases of the same notes: words recovered from one draw of each release.

Exact and context-free: the attacker names the word with the largest pi(x) C1(y1|x) C2(y2|x), and knows which positions
of the two releases correspond. The channels may have different vectors and settings.
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
from clinveil.stats.findings import unmeasured

BLOCK = 2_000_000  # words times pairs of outputs in memory
SOURCE = "Bayes vulnerability of two independent draws: Smith 2009; averaging attack"


@attacks.register("two-releases")
class TwoReleases(Attack):
    """Measure how many words are recovered from this release and an earlier one of the same notes."""

    needs = frozenset({"channel", "counts", "earlier"})
    on_release = True
    order = 950
    rare: int = flag(RARE, "Words with fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Measure all words, and rare words, that are in the vocabulary of both releases."""
        channel, counts, _ = channel_and_counts(context)
        if context.earlier is None:
            raise ValueError("an earlier release is required")
        pair = Pair(channel, context.earlier, counts)
        strata = {"all": pair.shared, f"below {self.rare}": pair.shared & (counts < self.rare)}
        return [pair.finding(stratum, mask) for stratum, mask in strata.items()]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two channels applied to the same words; `counts`: (n_words,) of the first one's words."""

    one: Channel
    other: Channel
    counts: Ints

    @property
    def shared(self) -> Mask:
        """Return the words of the first channel that occur and have an output in both, (n_words,)."""
        rows = self._rows
        return (self.counts > 0) & (rows >= 0) & self.one.speaks[:-1] & self.other.speaks[rows]

    @property
    def _rows(self) -> Ints:
        """Return the row of each word of the first channel in the second, (n_words,); -1 if absent."""
        return np.array([self.other.ids.get(word, -1) for word in self.one.words], dtype=np.int64)

    def finding(self, stratum: str, mask: Mask) -> Finding:
        """Measure the share of these words, a mask (n_words,), that an attacker recovers from both draws."""
        mass = np.where(mask, self.counts, 0).astype(np.float64)
        detail: Detail = {"stratum": stratum}
        if not mass.any():
            return unmeasured("attack.two_releases", NO_SUCH_WORD, detail=detail, source=SOURCE, unit="tokens")
        won, shuffled = self._won(mass / mass.sum())
        single_release = self.one.posterior(mass / mass.sum()).vulnerability
        about: dict[str, Any] = {
            "source": SOURCE,
            "detail": {**detail, "alone": single_release},
            "method": EXACT,
            **GUESSING,
        }
        about |= {"chance": float(mass.max() / mass.sum()), "control": min(1.0, shuffled)}
        return Finding("attack.two_releases", min(1.0, won), int(mass.sum()), "lower", **about)

    def _won(self, prior: Doubles) -> tuple[float, float]:
        """Return the sum over (y1, y2) of max over x of the joint, and the same for shuffled outputs."""
        won = shuffled = 0.0
        for rows, pairs, chances in self._cells(prior):
            order = np.lexsort((rows, -chances, pairs))
            first = np.flatnonzero(np.diff(pairs[order], prepend=-1))
            won += float(chances[order][first].sum())
            shuffled += float((np.add.reduceat(chances[order], first) * prior[rows[order][first]]).sum())
        return won, shuffled

    def _cells(self, prior: Doubles) -> Iterator[tuple[Ints, Ints, Doubles]]:
        """Yield rows, pairs of outputs and joint probabilities; all entries of one first output are in one block."""
        matrix = self.one.matrix().tocoo()
        occurring = np.flatnonzero(np.append(prior, 0.0)[matrix.row] > 0)
        occurring = occurring[np.argsort(matrix.col[occurring], kind="stable")]
        rows, firsts = matrix.row[occurring].astype(np.int64), matrix.col[occurring].astype(np.int64)
        joint, others = matrix.data[occurring] * prior[rows], self._rows[rows]
        sizes = np.diff(self.other.indptr)[others]
        ends = np.cumsum(sizes)
        last = np.append(np.flatnonzero(np.diff(firsts)), firsts.size - 1)  # index of the last entry of each output
        cuts = last[np.flatnonzero(np.diff(ends[last] // BLOCK, append=-1))] + 1
        for begin, end in pairwise([0, *cuts.tolist()]):
            part = slice(begin, end)
            place = np.arange(sizes[part].sum()) - np.repeat(np.cumsum(sizes[part]) - sizes[part], sizes[part])
            entry = np.repeat(self.other.indptr[others[part]], sizes[part]) + place
            seconds = self.other.indices[entry].astype(np.int64)
            pairs = np.repeat(firsts[part], sizes[part]) * len(self.other.words) + seconds
            chances = np.repeat(joint[part], sizes[part]) * self.other.probabilities[entry]
            yield np.repeat(rows[part], sizes[part]), pairs, chances
