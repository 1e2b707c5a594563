"""Full names as pairs of name tokens: what an attacker would have to put together again.

A name's tokens are the lookup forms of its words (`Anne-Marie` has two). A form of one letter is no token: it is a
letter of every text. Two tokens of one name are a true pair, in either order, so a name of three tokens has three.
Tokens are numbered in alphabetical order, which knows nothing of whose they are, so that ties favour nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from clinveil.core.tokens import words

Ids = NDArray[np.int64]
Name = Sequence[str]


@dataclass(frozen=True)
class Group:
    """Names of one shape: as many parts (letters left out), and as many tokens in each.

    Attributes:
        rows: (n,) which of the names they are.
        tokens: (n, n_tokens) token numbers, part after part.
        parts: (n_parts,) how many tokens each part has.
    """

    rows: Ids
    tokens: Ids
    parts: tuple[int, ...]

    def columns(self) -> list[slice]:
        """The columns of each part."""
        ends = np.cumsum(self.parts).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.parts, strict=True)]


class NameTokens:
    """The names of patients (one each; two patients may bear the same) as numbered tokens.

    Args:
        names: the tokens of each full name, first name first, surname last.
        also: names whose tokens get numbers too, and no true pairs: decoys, or what an attacker took for a name.

    Attributes:
        forms: all tokens, in alphabetical order.
        n_names: how many names were given.
        groups: the names of two tokens or more, by shape.
        lone: how many names have fewer than two tokens, so that there is no pair to find.
        letters: how many parts were dropped because they are single letters.
    """

    def __init__(self, names: Iterable[Name], *, also: Iterable[Name] = ()) -> None:
        kept, letters = zip(*map(_parts, names), strict=True) if (names := list(names)) else ((), ())
        others = {form for name in also for part in _parts(name)[0] for form in part}
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

    @cached_property
    def tokens(self) -> Ids:
        """The tokens that stand in some name, ascending."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *(group.tokens.ravel() for group in self.groups)]))

    def codes(self, tokens: Ids) -> Ids:
        """The pairs within each name, (n, n_pairs) codes, from its tokens (n, n_tokens); -1 for a token with itself."""
        columns = list(combinations(range(tokens.shape[1]), 2))
        first, second = (tokens[:, [pair[side] for pair in columns]] for side in (0, 1))
        return np.where(first == second, -1, self.code(np.minimum(first, second), np.maximum(first, second)))

    def code(self, first: Ids, second: Ids) -> Ids:
        """One number for each pair of tokens, first < second."""
        return first * len(self.forms) + second

    @cached_property
    def true_pairs(self) -> Ids:
        """The distinct true pairs, ascending codes."""
        found = [self.codes(group.tokens).ravel() for group in self.groups]
        pairs = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
        return pairs[pairs >= 0]

    def rankable(self, codes: Ids, ranked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which pairs have both tokens among the ranked ones, (n_forms,)."""
        first, second = np.divmod(codes, len(self.forms))
        return np.asarray(ranked[first] & ranked[second])


def _parts(name: Name) -> tuple[list[list[str]], int]:
    """The tokens of each part of a name, and how many parts have none but letters."""
    parts = [[form for form in words(part) if len(form) > 1] for part in name]
    return parts, sum(not part for part in parts)
