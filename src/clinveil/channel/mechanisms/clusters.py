"""Mechanism `clusters`: words dealt into clusters of like meaning, and all words of a cluster have the same outputs.

Whoever sees an output learns which cluster the word is of, and nothing else: not from a second draw, not from a
hundred, not from the vectors. So the best guess is the cluster's most frequent word, and what context adds is a guess
of the cluster's words alone. The outputs are the most frequent words of the cluster, all as likely: one or a few of
them leave an attacker exactly as much as all would, and a reader of the release far less noise. By default a cluster is
written as the words of another: who learns from the release loses nothing, no word comes out as itself, and who has no
vectors finds no word of a note that he knows. The channel has no epsilon: outputs of two clusters are told apart for
certain.

Source: own; disjoint groups with one output set are what k-anonymity (Sweeney 2002) asks of a table's rows, and the
greatest share is what l-diversity (Machanavajjhala et al. 2007) asks of their values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism, Pool, mechanisms
from clinveil.channel.mechanisms._groups import CONTENT, FUNCTION, NAMES, Wanted, group_words
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask, SmallInts
from clinveil.lexicons.ambiguity import is_name


@mechanisms.register("clusters")
class ClusterMechanism(Mechanism):
    """Disjoint clusters of words, with one output set each; names are one cluster, function words a few of their own.

    Name words are those that the lexicons know as names and not as words, and those of known patients' names.
    """

    name: ClassVar[str] = "clusters"
    cluster_size: int = flag(16, "clusters: words of a cluster that may come out, at least.", ge=2, le=100_000)
    cluster_share: float = flag(0.25, "clusters: greatest share of a cluster's tokens of one word.", gt=0, le=1)
    cluster_outputs: int = flag(1, "clusters: outputs of a cluster, its most frequent words (0: all).", ge=0)
    function_words: int = flag(150, "clusters: the most frequent words, which are clustered apart.", ge=0)
    cluster_words: Literal["own", "other"] = flag(
        "other", "clusters: written as words of their own, or of another cluster by a secret permutation."
    )

    @property
    def need(self) -> int:
        """The words of one cluster."""
        return max(self.cluster_size, super().need)

    @property
    def said(self) -> str:
        """The settings in a few words."""
        outputs = f"{self.cluster_outputs or 'all'} of its words"
        return f"clusters of {self.cluster_size} words or more, {outputs} to come out"

    def compile(self, material: Material) -> Channel:
        """The channel; its parameters say how many clusters there are, and whether all are as wanted.

        They cannot be where the words that may come out are fewer than a cluster asks for, or one word is most of the
        tokens.
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
        said, chances = self.model_dump() | _measured(groups, counts, material.eligible, wanted), 1 / sizes
        shares = np.repeat(np.maximum(counts, 1) * chances, sizes)
        mass = np.asarray(np.bincount(outputs[places], shares, len(vectors)), dtype=np.float64)
        own = replace(material, pool=_pool(material.pool, mass))
        return own.channel(self.name, said, sizes, outputs[places], np.repeat(chances, sizes))

    def _written(self, n: int, material: Material) -> Ints:
        """The cluster whose words each cluster is written as, (n,): by one secret cycle, so that none is its own."""
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
    """(n_words,) which words are names and nothing else; and which are those of known patients, May and Rose too."""
    words, n = material.vectors.words, len(material.vectors)
    names = np.fromiter((is_name(word, material.names) for word in words), dtype=np.bool_, count=n)
    return names, np.fromiter((word in material.names for word in words), dtype=np.bool_, count=n)


def _outputs(groups: Ints, counts: Ints, eligible: Mask, most: int) -> tuple[SmallInts, Ints]:
    """The outputs of all groups, end to end, and where each group's begin and end, (n_groups + 1,)."""
    rows = np.flatnonzero(eligible)
    rows = rows[np.lexsort((rows, -counts[rows], groups[rows]))]
    ends = np.searchsorted(groups[rows], np.arange(groups.max() + 2))
    rank = np.arange(rows.size) - ends[groups[rows]]
    taken = rank < most if most else np.ones(rows.size, dtype=np.bool_)
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups[rows[taken]], minlength=len(ends) - 1))])
    return rows[taken].astype(np.int32), starts


def _pool(pool: Pool, mass: Doubles) -> Pool:
    """The row of unknown words, where there is one: what known words come out as, so that no other word stands out."""
    rows = np.flatnonzero(mass).astype(np.int32)
    return (rows, mass[rows] / mass[rows].sum()) if pool[0].size else pool


def _measured(groups: Ints, counts: Ints, eligible: Mask, wanted: Wanted) -> dict[str, Any]:
    """The clusters, the fewest words of one that may come out, and the greatest share of one word in its cluster."""
    greatest = np.zeros(groups.max() + 1, dtype=np.int64)
    np.maximum.at(greatest, groups, counts)
    fewest, tokens = int(np.bincount(groups[eligible]).min()), np.bincount(groups, counts)
    share = float((greatest / np.maximum(tokens, 1)).max())
    holds = fewest >= wanted.size and share <= wanted.share
    return {"clusters": int(groups.max()) + 1, "fewest_words": fewest, "greatest_share": share, "as_wanted": holds}
