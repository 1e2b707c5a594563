"""Mechanism `clusters`: similar words form disjoint clusters, and all words of a cluster share one output set.

An output discloses the cluster and nothing else, however often a word is drawn and even to an attacker with the
vectors. The best guess is the cluster's most frequent word; context can only choose among the words of the cluster.
The outputs are the cluster's most frequent words with equal probabilities; their number does not change what an
attacker learns, and fewer outputs mean less noise. By default the outputs of a cluster are words of another cluster:
models learn equally well, no word is replaced by itself, and without the vectors no known word of a note reappears.
The channel has no epsilon, because outputs of two clusters are distinguished with certainty.

Source: original. Disjoint groups with one output set correspond to k-anonymity (Sweeney 2002), the maximum token share
to l-diversity (Machanavajjhala et al. 2007).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, mechanisms
from clinveil.channel.mechanisms._groups import CONTENT, FUNCTION, NAMES, Wanted, group_words
from clinveil.core.settings import flag
from clinveil.core.types import Ints, Mask, SmallInts
from clinveil.lexicons.ambiguity import is_name


@mechanisms.register("clusters")
class ClusterMechanism(Mechanism):
    """Disjoint clusters of words with one output set each; names form one cluster, function words separate ones.

    Names are words that the lexicons list only as names, and words of known patients' names.
    """

    name: ClassVar[str] = "clusters"
    cluster_size: int = flag(16, "clusters: minimum eligible words per cluster.", ge=2, le=100_000)
    cluster_share: float = flag(0.25, "clusters: maximum share of a cluster's tokens for one word.", gt=0, le=1)
    cluster_outputs: int = flag(1, "clusters: outputs per cluster, its most frequent words (0: all).", ge=0)
    function_words: int = flag(150, "clusters: number of most frequent words to cluster separately.", ge=0)
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
        """Return the channel; its parameters state the number of clusters and whether all meet the constraints.

        The constraints cannot be met with fewer eligible words than one cluster needs, or if one word exceeds the
        share of all tokens.
        """
        vectors, wanted = material.vectors, Wanted(self.cluster_size, self.cluster_share)
        counts = np.zeros(len(vectors), dtype=np.int64) if vectors.counts is None else vectors.counts
        matrix = vectors.matrix.astype(np.float64)
        lengths = np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
        kinds, units = self._kinds(material, counts), (matrix / lengths).astype(np.float32)
        groups = group_words(units, counts, material.eligible, kinds, wanted, material.seed)
        outputs, starts = _outputs(groups, counts, material.eligible, self.cluster_outputs)
        written = self._written(len(starts) - 1, material)[groups]
        sizes = np.diff(starts)[written]
        places = np.repeat(starts[written] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        parameters = self.model_dump() | _measured(groups, counts, material.eligible, wanted)
        chances = 1 / sizes
        shares = np.repeat(np.maximum(counts, 1) * chances, sizes)
        mass = np.asarray(np.bincount(outputs[places], shares, len(vectors)), dtype=np.float64)
        if material.pool[0].size:  # unknown words get the distribution of all outputs, so that none stands out
            rows = np.flatnonzero(mass).astype(np.int32)
            material = replace(material, pool=(rows, mass[rows] / mass[rows].sum()))
        return material.channel(self.name, parameters, sizes, outputs[places], np.repeat(chances, sizes))

    def _written(self, n: int, material: Material) -> Ints:
        """Return the cluster whose words replace each cluster, (n,): one secret cycle, so that none maps to itself."""
        if self.cluster_words == "own" or n == 1:
            return np.arange(n)
        stream = material.key.stream("channel clusters written as") if material.key else None
        drawn = [stream.uint64() for _ in range(n)] if stream else np.random.default_rng(material.seed).random(n)
        order = np.argsort(np.asarray(drawn), kind="stable")
        other = np.empty(n, dtype=np.int64)
        other[order] = np.roll(order, 1)
        return other

    def _kinds(self, material: Material, counts: Ints) -> SmallInts:
        names, known = _names(material)
        function = np.zeros(len(counts), dtype=np.bool_)
        frequent = np.argsort(-np.where(names, -1, counts), kind="stable")[: self.function_words]
        function[frequent] = ~names[frequent]
        return np.where(function, FUNCTION, np.where(names | known, NAMES, CONTENT)).astype(np.int32)


def _names(material: Material) -> tuple[Mask, Mask]:
    """Return two masks, (n_words,): words that are only names, and all words of known patients' names."""
    words, n = material.vectors.words, len(material.vectors)
    names = np.fromiter((is_name(word, material.names) for word in words), dtype=np.bool_, count=n)
    return names, np.fromiter((word in material.names for word in words), dtype=np.bool_, count=n)


def _outputs(groups: Ints, counts: Ints, eligible: Mask, most: int) -> tuple[SmallInts, Ints]:
    """Return the outputs of all groups, concatenated, and their offsets, (n_groups + 1,)."""
    rows = np.flatnonzero(eligible)
    rows = rows[np.lexsort((rows, -counts[rows], groups[rows]))]
    ends = np.searchsorted(groups[rows], np.arange(groups.max() + 2))
    rank = np.arange(rows.size) - ends[groups[rows]]
    taken = rank < most if most else np.ones(rows.size, dtype=np.bool_)
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups[rows[taken]], minlength=len(ends) - 1))])
    return rows[taken].astype(np.int32), starts


def _measured(groups: Ints, counts: Ints, eligible: Mask, wanted: Wanted) -> dict[str, Any]:
    """Return the number of clusters, the fewest eligible words, and the greatest share of one word in its cluster."""
    greatest = np.zeros(groups.max() + 1, dtype=np.int64)
    np.maximum.at(greatest, groups, counts)
    fewest, tokens = int(np.bincount(groups[eligible]).min()), np.bincount(groups, counts)
    share = float((greatest / np.maximum(tokens, 1)).max())
    holds = fewest >= wanted.size and share <= wanted.share
    return {"clusters": int(groups.max()) + 1, "fewest_words": fewest, "greatest_share": share, "as_wanted": holds}
