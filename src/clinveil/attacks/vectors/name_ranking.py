"""One model's list of token pairs, nearest first: what paper B's attacker holds after experiment 1."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.vectors.closest_pairs import closest_pairs
from clinveil.attacks.vectors.distances import Floats, Metric
from clinveil.attacks.vectors.name_tokens import Ids, NameTokens
from clinveil.core.errors import InputError
from clinveil.vectors.table import Vectors


@dataclass(frozen=True)
class NameRanking:
    """The first pairs of one model, nearest first; ties by the tokens' alphabetical order.

    Attributes:
        codes: (k,) pairs, as `NameTokens.code` numbers them.
        distances: (k,) ascending.
        metric: of the distances.
        ranked: (n_forms,) bool, the tokens that have a vector and were ranked.
        zero: how many of them have a zero vector.
        label: the model, in words.
    """

    codes: Ids = field(repr=False)
    distances: Floats = field(repr=False)
    metric: Metric
    ranked: NDArray[np.bool_] = field(repr=False)
    zero: int = 0
    label: str = ""
    _order: Ids = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_order", np.argsort(self.codes))

    @property
    def n_pairs(self) -> int:
        """All unordered pairs of ranked tokens, of which the list holds the first."""
        n = int(self.ranked.sum())
        return n * (n - 1) // 2

    def __len__(self) -> int:
        return len(self.codes)

    def ranks(self, codes: Ids) -> Ids:
        """The place of each pair in the list from 0, same shape; its length for a pair that is not in it."""
        if not len(self):
            return np.zeros(codes.shape, np.int64)
        places = np.minimum(np.searchsorted(self.codes, codes, sorter=self._order), len(self) - 1)
        ranks = self._order[places]
        return np.where(self.codes[ranks] == codes, ranks, len(self))


def rank_names(
    vectors: Vectors,
    names: NameTokens,
    metric: Metric,
    k: int,
    *,
    candidates: Collection[str] | None = None,
    threads: int = 2,
    label: str = "",
) -> NameRanking:
    """The first k pairs of name tokens by distance.

    Args:
        vectors: what is to be released.
        names: whose tokens are ranked; a token without a vector is left out, and counted by the caller.
        metric: cosine, cityblock or euclidean.
        k: the length of the list; shorter where there are fewer pairs.
        candidates: rank only these tokens of `names`.
        threads: how many; the list is the same for any number.
        label: the model, in words.

    Raises:
        InputError: fewer than two tokens have vectors.
    Source: JMIR 2020;22(7):e18055, experiment 1.
    """
    rows = np.array([vectors.ids.get(form, -1) for form in names.forms], dtype=np.int64)
    ranked = rows >= 0
    if candidates is not None:
        ranked &= np.array([form in candidates for form in names.forms], dtype=bool)
    tokens = np.flatnonzero(ranked)
    if len(tokens) < 2:
        raise InputError(
            f"only {len(tokens)} of {len(names.forms)} name tokens have a vector", remedy="are these the right names?"
        )
    matrix = vectors.matrix[rows[tokens]]
    pairs = closest_pairs(matrix, k, metric, threads=threads)
    codes = names.code(tokens[pairs.first], tokens[pairs.second])
    return NameRanking(codes, pairs.distances, metric, ranked, int((~matrix.any(axis=1)).sum()), label)
