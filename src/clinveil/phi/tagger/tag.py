"""From a model and a text to the chances of each token, and from these to places of identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.lexicons.ambiguity import PARTICLES, LexicalClass, lexical_classes
from clinveil.phi.tagger.features import OFFSETS, PAIRS, Features, pair
from clinveil.phi.tagger.forward_backward import marginals
from clinveil.phi.tagger.model import TaggerModel
from clinveil.phi.tagger.tokens import EDGE, kept_form
from clinveil.phi.wordtable import Column, Tokens

_MOST_KNOWN = 1 << 16
_NEVER = 2.0  # no chance is as high: `will pick`
_NEIGHBOUR = 8  # a word beside a name needs a chance this many times smaller
_ARTICLES = frozenset(("a", "A", "an", "An", "the", "The"))


class Rows(dict[str, int]):
    """Token -> its row; what a model makes of a token at each offset is summed once, when it is first met.

    Attributes:
        table: row x offset x label. kinds: of each row, an index into `pairs`.
        pairs: pair x kind x kind x label.
    """

    def __init__(self, model: TaggerModel) -> None:
        super().__init__()
        self.features = Features(frozenset(model.vocabulary.tolist()))
        self._forms: dict[str, int] = {}
        self._used = 0
        self._weights = {name: row for name, row in zip(model.properties, model.weights, strict=True)}
        self._kinds = {name: at for at, name in enumerate(_kinds_of(model))}
        self.pairs = self._pairs_of(model)
        self._size = (len(OFFSETS), len(model.labels))
        self.table, self.kinds = np.zeros((256, *self._size)), np.zeros(256, np.int32)
        self._column = Column(self.__getitem__, np.int32)
        self[EDGE]

    def __missing__(self, token: str) -> int:
        # Apart from the words `line` and `sign`, or whichever is met first would say what the other is.
        form = token if token[:1].isalpha() else f"\x00{kept_form(token)}"
        if form not in self._forms:
            self._forms[form] = self._add(token)
        self[token] = self._forms[form]
        return self[token]

    def ids(self, found: Sequence[str] | Tokens) -> NDArray[np.int32]:
        """The rows of tokens, with two edges before and after them."""
        if len(self) > _MOST_KNOWN:  # a number is no row of its own, so there are no more rows than words
            self.clear()
        ids = np.full(len(found) + 4, self[EDGE], np.int32)
        ids[2:-2] = self._column(found.table, found.ids) if isinstance(found, Tokens) else [self[t] for t in found]
        return ids

    def clear(self) -> None:
        """Forget all tokens."""
        super().clear()
        self._forms.clear()
        self._used = 0
        self._column = Column(self.__getitem__, np.int32)

    def _add(self, token: str) -> int:
        row = self._used
        if row == len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
            self.kinds = np.concatenate([self.kinds, np.zeros_like(self.kinds)])
        for at, offset in enumerate(OFFSETS):
            known = [
                w for name in self.features.properties(token, offset) if (w := self._weights.get(name)) is not None
            ]
            self.table[row, at] = np.add.reduce(known) if known else 0.0
        self.kinds[row] = self._kinds.get(self.features.kind(token), 0)
        self._used += 1
        return row

    def _pairs_of(self, model: TaggerModel) -> NDArray[np.float64]:
        size = len(self._kinds)
        table = np.zeros((len(PAIRS), size, size, len(model.labels)))
        for number, first, second in product(range(len(PAIRS)), self._kinds, self._kinds):
            weights = self._weights.get(pair(number, first, second))
            if weights is not None:
                table[number, self._kinds[first], self._kinds[second]] = weights
        return table


def _kinds_of(model: TaggerModel) -> list[str]:
    """All kinds that stand in pairs of the model; the first is that of all others."""
    pairs = [name[2:].split("\t") for name in model.properties if name[0] == "p"]
    return ["", *sorted({half for names in pairs for half in names} - {""})]


class Hit(NamedTuple):
    """A place in the text, its label, and the chance of its surest token."""

    start: int
    end: int
    label: str
    chance: float


class Tagger:
    """A model at work; its rows grow with the words that it meets.

    Attributes:
        labels: the PHI labels that it gives.
    """

    def __init__(self, model: TaggerModel) -> None:
        self.model, self.rows = model, Rows(model)
        self._moves = np.exp(model.moves)
        self._labels = [label.partition("-")[2] for label in model.labels]
        self.labels = frozenset(self._labels[1:])
        self._begins = [label.startswith("B-") for label in model.labels]

    def chances(self, found: Sequence[str] | Tokens) -> NDArray[np.float64]:
        """The chance of each label at each token: token x label."""
        ids = self.rows.ids(found)
        return marginals(ids, self.rows.table, self.rows.kinds, self.rows.pairs, self._moves)

    def hits(self, text: str | Tokens, threshold: float | None = None) -> list[Hit]:
        """Where identifiers stand, in order and without overlaps."""
        found = Tokens(text) if isinstance(text, str) else text
        chances = self.chances(found)
        sure = 1 - chances[:, 0]
        taken = np.flatnonzero(sure >= (self.model.threshold if threshold is None else threshold)).tolist()
        if threshold is None:
            taken = _with_neighbours(found, sure, taken, self.model.threshold / _NEIGHBOUR)
        return list(self._joined(found, taken, chances)) if taken else []

    def _joined(self, found: Tokens, taken: list[int], chances: NDArray[np.float64]) -> Iterator[Hit]:
        best = (chances[taken, 1:].argmax(axis=1) + 1).tolist()
        run: list[tuple[int, int, int, int]] = []  # index, label, start, end
        for index, label in zip(taken, best, strict=True):
            start, end = int(found.starts[index]), int(found.ends[index])
            if run and _ends(found[index], found[run[0][0]]):
                continue
            apart = run and (index != run[-1][0] + 1 or self._labels[label] != self._labels[run[-1][1]])
            if apart or (run and self._begins[label]):
                yield from self._hit(found, run, chances)
                run = []
            run.append((index, label, start, end))
        yield from self._hit(found, run, chances)

    def _hit(self, found: Tokens, run: list[tuple[int, int, int, int]], chances: NDArray[np.float64]) -> Iterator[Hit]:
        """From the first to the last word or number, without a possessive ending."""
        while run and (not found[run[0][0]][0].isalnum() or _is_article(found, run)):
            run = run[1:]
        while run and not _may_end(found[run[-1][0]], found[run[0][0]]):
            run = run[:-1]
        words = [found[token[0]] for token in run]
        chance = max((1 - chances[token[0], 0] for token in run), default=0)
        label = self._labels[run[0][1]] if run else ""
        if any(map(_substantial, words)) and (label != "NAME" or chance >= _least(words)):
            last = found[run[-1][0]]
            possessive = 2 if len(last) > 2 and last[-2:] in ("'s", "'S") else 0
            yield Hit(run[0][2], run[-1][3] - possessive, label, float(chance))


def _with_neighbours(found: Tokens, sure: NDArray[np.float64], taken: list[int], least: float) -> list[int]:
    """Tokens, with the words beside them that are no ordinary ones and have a smaller chance: the other half."""
    more = set(taken)
    for index in taken:
        for step in (1, -1):
            other = index + step
            while 0 <= other < len(found) and sure[other] >= least and _may_join(found, other, step):
                more.add(other)
                other += step
    return sorted(more) if len(more) > len(taken) else taken


def _may_join(found: Tokens, other: int, step: int) -> bool:
    beside = found[other - step]
    same = found[other][0].islower() == beside[0].islower() and beside[0].isalpha()
    return same and len(found[other]) > 1 and not lexical_classes(found[other]) & LexicalClass.WORD


def _ends(token: str, first: str) -> bool:
    """Whether a token is an ordinary word in lower case after a capital: no name holds one but as a particle."""
    return (
        token.islower()
        and first[0].isupper()
        and token not in PARTICLES
        and bool(lexical_classes(token) & LexicalClass.WORD)
    )


def _is_article(found: Tokens, run: Sequence[tuple[int, int, int, int]]) -> bool:
    """Whether a run begins with `a` or `the` before a word: `A Bierman needle`, not `A. Bierman`."""
    return found[run[0][0]] in _ARTICLES and len(run) > 1 and found[run[1][0]][0].isalpha()


def _may_end(token: str, first: str) -> bool:
    """Whether a run may end with a token: no sign does, and no ordinary word in lower case after a capital."""
    return token[0].isalnum() and not _ends(token, first)


def _least(words: Sequence[str]) -> float:
    """How sure a name must be at least: alone, an eponym, an abbreviation or an ordinary word is often a term."""
    classes = lexical_classes(words[0].removesuffix("'s"))
    if len(words) > 1:
        small = bool(classes & LexicalClass.FUNCTION) and (words[0].islower() or words[0].isupper())
        return _NEVER if small and all(lexical_classes(word) & LexicalClass.WORD for word in words) else 0.0
    ordinary = bool(classes & LexicalClass.WORD)
    if words[0].isupper() and (len(words[0]) < 6 or not classes & LexicalClass.NAME):
        return 0.97 if len(words[0]) < 6 else 0.85
    if classes & LexicalClass.EPONYM:
        return 0.9
    if words[0].islower():
        return 0.9 if ordinary else 0.5
    return 0.6 if ordinary else 0.0


def _substantial(token: str) -> bool:
    """Whether a token can be a name alone: no initial, and no two letters in lower case."""
    return len(token) > 2 or (len(token) > 1 and token[0].isupper())
