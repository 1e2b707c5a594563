"""Full names as pairs of name tokens, one model's list of such pairs, nearest first, and the test of such lists.

A name's tokens are the lookup forms of its words (`Anne-Marie` has two). A form of one letter is no token: it is a
letter of every text. Two tokens of one name are a true pair, in either order, so a name of three tokens has three.
Tokens are numbered in alphabetical order, which knows nothing of whose they are, so that ties favour nobody.

A list's hits stand beside those against names re-paired within position: among names of the same shape, first names
stay where they are and each later part (middle names by their place, surnames) is permuted. Every token keeps its
frequency, its role and its number of partners, and so whatever nearness comes of those; only who belongs to whom is
lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations, product
from math import factorial, prod

import numpy as np
from numpy.random import Generator

from clinveil.attacks.vectors._closest_pairs import Metric, closest_pairs
from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.core.types import Doubles, Floats, Ints, Mask
from clinveil.vectors.table import Vectors

DRAWS = 9999
ENUMERATE = 10_000  # as many permutations or fewer are all tried
Name = Sequence[str]


@dataclass(frozen=True)
class Group:
    """Names of one shape: as many parts (letters left out), and as many tokens in each.

    Attributes:
        rows: (n,) which of the names they are.
        tokens: (n, n_tokens) token numbers, part after part.
        parts: (n_parts,) how many tokens each part has.
    """

    rows: Ints
    tokens: Ints
    parts: tuple[int, ...]

    def columns(self) -> list[slice]:
        """The columns of each part."""
        ends = np.cumsum(self.parts).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.parts, strict=True)]


class NameTokens:
    """The names of patients (one each; two patients may bear the same) as numbered tokens.

    Args:
        names: the tokens of each full name, first name first, surname last.
        also: names whose tokens get numbers too, and no true pairs: surrogates, or what an attacker took for a name.

    Attributes:
        forms: all tokens, in alphabetical order.
        n_names: how many names were given.
        groups: the names of two tokens or more, by shape.
        lone: how many names have fewer than two tokens, so that there is no pair to find.
        letters: how many parts were dropped because they are single letters.
    """

    def __init__(self, names: Iterable[Name], *, also: Iterable[Name] = ()) -> None:
        self._names, self._also = list(names), list(also)
        kept, letters = zip(*map(_parts, self._names), strict=True) if self._names else ((), ())
        others = {form for name in self._also for part in _parts(name)[0] for form in part}
        self.forms = sorted(others.union(*(part for name in kept for part in name)))
        self.n_names, self.letters = len(kept), sum(letters)
        self._ids = {form: number for number, form in enumerate(self.forms)}
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for row, name in enumerate(kept):
            by_shape.setdefault(tuple(len(part) for part in name if part), []).append(row)
        self.groups = [self._group(kept, rows, shape) for shape, rows in by_shape.items() if sum(shape) > 1]
        self.lone = self.n_names - sum(len(group.rows) for group in self.groups)

    def _group(self, kept: Sequence[list[list[str]]], rows: list[int], shape: tuple[int, ...]) -> Group:
        tokens = [[self._ids[form] for part in kept[row] for form in part] for row in rows]
        return Group(np.array(rows, dtype=np.int64), np.array(tokens, dtype=np.int64), shape)

    def beside(self, also: Iterable[Name]) -> NameTokens:
        """The same names beside others."""
        return NameTokens(self._names, also=also)

    @cached_property
    def others(self) -> NameTokens:
        """The names of `also` as true ones, and these as the others; tokens have the same numbers."""
        return NameTokens(self._also, also=self._names)

    @cached_property
    def tokens(self) -> Ints:
        """The tokens that stand in some name, ascending."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *(group.tokens.ravel() for group in self.groups)]))

    def codes(self, tokens: Ints) -> Ints:
        """The pairs within each name, (n, n_pairs) codes, from its tokens (n, n_tokens); -1 for a token with itself."""
        columns = list(combinations(range(tokens.shape[1]), 2))
        first, second = (tokens[:, [pair[side] for pair in columns]] for side in (0, 1))
        return np.where(first == second, -1, self.code(np.minimum(first, second), np.maximum(first, second)))

    def code(self, first: Ints, second: Ints) -> Ints:
        """One number for each pair of tokens, first < second."""
        return first * len(self.forms) + second

    @cached_property
    def true_pairs(self) -> Ints:
        """The distinct true pairs, ascending codes."""
        found = [self.codes(group.tokens).ravel() for group in self.groups]
        pairs = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
        return pairs[pairs >= 0]

    def rankable(self, codes: Ints, ranked: Mask) -> Mask:
        """Which pairs have both tokens among the ranked ones, (n_forms,)."""
        first, second = np.divmod(codes, len(self.forms))
        return np.asarray(ranked[first] & ranked[second])


def _parts(name: Name) -> tuple[list[list[str]], int]:
    """The tokens of each part of a name, and how many parts have none but letters."""
    parts = [[form for form in words(part) if len(form) > 1] for part in name]
    return parts, sum(not part for part in parts)


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
        """All unordered pairs of ranked tokens, of which the list holds the first."""
        n = int(self.ranked.sum())
        return n * (n - 1) // 2

    def __len__(self) -> int:
        return len(self.codes)

    def ranks(self, codes: Ints) -> Ints:
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
    """The first k pairs of name tokens by distance, fewer where there are fewer; the same for any number of threads.

    Args:
        names: whose tokens are ranked; a token without a vector is left out, and counted by the caller.
        candidates: rank only these tokens of `names`. label: the model, in words.

    Raises InputError for fewer than two tokens that have vectors.
    Source: JMIR 2020;22(7):e18055, experiment 1.
    """
    rows = np.array([vectors.ids.get(form, -1) for form in names.forms], dtype=np.int64)
    ranked = rows >= 0
    if candidates is not None:
        ranked &= np.array([form in candidates for form in names.forms], dtype=bool)
    tokens = np.flatnonzero(ranked)
    if len(tokens) < 2:
        why = f"only {len(tokens)} of {len(names.forms)} name tokens have a vector"
        raise InputError(why, hint="are these the right names?")
    matrix = vectors.matrix[rows[tokens]]
    pairs = closest_pairs(matrix, k, metric, threads=threads)
    codes = names.code(tokens[pairs.first], tokens[pairs.second])
    return NameRanking(codes, pairs.distances, metric, ranked, int((~matrix.any(axis=1)).sum()), label)


@dataclass(frozen=True)
class NamePermutationTest:
    """Hits of some models at some k, beside those under permutations.

    Attributes:
        ks: (n_ks,) lengths of the list.
        hits: (n_models, n_ks) distinct pairs that belong to one full name.
        names: (n_models, n_ks) names of which some pair is found (two patients of one name count twice).
        null_hits, null_names: (n_draws, n_models, n_ks) under permutations.
        exact: whether these are all permutations there are (the true one among them), and not a draw of them.
        fixed: names alone in their shape, which no permutation changes.
    """

    ks: tuple[int, ...]
    hits: Ints
    names: Ints
    null_hits: Ints
    null_names: Ints
    exact: bool
    fixed: int

    @property
    def p(self) -> Doubles:
        """(n_models, n_ks): P that a permutation gives as many hits, for one model looked at alone."""
        return self._share((self.null_hits >= self.hits).sum(axis=0))

    @property
    def names_p(self) -> Doubles:
        """(n_models, n_ks): P that a permutation gives as many names with a pair, for one model looked at alone."""
        return self._share((self.null_names >= self.names).sum(axis=0))

    @property
    def adjusted_p(self) -> Doubles:
        """(n_models, n_ks): P that a permutation gives as many hits in any of the models."""
        most = self.null_hits.max(axis=1, keepdims=True)
        return self._share((most >= self.hits).sum(axis=0))

    def _share(self, count: Ints) -> Doubles:
        draws = len(self.null_hits)
        return count / draws if self.exact else (count + 1) / (draws + 1)


def _score(names: NameTokens, tokens: Sequence[Ints], ranking: NameRanking, ks: Sequence[int]) -> tuple[Ints, Ints]:
    """Hits and names of one ranking, (n_ks,) each, where the names' tokens, group by group, are these."""
    ranks = [ranking.ranks(names.codes(group)) for group in tokens]
    flat = np.concatenate([np.empty(0, np.int64), *(r.ravel() for r in ranks)])
    pairs = np.unique(flat[flat < len(ranking)])  # a rank is a pair, so a pair of two patients counts once
    best = np.sort(np.concatenate([np.empty(0, np.int64), *(r.min(axis=1) for r in ranks)]))
    within = np.minimum(np.asarray(ks, dtype=np.int64), len(ranking))
    return np.searchsorted(pairs, within), np.searchsorted(best, within)


def name_permutation_test(
    names: NameTokens, rankings: Sequence[NameRanking], ks: Sequence[int], rng: Generator, *, draws: int = DRAWS
) -> NamePermutationTest:
    """Hold the hits of some models' rankings of the true names against permuted names.

    The same permutations serve every model, so the largest of many models' hits can be held against the largest under
    each permutation: that pays for picking the best. All permutations are tried where they are few.

    Source: single-step maximum: Westfall & Young 1993, Resampling-Based Multiple Testing, section 2.3.
    """
    observed = np.array([_score(names, [group.tokens for group in names.groups], r, ks) for r in rankings])
    exact = n_permutations(names) <= ENUMERATE
    made = _all(names) if exact else (_draw(names, rng) for _ in range(draws))
    null = np.array([[_score(names, tokens, ranking, ks) for ranking in rankings] for tokens in made])
    fixed = sum(len(group.rows) for group in names.groups if len(group.rows) == 1)
    return NamePermutationTest(tuple(ks), observed[:, 0], observed[:, 1], null[:, :, 0], null[:, :, 1], exact, fixed)


def n_permutations(names: NameTokens) -> int:
    """How many ways there are to re-pair the names."""
    return prod(factorial(len(group.rows)) ** max(0, len(group.columns()) - 1) for group in names.groups)


def _draw(names: NameTokens, rng: Generator) -> list[Ints]:
    """The tokens of every group, permuted at random."""
    orders = ([rng.permutation(len(g.rows)) for _ in g.columns()[1:]] for g in names.groups)
    return [_permuted(group, order) for group, order in zip(names.groups, orders, strict=True)]


def _all(names: NameTokens) -> Iterator[list[Ints]]:
    """Every permutation, each once; the first is the true one."""
    ways = [list(product(*(permutations(range(len(g.rows))) for _ in g.columns()[1:]))) for g in names.groups]
    for way in product(*ways):
        yield [_permuted(group, [np.array(o) for o in orders]) for group, orders in zip(names.groups, way, strict=True)]


def _permuted(group: Group, orders: Sequence[Ints]) -> Ints:
    """A group's tokens with every part but the first in a new order."""
    tokens = group.tokens.copy()
    for columns, order in zip(group.columns()[1:], orders, strict=True):
        tokens[:, columns] = group.tokens[order, columns]
    return tokens
