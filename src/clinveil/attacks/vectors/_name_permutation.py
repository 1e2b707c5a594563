"""The test of name reconstruction: a ranking's hits beside those against names re-paired within position.

Among names of the same shape, first names stay where they are and each later part (middle names by their place,
surnames) is permuted. Every token keeps its frequency, its role and its number of partners, and so whatever nearness
comes of those; only who belongs to whom is lost. The same permutations serve every model, so the largest of many
models' hits can be held against the largest under each permutation: that pays for picking the best.

Source: single-step maximum: Westfall & Young 1993, Resampling-Based Multiple Testing, section 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from numpy.random import Generator

from clinveil.attacks.vectors._name_pairs import Group, NameRanking, NameTokens
from clinveil.core.types import Doubles, Ints

DRAWS = 9999
ENUMERATE = 10_000  # as many permutations or fewer are all tried


@dataclass(frozen=True)
class Score:
    """What the first k pairs of a list hold, for each k asked.

    Attributes:
        hits: (n_ks,) distinct pairs that belong to one full name.
        names: (n_ks,) names of which some pair is among them (two patients of one name count twice).
    """

    hits: Ints
    names: Ints


@dataclass(frozen=True)
class NamePermutationTest:
    """Hits of some models at some k, beside those under permutations.

    Attributes:
        ks: (n_ks,) lengths of the list.
        hits, names: (n_models, n_ks) observed, as in `Score`.
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


def score(names: NameTokens, tokens: Sequence[Ints], ranking: NameRanking, ks: Sequence[int]) -> Score:
    """The hits of one ranking against names whose tokens, group by group, are these (true or permuted)."""
    ranks = [ranking.ranks(names.codes(group)) for group in tokens]
    flat = np.concatenate([np.empty(0, np.int64), *(r.ravel() for r in ranks)])
    pairs = np.unique(flat[flat < len(ranking)])  # a rank is a pair, so a pair of two patients counts once
    best = np.sort(np.concatenate([np.empty(0, np.int64), *(r.min(axis=1) for r in ranks)]))
    within = np.minimum(np.asarray(ks, dtype=np.int64), len(ranking))
    return Score(np.searchsorted(pairs, within), np.searchsorted(best, within))


def name_permutation_test(
    names: NameTokens, rankings: Sequence[NameRanking], ks: Sequence[int], rng: Generator, *, draws: int = DRAWS
) -> NamePermutationTest:
    """Hold the hits of some models' rankings against permuted names; all permutations where they are few.

    Args:
        names: the true names.
        rankings: of the same `names`, one a model.
        ks: lengths of the list to score at.
        rng: draws the permutations.
        draws: how many.
    """
    true = [group.tokens for group in names.groups]
    observed = [score(names, true, ranking, ks) for ranking in rankings]
    exact = n_permutations(names) <= ENUMERATE
    made = _all(names) if exact else (_draw(names, rng) for _ in range(draws))
    null = [[score(names, tokens, ranking, ks) for ranking in rankings] for tokens in made]
    return NamePermutationTest(
        tuple(ks),
        np.array([s.hits for s in observed]),
        np.array([s.names for s in observed]),
        np.array([[s.hits for s in row] for row in null]),
        np.array([[s.names for s in row] for row in null]),
        exact,
        sum(len(group.rows) for group in names.groups if len(group.rows) == 1),
    )


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
