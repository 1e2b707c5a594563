"""Compute the label probabilities of tokens and convert them to spans."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clinveil.core import helper, kernel
from clinveil.lexicons import PARTICLES, LexicalClass, lexical_classes
from clinveil.phi.matching.wordtable import Tokens, WordColumn
from clinveil.phi.tagger.features import EDGE, OFFSETS, PAIRS, Features, kept_form, pair
from clinveil.phi.tagger.model import TaggerModel

_MAX_ROWS = 1 << 16
_NEVER = 2.0  # above any probability: `will pick` is never a name
_NEIGHBOUR = 8  # a word next to a name needs only this fraction of the threshold
_ARTICLES = frozenset(("a", "A", "an", "An", "the", "The"))


Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@helper
def _scores(
    ids: Ints, position: int, rows: Floats, kinds: Ints, pairs: Floats, into: Floats
) -> None:
    """Compute exp(score - highest score) of each label at one token; `ids` has two edge tokens at
    either end.
    """
    highest = -math.inf
    for label in range(into.size):
        score = 0.0
        for offset in range(5):
            score += rows[ids[position + offset], offset, label]
        score += pairs[0, kinds[ids[position + 1]], kinds[ids[position + 2]], label]
        score += pairs[1, kinds[ids[position + 2]], kinds[ids[position + 3]], label]
        score += pairs[2, kinds[ids[position + 1]], kinds[ids[position + 3]], label]
        score += pairs[3, kinds[ids[position]], kinds[ids[position + 2]], label]
        into[label] = score
        highest = max(highest, score)
    for label in range(into.size):
        into[label] = math.exp(into[label] - highest)


@helper
def _normalise(values: Floats) -> None:
    """Normalise to a sum of 1."""
    total = 0.0
    for position in range(values.size):
        total += values[position]
    for position in range(values.size):
        values[position] /= total


@helper
def _move(values: Floats, moves: Floats, into: Floats) -> None:
    for to in range(into.size):
        into[to] = 0.0
        for source in range(values.size):
            into[to] += values[source] * moves[source, to]


@kernel
def marginals(ids: Ints, rows: Floats, kinds: Ints, pairs: Floats, moves: Floats) -> Floats:
    """Return the marginal probability of each label at each token.

    Args:
        ids: row numbers of the tokens, with two edge tokens before and after them.
        rows: token x offset x label; summed weights of a token's properties.
        kinds: coarse kind of each token.
        pairs: pair x kind x kind x label.
        moves: exp of the transition weights, from x to.

    Returns:
        token x label; each row sums to 1.
    """
    size = ids.size - 4
    labels = moves.shape[0]
    scores = np.empty((size, labels))
    marginal = np.empty((size, labels))
    before = np.ones(labels)
    behind = np.ones(labels)
    moved = np.empty(labels)
    for position in range(size):
        _scores(ids, position, rows, kinds, pairs, scores[position])
        if position > 0:
            _move(before, moves, moved)
        for label in range(labels):
            before[label] = scores[position, label] * (moved[label] if position > 0 else 1.0)
        _normalise(before)
        marginal[position] = before
    for position in range(size - 1, -1, -1):
        for label in range(labels):
            marginal[position, label] *= behind[label]
            before[label] = scores[position, label] * behind[label]
        _normalise(marginal[position])
        _move(before, moves.T, behind)
        _normalise(behind)
    return marginal


@kernel
def _sum_rows(weights: Floats, properties: Ints, sizes: Ints, into: Floats) -> None:
    """Add the weights of the properties of each token, in their order: offset x label."""
    start = 0
    for token in range(sizes.size):
        for number in properties[start : start + sizes[token]]:
            into[token] += weights[number]
        start += sizes[token]


class TokenTable:
    """Table of tokens. The weights of a token at each offset are summed when it first occurs.

    Attributes:
        table: row x offset x label.
        kinds: per row, an index into `pairs`.
        pairs: pair x kind x kind x label.
    """

    def __init__(self, model: TaggerModel) -> None:
        self.features = Features(frozenset(model.vocabulary.tolist()))
        self._rows_of, self._all_offsets = _by_name(model)
        # All kinds in the pair properties; the first represents all others.
        pairs = [name[2:].split("\t") for name in model.properties if name[0] == "p"]
        kinds = ["", *sorted({half for names in pairs for half in names} - {""})]
        self._kinds = {name: i for i, name in enumerate(kinds)}
        weights = {name: row for name, row in zip(model.properties, model.weights, strict=True)}
        self.pairs = np.zeros((len(PAIRS), len(kinds), len(kinds), len(model.labels)))
        for number, first, second in product(range(len(PAIRS)), kinds, kinds):
            if (row := weights.get(pair(number, first, second))) is not None:
                self.pairs[number, self._kinds[first], self._kinds[second]] = row
        self.table = np.zeros((0, len(OFFSETS), len(model.labels)))
        self.kinds = np.zeros(0, np.int32)
        self._shared: dict[tuple[str, ...], list[int]] = {}
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[str, int] = {}
        self._new: list[
            tuple[int, list[int]]
        ] = []  # kind and numbers of the properties of rows not yet in the table
        self._column = WordColumn(self._row, np.int32)

    def ids(self, tokens: Sequence[str] | Tokens) -> NDArray[np.int32]:
        """Return the row numbers of tokens, with two edge tokens before and after them."""
        if len(self._rows) > _MAX_ROWS:  # bounded, because the table grows with the vocabulary
            self._clear()
        ids = np.full(len(tokens) + 4, self._row(EDGE), np.int32)
        ids[2:-2] = (
            self._column(tokens.table, tokens.ids)
            if isinstance(tokens, Tokens)
            else list(map(self._row, tokens))
        )
        self._add_new()
        return ids

    def _row(self, token: str) -> int:
        # The prefix separates kept forms from the words `line` and `sign`.
        form = token if token[:1].isalpha() else f"\x00{kept_form(token)}"
        if (row := self._rows.get(form)) is None:
            row = self._rows[form] = len(self._rows)
            kind, before, form_names, after = self.features.parts(token)
            properties = [*self._numbers(before), *self._known(form_names), *self._numbers(after)]
            self._new.append((self._kinds.get(kind, 0), properties))
        return row

    def _numbers(self, shared: tuple[str, ...]) -> list[int]:
        if (numbers := self._shared.get(shared)) is None:
            numbers = self._shared[shared] = self._known(shared)
        return numbers

    def _known(self, names: Iterable[str]) -> list[int]:
        return [number for name in names if (number := self._rows_of.get(name)) is not None]

    def _add_new(self) -> None:
        """Compute the new rows of the table, all at once."""
        if not self._new:
            return
        first = len(self._rows) - len(self._new)
        end = len(self._rows)
        if end > len(self.table):
            rows = np.zeros((max(256, 2 * end), *self.table.shape[1:]))
            rows[:first] = self.table[:first]
            self.table = rows
            self.kinds = np.resize(self.kinds, len(rows))
        self.table[first:end] = 0.0
        self.kinds[first:end] = [kind for kind, _ in self._new]
        sizes = np.array([len(properties) for _, properties in self._new], np.int32)
        flat = np.fromiter(
            chain.from_iterable(properties for _, properties in self._new), np.int32, sizes.sum()
        )
        _sum_rows(self._all_offsets, flat, sizes, self.table[first:end])
        self._new = []


def _by_name(model: TaggerModel) -> tuple[dict[str, int], NDArray[np.float64]]:
    """Return property name -> row, and the weights of each property: row x offset x label; 0 if the
    model has none.
    """
    rows_of_features = [
        (name.removeprefix(str(offset)), index, weights)
        for index, offset in enumerate(OFFSETS)
        for name, weights in zip(model.properties, model.weights, strict=True)
        if name.startswith(str(offset))
    ]
    numbers = {
        name: number
        for number, name in enumerate(dict.fromkeys(name for name, _, _ in rows_of_features))
    }
    table = np.zeros((len(numbers), len(OFFSETS), len(model.labels)))
    for name, index, weights in rows_of_features:
        table[numbers[name], index] = weights
    return numbers, table


class Hit(NamedTuple):
    """A character range, its label, and the probability of its most certain token."""

    start: int
    end: int
    label: str
    probability: float


class Tagger:
    """Apply a model to notes. The row cache grows with the vocabulary.

    Attributes:
        labels: the PHI labels of the model.
    """

    def __init__(self, model: TaggerModel) -> None:
        self.model = model
        self.rows = TokenTable(model)
        self._moves = np.exp(model.moves)
        self._labels = [label.partition("-")[2] for label in model.labels]
        self.labels = frozenset(self._labels[1:])
        self._begins = [label.startswith("B-") for label in model.labels]

    def probabilities(self, tokens: Sequence[str] | Tokens) -> NDArray[np.float64]:
        """Return the probability of each label at each token: token x label."""
        ids = self.rows.ids(tokens)
        return marginals(ids, self.rows.table, self.rows.kinds, self.rows.pairs, self._moves)

    def hits(self, text: str | Tokens, threshold: float | None = None) -> list[Hit]:
        """Return the identifiers in order, without overlaps."""
        tokens = Tokens(text) if isinstance(text, str) else text
        probabilities = self.probabilities(tokens)
        sure = 1 - probabilities[:, 0]
        taken = np.flatnonzero(
            sure >= (self.model.threshold if threshold is None else threshold)
        ).tolist()
        if threshold is None:
            taken = _with_neighbours(tokens, sure, taken, self.model.threshold / _NEIGHBOUR)
        return list(self._joined(tokens, taken, probabilities)) if taken else []

    def _joined(
        self, tokens: Tokens, taken: list[int], probabilities: NDArray[np.float64]
    ) -> Iterator[Hit]:
        best = (probabilities[taken, 1:].argmax(axis=1) + 1).tolist()
        run: list[tuple[int, int, int, int]] = []  # index, label, start, end
        for index, label in zip(taken, best, strict=True):
            start = int(tokens.starts[index])
            end = int(tokens.ends[index])
            if run and _ends(tokens[index], tokens[run[0][0]]):
                continue
            apart = run and (
                index != run[-1][0] + 1 or self._labels[label] != self._labels[run[-1][1]]
            )
            if apart or (run and self._begins[label]):
                yield from self._hit(tokens, run, probabilities)
                run = []
            run.append((index, label, start, end))
        yield from self._hit(tokens, run, probabilities)

    def _hit(
        self,
        tokens: Tokens,
        run: list[tuple[int, int, int, int]],
        probabilities: NDArray[np.float64],
    ) -> Iterator[Hit]:
        """Yield a run trimmed to its first and last word or number, without a possessive ending."""
        while run:
            first = tokens[run[0][0]]
            then = tokens[run[1][0]] if len(run) > 1 else ""
            # `A Bierman needle`, not `A. Bierman`.
            if first[0].isalnum() and not (first in _ARTICLES and then[:1].isalpha()):
                break
            run = run[1:]
        while run and (
            not tokens[run[-1][0]][0].isalnum() or _ends(tokens[run[-1][0]], tokens[run[0][0]])
        ):
            run = run[:-1]
        words = [tokens[token[0]] for token in run]
        probability = max((1 - probabilities[token[0], 0] for token in run), default=0)
        label = self._labels[run[0][1]] if run else ""
        # An initial, or two lower-case letters, is no name.
        substantial = any(len(word) > 2 or (len(word) > 1 and word[0].isupper()) for word in words)
        if substantial and (label != "NAME" or probability >= _least(words)):
            last = tokens[run[-1][0]]
            possessive = 2 if len(last) > 2 and last[-2:] in ("'s", "'S") else 0
            yield Hit(run[0][2], run[-1][3] - possessive, label, float(probability))


def _with_neighbours(
    tokens: Tokens, sure: NDArray[np.float64], taken: list[int], least: float
) -> list[int]:
    """Add adjacent words that are not ordinary words and have a lower probability: the rest of a
    name.
    """
    extended = set(taken)
    for index in taken:
        for step in (1, -1):
            other = index + step
            last = tokens[index]
            while 0 <= other < len(tokens) and sure[other] >= least and last[0].isalpha():
                token = tokens[other]
                ordinary = lexical_classes(token) & LexicalClass.WORD
                if token[0].islower() != last[0].islower() or len(token) < 2 or ordinary:
                    break
                extended.add(other)
                other = other + step
                last = token
    return sorted(extended) if len(extended) > len(taken) else taken


def _ends(token: str, first: str) -> bool:
    """Return whether a token is a lower-case ordinary word after a capitalised one; only particles
    occur in names.
    """
    return (
        token.islower()
        and first[0].isupper()
        and token not in PARTICLES
        and bool(lexical_classes(token) & LexicalClass.WORD)
    )


def _least(words: Sequence[str]) -> float:
    """Return the minimum probability of a name. Single eponyms, abbreviations and words are often
    medical terms.
    """
    classes = lexical_classes(words[0].removesuffix("'s"))
    if len(words) > 1:
        small = bool(classes & LexicalClass.FUNCTION) and (words[0].islower() or words[0].isupper())
        return (
            _NEVER
            if small and all(lexical_classes(word) & LexicalClass.WORD for word in words)
            else 0.0
        )
    ordinary = bool(classes & LexicalClass.WORD)
    if words[0].isupper() and (len(words[0]) < 6 or not classes & LexicalClass.NAME):
        return 0.97 if len(words[0]) < 6 else 0.85
    if classes & LexicalClass.EPONYM:
        return 0.9
    if words[0].islower():
        return 0.9 if ordinary else 0.5
    return 0.6 if ordinary else 0.0
