"""Full names as pairs of name tokens, a model's list of the nearest pairs, and a permutation test
of such lists.

A name's tokens are the lookup forms of its words (`Anne-Marie` has two), without single letters.
Two tokens of one name are a true pair, in either order, so a name of three tokens has three true
pairs. Tokens are numbered alphabetically, so that ties do not favour any patient.

A list's hits are compared with those against names re-paired within position: among names of the
same shape, first names stay in place and each later part (middle names by position, surnames) is
permuted. Every token keeps its frequency, its position and its number of partners, with any
proximity due to these; only the combination is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations, product
from math import factorial, prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from clinveil.core import Doubles, Floats, InputError, Ints, Mask, SmallInts, UsageError, words
from clinveil.vectors import Vectors, one_thread_each

Metric = Literal["cosine", "cityblock", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "cityblock", "euclidean")
_AT_ONCE = 1 << 22  # distances computed in one block


class NamePairs(NamedTuple):
    """Pairs of rows, nearest first: int32 rows, first < second, and float32 distances, (k,)
    each.
    """

    first: SmallInts
    second: SmallInts
    distances: Floats


def closest_pairs(matrix: Floats, k: int, metric: Metric) -> NamePairs:
    """Return the first k of all unordered pairs of rows, by distance (fewer if there are fewer
    pairs); exact.

    Distances are computed in float64 and rounded to float32, so equal vectors tie. Ties go to the
    lower first row, then to the lower second.

    Args:
        matrix: (n, dim) float32, finite.
        k: number of pairs.
        metric: cosine, cityblock or euclidean. A zero vector has cosine similarity 0 with all
            others.

    Raises:
        UsageError: an unknown metric.
        ValueError: k below 1.
    """
    if metric not in METRICS:
        raise UsageError(f"unknown metric {metric!r}", hint="one of " + ", ".join(METRICS))
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    points = matrix.astype(np.float64)
    n = len(matrix)
    found = NamePairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32))
    step = max(1, _AT_ONCE // max(n, 1))
    with one_thread_each():
        for start in range(0, n - 1, step):
            distances = _distances(points[start : start + step], points[start:], metric).astype(
                np.float32
            )
            limit = found.distances[-1] if len(found.first) == k else np.inf
            rows, columns = np.nonzero(distances <= limit)
            upper = rows < columns  # each pair once
            rows = rows[upper]
            columns = columns[upper]
            pairs = NamePairs(
                np.concatenate([found.first, (rows + start).astype(np.int32)]),
                np.concatenate([found.second, (columns + start).astype(np.int32)]),
                np.concatenate([found.distances, distances[rows, columns]]),
            )
            found = _first(pairs, k)
    return found


def _first(pairs: NamePairs, k: int) -> NamePairs:
    """Return the first k pairs in order; only pairs within the k-th distance are sorted."""
    keep = np.arange(pairs.first.size)
    if keep.size > k:
        keep = np.flatnonzero(pairs.distances <= np.partition(pairs.distances, k - 1)[k - 1])
    order = keep[np.lexsort((pairs.second[keep], pairs.first[keep], pairs.distances[keep]))][:k]
    return NamePairs(pairs.first[order], pairs.second[order], pairs.distances[order])


def _distances(rows: Doubles, others: Doubles, metric: Metric) -> Doubles:
    from scipy.spatial.distance import cdist

    if metric != "cosine":
        return np.asarray(cdist(rows, others, metric))
    lengths = [np.linalg.norm(side, axis=1) for side in (rows, others)]
    left, right = (
        np.divide(1.0, size, out=np.zeros(size.size), where=size > 0) for size in lengths
    )
    # The similarity is rounded first.
    cosines = ((rows @ others.T) * (left[:, None] * right)).astype(np.float32)
    return np.asarray(np.float32(1) - cosines)


DRAWS = 9999
ENUMERATE = 10_000  # with at most this many permutations, all are enumerated
Name = Sequence[str]


@dataclass(frozen=True)
class NameGroup:
    """Names of one shape: the same number of parts (letters left out), and of tokens in each.

    Attributes:
        rows: (n,) indices of the names.
        tokens: (n, n_tokens) token numbers, part after part.
        parts: (n_parts,) number of tokens of each part.
    """

    rows: Ints
    tokens: Ints
    parts: tuple[int, ...]

    def columns(self) -> list[slice]:
        """Return the columns of each part."""
        ends = np.cumsum(self.parts).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.parts, strict=True)]


class NameTokens:
    """The names of patients (one each; two patients may have the same) as numbered tokens.

    Args:
        names: the tokens of each full name, first name first, surname last.
        also: surrogate names, whose tokens are also numbered but form no true pairs.

    Attributes:
        forms: all tokens, in alphabetical order.
        n_names: number of names.
        groups: the names of at least two tokens, by shape.
        lone: number of names with fewer than two tokens, which have no pair.
        letters: number of parts dropped because they are single letters.
    """

    def __init__(self, names: Iterable[Name], *, also: Iterable[Name] = ()) -> None:
        self._names = list(names)
        self._also = list(also)
        parts_of, letters = zip(*map(_parts, self._names), strict=True) if self._names else ((), ())
        others = {form for name in self._also for part in _parts(name)[0] for form in part}
        self.forms = sorted(others.union(*(part for name in parts_of for part in name)))
        self.n_names = len(parts_of)
        self.letters = sum(letters)
        self._ids = {form: number for number, form in enumerate(self.forms)}
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for row, name in enumerate(parts_of):
            by_shape.setdefault(tuple(len(part) for part in name if part), []).append(row)
        self.groups = [
            self._group(parts_of, rows, shape) for shape, rows in by_shape.items() if sum(shape) > 1
        ]
        self.lone = self.n_names - sum(len(group.rows) for group in self.groups)

    def _group(
        self, parts_of: Sequence[list[list[str]]], rows: list[int], shape: tuple[int, ...]
    ) -> NameGroup:
        tokens = [[self._ids[form] for part in parts_of[row] for form in part] for row in rows]
        return NameGroup(np.array(rows, dtype=np.int64), np.array(tokens, dtype=np.int64), shape)

    @cached_property
    def others(self) -> NameTokens:
        """Return the names of `also` as true ones, and these as the others; tokens keep their
        numbers.
        """
        return NameTokens(self._also, also=self._names)

    @cached_property
    def tokens(self) -> Ints:
        """Return the tokens of all names, sorted."""
        return np.unique(
            np.concatenate(
                [np.empty(0, np.int64), *(group.tokens.ravel() for group in self.groups)]
            )
        )

    def codes(self, tokens: Ints) -> Ints:
        """Return the codes of the pairs within each name, (n, n_pairs), from tokens; -1 for a token
        with itself.
        """
        columns = list(combinations(range(tokens.shape[1]), 2))
        first = tokens[:, [pair[0] for pair in columns]]
        second = tokens[:, [pair[1] for pair in columns]]
        return np.where(
            first == second, -1, self.code(np.minimum(first, second), np.maximum(first, second))
        )

    def code(self, first: Ints, second: Ints) -> Ints:
        """Return a unique number for each pair of tokens, first < second."""
        return first * len(self.forms) + second

    @cached_property
    def true_pairs(self) -> Ints:
        """Return the distinct true pairs as sorted codes."""
        found = [self.codes(group.tokens).ravel() for group in self.groups]
        pairs = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
        return pairs[pairs >= 0]

    def rankable(self, codes: Ints, ranked: Mask) -> Mask:
        """Return which pairs have both tokens among the ranked ones, (n_forms,)."""
        first, second = np.divmod(codes, len(self.forms))
        return np.asarray(ranked[first] & ranked[second])


def _parts(name: Name) -> tuple[list[list[str]], int]:
    """Return the tokens of each part of a name, and the number of parts that contain only
    letters.
    """
    parts = [[form for form in words(part) if len(form) > 1] for part in name]
    return parts, sum(not part for part in parts)


@dataclass(frozen=True)
class NameRanking:
    """The first pairs of one model, nearest first; ties by the tokens' alphabetical order.

    Attributes:
        codes: (k,) pairs, numbered by `NameTokens.code`.
        distances: (k,) sorted.
        metric: of the distances.
        ranked: (n_forms,) bool, the tokens that have a vector and were ranked.
        zero: number of ranked tokens with a zero vector.
        label: the name of the model.
    """

    codes: Ints = field(repr=False)
    distances: Floats = field(repr=False)
    metric: Metric
    ranked: Mask = field(repr=False)
    zero: int = 0
    label: str = ""
    _order: Ints = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_order", np.argsort(self.codes))

    @property
    def n_pairs(self) -> int:
        """Return the number of unordered pairs of ranked tokens, of which the list contains the
        first.
        """
        n = int(self.ranked.sum())
        return n * (n - 1) // 2

    def __len__(self) -> int:
        return len(self.codes)

    def ranks(self, codes: Ints) -> Ints:
        """Return the index of each pair in the list, same shape; the length of the list for other
        pairs.
        """
        if not len(self):
            return np.zeros(codes.shape, np.int64)
        places = np.minimum(np.searchsorted(self.codes, codes, sorter=self._order), len(self) - 1)
        ranks = self._order[places]
        return np.where(self.codes[ranks] == codes, ranks, len(self))


def rank_names(
    vectors: Vectors, names: NameTokens, metric: Metric, k: int, *, label: str = ""
) -> NameRanking:
    """Return the first k pairs of name tokens by distance; fewer if there are fewer.

    Args:
        names: the tokens to rank; tokens without a vector are left out, and counted by the caller.
        label: the name of the model.

    Raises InputError for fewer than two tokens with vectors.
    Source: JMIR 2020;22(7):e18055, experiment 1.
    """
    rows = np.array([vectors.ids.get(form, -1) for form in names.forms], dtype=np.int64)
    ranked = rows >= 0
    tokens = np.flatnonzero(ranked)
    if len(tokens) < 2:
        why = f"only {len(tokens)} of {len(names.forms)} name tokens have a vector"
        raise InputError(why, hint="check that these are the right names")
    matrix = vectors.matrix[rows[tokens]]
    pairs = closest_pairs(matrix, k, metric)
    codes = names.code(tokens[pairs.first], tokens[pairs.second])
    return NameRanking(
        codes, pairs.distances, metric, ranked, int((~matrix.any(axis=1)).sum()), label
    )


@dataclass(frozen=True)
class NamePermutationTest:
    """Hits of some models among the first k pairs, and those under permutations.

    Attributes:
        hits: (n_models,) distinct pairs that belong to one full name.
        names: (n_models,) names with at least one pair found (two patients with the same name count
            twice).
        null_hits, null_names: (n_draws, n_models) under permutations.
        exact: whether all permutations (including the true order) were enumerated rather than
            sampled.
        fixed: names that are the only ones of their shape, which no permutation changes.
    """

    hits: Ints
    names: Ints
    null_hits: Ints
    null_names: Ints
    exact: bool
    fixed: int

    @property
    def p(self) -> Doubles:
        """Return P that a permutation gives at least as many hits, for one model alone,
        (n_models,).
        """
        return self._share(self.null_hits >= self.hits)

    @property
    def names_p(self) -> Doubles:
        """Return P that a permutation gives as many names with a pair, for one model alone,
        (n_models,).
        """
        return self._share(self.null_names >= self.names)

    @property
    def adjusted_p(self) -> Doubles:
        """Return P that a permutation gives at least as many hits in any of the models,
        (n_models,).
        """
        return self._share(self.null_hits.max(axis=1, keepdims=True) >= self.hits)

    def _share(self, reached: Mask) -> Doubles:
        draws = len(reached)
        count = reached.sum(axis=0)
        return count / draws if self.exact else (count + 1) / (draws + 1)


def _score(
    names: NameTokens, tokens: Sequence[Ints], ranking: NameRanking, k: int
) -> tuple[int, int]:
    """Return hits and names of one ranking, for these tokens of the names, group by group."""
    ranks = [ranking.ranks(names.codes(group)) for group in tokens]
    k = min(k, len(ranking))
    # A rank identifies a pair, so a pair of two patients counts once.
    pairs = np.unique(np.concatenate([np.empty(0, np.int64), *(r[r < k] for r in ranks)]))
    return pairs.size, sum(int((r.min(axis=1) < k).sum()) for r in ranks)


def name_permutation_test(
    names: NameTokens,
    rankings: Sequence[NameRanking],
    k: int,
    rng: Generator,
    *,
    draws: int = DRAWS,
) -> NamePermutationTest:
    """Compare the hits of some models' rankings against the true names with those against permuted
    names.

    All models use the same permutations, so the largest hits of several models can be compared with
    the largest under each permutation; this corrects for choosing the best model. All permutations
    are enumerated if they are few.

    Source: single-step maximum: Westfall & Young 1993, Resampling-Based Multiple Testing, section
    2.3.
    """
    observed = np.array(
        [_score(names, [group.tokens for group in names.groups], r, k) for r in rankings]
    )
    exact = n_permutations(names) <= ENUMERATE
    permuted_tokens = _all(names) if exact else (_draw(names, rng) for _ in range(draws))
    null = np.array(
        [[_score(names, tokens, ranking, k) for ranking in rankings] for tokens in permuted_tokens]
    )
    fixed = sum(len(group.rows) for group in names.groups if len(group.rows) == 1)
    return NamePermutationTest(
        observed[:, 0], observed[:, 1], null[:, :, 0], null[:, :, 1], exact, fixed
    )


def n_permutations(names: NameTokens) -> int:
    """Return the number of ways to re-pair the names."""
    return prod(
        factorial(len(group.rows)) ** max(0, len(group.columns()) - 1) for group in names.groups
    )


def _draw(names: NameTokens, rng: Generator) -> list[Ints]:
    """Return the tokens of every group, permuted at random."""
    orders = ([rng.permutation(len(g.rows)) for _ in g.columns()[1:]] for g in names.groups)
    return [_permuted(group, order) for group, order in zip(names.groups, orders, strict=True)]


def _all(names: NameTokens) -> Iterator[list[Ints]]:
    """Yield every permutation once; the first is the true order."""
    all_orders = [
        list(product(*(permutations(range(len(g.rows))) for _ in g.columns()[1:])))
        for g in names.groups
    ]
    for orders_of in product(*all_orders):
        yield [
            _permuted(group, [np.array(o) for o in orders])
            for group, orders in zip(names.groups, orders_of, strict=True)
        ]


def _permuted(group: NameGroup, orders: Sequence[Ints]) -> Ints:
    """Return a group's tokens with every part except the first in a new order."""
    tokens = group.tokens.copy()
    for columns, order in zip(group.columns()[1:], orders, strict=True):
        tokens[:, columns] = group.tokens[order, columns]
    return tokens
