"""Words dealt into groups of like meaning that each hold enough words, of which none is most of its group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts

MOST_STARTS = 4096  # groups of a kind to begin with: a hundred thousand words in half a minute
_OTHER_KIND, _NAMES = 10.0, 100.0  # beyond any squared distance between means of unit vectors
CONTENT, FUNCTION, NAMES = 0, 1, 2


@dataclass(frozen=True)
class Wanted:
    """What a group must hold: so many words that may come out, and no word with more than this share of its tokens."""

    size: int
    share: float


def group_words(units: Floats, counts: Ints, eligible: Mask, kinds: SmallInts, wanted: Wanted, seed: int) -> Ints:
    """The group of each word, (n_words,), 0, 1, …; every group holds a word that may come out.

    Each kind begins with as many groups as could hold enough words (spherical k-means of those that may come out; the
    rest join the nearest), names with one. Then the group of the fewest tokens that is not as wanted is joined to the
    group of the nearest mean, of its own kind while there is one and of names last, until all are, or one is left.

    Args:
        units: (n_words, dim) at length 1. counts: (n_words,). eligible: (n_words,) bool, some of them.
        kinds: (n_words,) CONTENT, FUNCTION or NAMES.
    """
    fine = _fine(units, eligible, kinds, wanted.size, seed)
    return np.unique(_Groups.of(fine, units, counts, eligible, kinds).joined(wanted)[fine], return_inverse=True)[1]


def _fine(units: Floats, eligible: Mask, kinds: SmallInts, size: int, seed: int) -> Ints:
    """The groups to begin with; numbers may be missing."""
    from clinveil.vectors.search import topics

    groups, first = np.zeros(len(units), dtype=np.int64), 0
    for kind in np.unique(kinds):
        own = kinds == kind
        n = int((own & eligible).sum())
        starts = 1 if kind == NAMES else min(max(1, n // size), MOST_STARTS)
        groups[own] = first + (topics(units[own], eligible[own], starts, seed) if starts > 1 else 0)
        first += starts
    return groups


@dataclass(frozen=True)
class _Groups:
    """What is known of each group, (n_groups,): words that may come out, tokens, tokens of the greatest word, kind.

    means: (n_groups, dim) of the unit vectors. alive: (n_groups,) bool, the others are empty or were joined.
    """

    words: Ints
    tokens: Ints
    greatest: Ints
    kind: Ints
    members: Ints
    means: Doubles
    alive: Mask

    @classmethod
    def of(cls, groups: Ints, units: Floats, counts: Ints, eligible: Mask, kinds: SmallInts) -> _Groups:
        n = int(groups.max()) + 1
        greatest, kind = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        np.maximum.at(greatest, groups, counts)
        kind[groups] = kinds
        sums = np.zeros((n, units.shape[1]))
        np.add.at(sums, groups, units)
        words, tokens = (np.bincount(groups, some, n).astype(np.int64) for some in (eligible, counts))
        members = np.bincount(groups, minlength=n)
        means = sums / np.maximum(members, 1)[:, None]
        return cls(words, tokens, greatest, kind, members, means, members > 0)

    def joined(self, wanted: Wanted) -> Ints:
        """The group that each ended in, (n_groups,)."""
        ends = np.arange(len(self.words))
        while self.alive.sum() > 1 and (poor := self._poor(wanted)).size:
            one = int(poor[np.argmin(self.tokens[poor])])
            ends[ends == one] = self._join(one)
        return ends

    def _poor(self, wanted: Wanted) -> Ints:
        few = self.words < max(1, wanted.size)
        return np.flatnonzero(self.alive & (few | (self.greatest > wanted.share * self.tokens)))

    def _join(self, one: int) -> int:
        """Join a group to the nearest; which."""
        apart = ((self.means - self.means[one]) ** 2).sum(axis=1)
        apart += np.where(self.kind == self.kind[one], 0.0, np.where(self.kind == NAMES, _NAMES, _OTHER_KIND))
        apart[~self.alive] = np.inf
        apart[one] = np.inf
        other = int(apart.argmin())
        share = self.members[one] / (self.members[one] + self.members[other])
        self.means[other] += share * (self.means[one] - self.means[other])
        for added in (self.words, self.tokens, self.members):
            added[other] += added[one]
        self.greatest[other] = max(self.greatest[other], self.greatest[one])
        self.alive[one] = False
        return other
