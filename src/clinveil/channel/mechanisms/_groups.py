"""Cluster words by similarity, with a minimum cluster size and a maximum token share per word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts

MOST_STARTS = 4096  # initial groups per kind: 100,000 words in half a minute
_OTHER_KIND, _NAMES = 10.0, 100.0  # beyond any squared distance between means of unit vectors
CONTENT, FUNCTION, NAMES = 0, 1, 2


@dataclass(frozen=True)
class Wanted:
    """Constraints on a group: its minimum of eligible words, and the maximum share of its tokens for one word."""

    size: int
    share: float


def group_words(units: Floats, counts: Ints, eligible: Mask, kinds: SmallInts, wanted: Wanted, seed: int) -> Ints:
    """Return the group of each word, (n_words,), 0, 1, …; every group contains an eligible word.

    Each kind starts with the largest number of groups that the minimum size allows (spherical k-means on eligible
    words; other words join the nearest group), names with one. Then the violating group with the fewest tokens is
    merged into the group with the nearest mean, preferring its own kind and names last, until no group violates the
    constraints or one group is left.

    Args:
        units: (n_words, dim) unit vectors. counts: (n_words,). eligible: (n_words,) bool, at least one true.
        kinds: (n_words,) CONTENT, FUNCTION or NAMES.
    """
    fine = _fine(units, eligible, kinds, wanted.size, seed)
    return np.unique(_Groups.of(fine, units, counts, eligible, kinds).joined(wanted)[fine], return_inverse=True)[1]


def _fine(units: Floats, eligible: Mask, kinds: SmallInts, size: int, seed: int) -> Ints:
    """Return the initial groups; not every number occurs."""
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
    """Per group, (n_groups,): eligible words, tokens, tokens of the most frequent word, kind.

    means: (n_groups, dim) of the unit vectors. alive: (n_groups,) bool, false for empty and merged groups.
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
        """Return the final group of each initial group, (n_groups,)."""
        ends = np.arange(len(self.words))
        while self.alive.sum() > 1 and (poor := self._poor(wanted)).size:
            smallest = int(poor[np.argmin(self.tokens[poor])])
            ends[ends == smallest] = self._merge(smallest)
        return ends

    def _poor(self, wanted: Wanted) -> Ints:
        few = self.words < max(1, wanted.size)
        return np.flatnonzero(self.alive & (few | (self.greatest > wanted.share * self.tokens)))

    def _merge(self, group: int) -> int:
        """Merge a group into the nearest one and return that one."""
        apart = ((self.means - self.means[group]) ** 2).sum(axis=1)
        apart += np.where(self.kind == self.kind[group], 0.0, np.where(self.kind == NAMES, _NAMES, _OTHER_KIND))
        apart[~self.alive] = np.inf
        apart[group] = np.inf
        other = int(apart.argmin())
        share = self.members[group] / (self.members[group] + self.members[other])
        self.means[other] += share * (self.means[group] - self.means[other])
        for added in (self.words, self.tokens, self.members):
            added[other] += added[group]
        self.greatest[other] = max(self.greatest[other], self.greatest[group])
        self.alive[group] = False
        return other
