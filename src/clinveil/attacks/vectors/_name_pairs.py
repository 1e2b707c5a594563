"""Full names as pairs of name tokens, and one model's list of such pairs, nearest first.

A name's tokens are the lookup forms of its words (`Anne-Marie` has two). A form of one letter is no token: it is a
letter of every text. Two tokens of one name are a true pair, in either order, so a name of three tokens has three.
Tokens are numbered in alphabetical order, which knows nothing of whose they are, so that ties favour nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from clinveil.attacks.vectors._closest_pairs import Metric, closest_pairs
from clinveil.core.errors import InputError
from clinveil.core.tokens import words
from clinveil.core.types import Floats, Ints, Mask
from clinveil.vectors.table import Vectors

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
