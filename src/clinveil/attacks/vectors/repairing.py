"""The test of name reconstruction: names re-paired within position, against which a ranking's hits are held.

Among names of the same shape, first names stay where they are and each later part (middle names by their place,
surnames) is dealt out anew. Every token keeps its frequency, its role and its number of partners, and so whatever
nearness comes of those; who belongs to whom is all that goes. The same re-pairings serve every model, so the largest
of many models' hits can be held against the largest under each re-pairing: that pays for picking the best.

Source: single-step maximum: Westfall & Young 1993, Resampling-Based Multiple Testing, section 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.vectors.name_ranking import NameRanking
from clinveil.attacks.vectors.name_tokens import Group, Ids, NameTokens

DRAWS = 9999
ENUMERATE = 10_000  # as many re-pairings or fewer are all tried

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """What the first k pairs of a list hold, for each k asked.

    Attributes:
        hits: (n_ks,) distinct pairs that belong to one full name.
        names: (n_ks,) names of which some pair is among them (two patients of one name count twice).
    """

    hits: Counts
    names: Counts


@dataclass(frozen=True)
class RepairingTest:
    """Hits of some models at some k, beside those under re-pairings.

    Attributes:
        ks: (n_ks,) lengths of the list.
        hits, names: (n_models, n_ks) observed, as in `Score`.
        null_hits, null_names: (n_draws, n_models, n_ks) under re-pairings.
        exact: whether these are all re-pairings there are (the true one among them), and not a draw of them.
        fixed: names alone in their shape, which no re-pairing changes.
    """

    ks: tuple[int, ...]
    hits: Counts
    names: Counts
    null_hits: Counts
    null_names: Counts
    exact: bool
    fixed: int

    @property
    def p(self) -> NDArray[np.float64]:
        """(n_models, n_ks): P that a re-pairing gives as many hits, for one model looked at alone."""
        return self._share((self.null_hits >= self.hits).sum(axis=0))

    @property
    def names_p(self) -> NDArray[np.float64]:
        """(n_models, n_ks): P that a re-pairing gives as many names with a pair, for one model looked at alone."""
        return self._share((self.null_names >= self.names).sum(axis=0))

    @property
    def adjusted_p(self) -> NDArray[np.float64]:
        """(n_models, n_ks): P that a re-pairing gives as many hits in any of the models."""
        most = self.null_hits.max(axis=1, keepdims=True)
        return self._share((most >= self.hits).sum(axis=0))

    def _share(self, count: Counts) -> NDArray[np.float64]:
        draws = len(self.null_hits)
        return count / draws if self.exact else (count + 1) / (draws + 1)


def score(names: NameTokens, tokens: Sequence[Ids], ranking: NameRanking, ks: Sequence[int]) -> Score:
    """The hits of one ranking against names whose tokens, group by group, are these (true or re-paired)."""
    ranks = [ranking.ranks(names.codes(group)) for group in tokens]
    flat = np.concatenate([np.empty(0, np.int64), *(r.ravel() for r in ranks)])
    pairs = np.unique(flat[flat < len(ranking)])  # a rank is a pair, so a pair of two patients counts once
    best = np.sort(np.concatenate([np.empty(0, np.int64), *(r.min(axis=1) for r in ranks)]))
    within = np.minimum(np.asarray(ks, dtype=np.int64), len(ranking))
    return Score(np.searchsorted(pairs, within), np.searchsorted(best, within))


def repairing_test(
    names: NameTokens, rankings: Sequence[NameRanking], ks: Sequence[int], rng: Generator, *, draws: int = DRAWS
) -> RepairingTest:
    """Hold the hits of some models' rankings against re-paired names; all re-pairings where they are few.

    Args:
        names: the true names.
        rankings: of the same `names`, one a model.
        ks: lengths of the list to score at.
        rng: draws the re-pairings.
        draws: how many.
    """
    true = [group.tokens for group in names.groups]
    observed = [score(names, true, ranking, ks) for ranking in rankings]
    exact = n_repairings(names) <= ENUMERATE
    made = _all(names) if exact else (_draw(names, rng) for _ in range(draws))
    null = [[score(names, tokens, ranking, ks) for ranking in rankings] for tokens in made]
    return RepairingTest(
        tuple(ks),
        np.array([s.hits for s in observed]),
        np.array([s.names for s in observed]),
        np.array([[s.hits for s in row] for row in null]),
        np.array([[s.names for s in row] for row in null]),
        exact,
        sum(len(group.rows) for group in names.groups if len(group.rows) == 1),
    )


def n_repairings(names: NameTokens) -> int:
    """How many ways there are to re-pair the names."""
    return prod(factorial(len(group.rows)) ** max(0, len(group.columns()) - 1) for group in names.groups)


def _draw(names: NameTokens, rng: Generator) -> list[Ids]:
    """The tokens of every group, re-paired at random."""
    orders = ([rng.permutation(len(g.rows)) for _ in g.columns()[1:]] for g in names.groups)
    return [_dealt(group, order) for group, order in zip(names.groups, orders, strict=True)]


def _all(names: NameTokens) -> Iterator[list[Ids]]:
    """Every re-pairing, each once; the first is the true one."""
    ways = [list(product(*(permutations(range(len(g.rows))) for _ in g.columns()[1:]))) for g in names.groups]
    for way in product(*ways):
        yield [_dealt(group, [np.array(o) for o in orders]) for group, orders in zip(names.groups, way, strict=True)]


def _dealt(group: Group, orders: Sequence[Ids]) -> Ids:
    """A group's tokens with every part but the first dealt out in a new order."""
    tokens = group.tokens.copy()
    for columns, order in zip(group.columns()[1:], orders, strict=True):
        tokens[:, columns] = group.tokens[order, columns]
    return tokens
