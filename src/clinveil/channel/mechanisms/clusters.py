"""Mechanism `clusters`: similar words form disjoint clusters, and all words of a cluster share one
output set.

An output discloses the cluster and nothing else, however often a word is drawn and even to an
attacker with the vectors. The best guess is the cluster's most frequent word; context can only
choose among the words of the cluster. The outputs are the cluster's most frequent words with equal
probabilities; their number does not change what an attacker learns, and fewer outputs mean less
noise. By default the outputs of a cluster are words of another cluster:
models learn equally well, no word is replaced by itself, and without the vectors no known word of a
note reappears. The channel has no epsilon, because outputs of two clusters are distinguished with
certainty.

Source: original. Disjoint groups with one output set correspond to k-anonymity (Sweeney 2002), the
maximum token share to l-diversity (Machanavajjhala et al. 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts
from clinveil.lexicons.ambiguity import is_name

MOST_STARTS = 4096  # initial groups per kind: 100,000 words in half a minute
# beyond any squared distance between means of unit vectors
_OTHER_KIND = 10.0
_NAMES = 100.0
CONTENT = 0
FUNCTION = 1
NAMES = 2


@dataclass(frozen=True)
class Wanted:
    """Constraints on a group: its minimum of eligible words, and the maximum share of its tokens
    for one word.
    """

    size: int
    share: float


def group_words(
    units: Floats, counts: Ints, eligible: Mask, kinds: SmallInts, wanted: Wanted, seed: int
) -> Ints:
    """Return the group of each word, (n_words,), 0, 1, …; every group contains an eligible word.

    Each kind starts with the largest number of groups that the minimum size allows (spherical
    k-means on eligible words; other words join the nearest group), names with one. Then the
    violating group with the fewest tokens is merged into the group with the nearest mean,
    preferring its own kind and names last, until no group violates the constraints or one group is
    left.

    Args:
        units: (n_words, dim) unit vectors. counts: (n_words,). eligible: (n_words,) bool, at least
            one true.
        kinds: (n_words,) CONTENT, FUNCTION or NAMES.
    """
    fine = _fine(units, eligible, kinds, wanted.size, seed)
    return np.unique(
        _Groups.of(fine, units, counts, eligible, kinds).joined(wanted)[fine], return_inverse=True
    )[1]


def _fine(units: Floats, eligible: Mask, kinds: SmallInts, size: int, seed: int) -> Ints:
    """Return the initial groups; not every number occurs."""
    from clinveil.vectors.search import topics

    groups = np.zeros(len(units), dtype=np.int64)
    first = 0
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

    means: (n_groups, dim) of the unit vectors. alive: (n_groups,) bool, false for empty and merged
    groups.
    """

    words: Ints
    tokens: Ints
    greatest: Ints
    kind: Ints
    members: Ints
    means: Doubles
    alive: Mask

    @classmethod
    def of(
        cls, groups: Ints, units: Floats, counts: Ints, eligible: Mask, kinds: SmallInts
    ) -> _Groups:
        n = int(groups.max()) + 1
        greatest = np.zeros(n, dtype=np.int64)
        kind = np.zeros(n, dtype=np.int64)
        np.maximum.at(greatest, groups, counts)
        kind[groups] = kinds
        sums = np.zeros((n, units.shape[1]))
        np.add.at(sums, groups, units)
        words, tokens = (
            np.bincount(groups, some, n).astype(np.int64) for some in (eligible, counts)
        )
        members = np.bincount(groups, minlength=n)
        means = sums / np.maximum(members, 1)[:, None]
        return cls(words, tokens, greatest, kind, members, means, members > 0)

    def joined(self, wanted: Wanted) -> Ints:
        """Return the final group of each initial group, (n_groups,)."""
        ends = np.arange(len(self.words))
        while self.alive.sum() > 1:
            few = self.words < max(1, wanted.size)
            uneven = self.greatest > wanted.share * self.tokens
            poor = np.flatnonzero(self.alive & (few | uneven))
            if not poor.size:
                break
            smallest = int(poor[np.argmin(self.tokens[poor])])
            ends[ends == smallest] = self._merge(smallest)
        return ends

    def _merge(self, group: int) -> int:
        """Merge a group into the nearest one and return that one."""
        apart = ((self.means - self.means[group]) ** 2).sum(axis=1)
        apart += np.where(
            self.kind == self.kind[group], 0.0, np.where(self.kind == NAMES, _NAMES, _OTHER_KIND)
        )
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


@mechanisms.register("clusters")
class ClusterMechanism(Mechanism):
    """Disjoint clusters of words with one output set each; names form one cluster, function words
    separate ones.

    Names are words that the lexicons list only as names, and words of known patients' names.
    """

    name: ClassVar[str] = "clusters"
    cluster_size: int = flag(16, "clusters: minimum eligible words per cluster.", ge=2, le=100_000)
    cluster_share: float = flag(
        0.25, "clusters: maximum share of a cluster's tokens for one word.", gt=0, le=1
    )
    cluster_outputs: int = flag(
        1, "clusters: outputs per cluster, its most frequent words (0: all).", ge=0
    )
    function_words: int = flag(
        150, "clusters: number of most frequent words to cluster separately.", ge=0
    )
    cluster_words: Literal["own", "other"] = flag(
        "other", "clusters: output words of the own cluster, or of another by a secret permutation."
    )

    @property
    def need(self) -> int:
        """Eligible words of one cluster."""
        return max(self.cluster_size, super().need)

    @property
    def description(self) -> str:
        """The settings in a few words."""
        outputs = f"{self.cluster_outputs or 'all'} of its words"
        return f"clusters of {self.cluster_size} or more words, {outputs} as outputs"

    def compile(self, material: Material) -> Channel:
        """Return the channel; its parameters state the number of clusters and whether all meet the
        constraints.

        The constraints cannot be met with fewer eligible words than one cluster needs, or if one
        word exceeds the share of all tokens.
        """
        vectors = material.vectors
        wanted = Wanted(self.cluster_size, self.cluster_share)
        counts = (
            np.zeros(len(vectors), dtype=np.int64) if vectors.counts is None else vectors.counts
        )
        matrix = vectors.matrix.astype(np.float64)
        lengths = np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
        kinds = self._kinds(material, counts)
        units = (matrix / lengths).astype(np.float32)
        groups = group_words(units, counts, material.eligible, kinds, wanted, material.seed)
        outputs, starts = _outputs(groups, counts, material.eligible, self.cluster_outputs)
        written = self._written(len(starts) - 1, material)[groups]
        sizes = np.diff(starts)[written]
        places = np.repeat(starts[written] - np.cumsum(sizes) + sizes, sizes) + np.arange(
            sizes.sum()
        )
        parameters = self.model_dump() | _measured(groups, counts, material.eligible, wanted)
        chances = 1 / sizes
        shares = np.repeat(np.maximum(counts, 1) * chances, sizes)
        mass = np.asarray(np.bincount(outputs[places], shares, len(vectors)), dtype=np.float64)
        if material.pool[
            0
        ].size:  # unknown words get the distribution of all outputs, so that none stands out
            rows = np.flatnonzero(mass).astype(np.int32)
            material = replace(material, pool=(rows, mass[rows] / mass[rows].sum()))
        return material.channel(
            self.name, parameters, sizes, outputs[places], np.repeat(chances, sizes)
        )

    def _written(self, n: int, material: Material) -> Ints:
        """Return the cluster that replaces each cluster, (n,): one secret cycle, so that none maps
        to itself.
        """
        if self.cluster_words == "own" or n == 1:
            return np.arange(n)
        stream = material.key.stream("channel clusters written as") if material.key else None
        drawn = (
            [stream.uint64() for _ in range(n)]
            if stream
            else np.random.default_rng(material.seed).random(n)
        )
        order = np.argsort(np.asarray(drawn), kind="stable")
        other = np.empty(n, dtype=np.int64)
        other[order] = np.roll(order, 1)
        return other

    def _kinds(self, material: Material, counts: Ints) -> SmallInts:
        names, known = _names(material)
        function = np.zeros(len(counts), dtype=np.bool_)
        frequent = np.argsort(-np.where(names, -1, counts), kind="stable")[: self.function_words]
        function[frequent] = ~names[frequent]
        return np.where(function, FUNCTION, np.where(names | known, NAMES, CONTENT)).astype(
            np.int32
        )


def _names(material: Material) -> tuple[Mask, Mask]:
    """Return two masks, (n_words,): words that are only names, and all words of known patients'
    names.
    """
    words = material.vectors.words
    n = len(material.vectors)
    names = np.fromiter((is_name(word, material.names) for word in words), dtype=np.bool_, count=n)
    return names, np.fromiter((word in material.names for word in words), dtype=np.bool_, count=n)


def _outputs(groups: Ints, counts: Ints, eligible: Mask, most: int) -> tuple[SmallInts, Ints]:
    """Return the outputs of all groups, concatenated, and their offsets, (n_groups + 1,)."""
    rows = np.flatnonzero(eligible)
    rows = rows[np.lexsort((rows, -counts[rows], groups[rows]))]
    ends = np.searchsorted(groups[rows], np.arange(groups.max() + 2))
    rank = np.arange(rows.size) - ends[groups[rows]]
    taken = rank < most if most else np.ones(rows.size, dtype=np.bool_)
    starts = np.concatenate(
        [[0], np.cumsum(np.bincount(groups[rows[taken]], minlength=len(ends) - 1))]
    )
    return rows[taken].astype(np.int32), starts


def _measured(groups: Ints, counts: Ints, eligible: Mask, wanted: Wanted) -> dict[str, Any]:
    """Return the number of clusters, the fewest eligible words, and the greatest share of one word
    in its cluster.
    """
    greatest = np.zeros(groups.max() + 1, dtype=np.int64)
    np.maximum.at(greatest, groups, counts)
    fewest = int(np.bincount(groups[eligible]).min())
    tokens = np.bincount(groups, counts)
    share = float((greatest / np.maximum(tokens, 1)).max())
    holds = fewest >= wanted.size and share <= wanted.share
    return {
        "clusters": int(groups.max()) + 1,
        "fewest_words": fewest,
        "greatest_share": share,
        "as_wanted": holds,
    }
