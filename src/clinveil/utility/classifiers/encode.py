"""Texts as rows of word numbers, and the matrix that a network's word vectors start from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.tokens import words
from clinveil.vectors.table import Vectors

PAD, UNKNOWN = 0, 1
MOST_WORDS = 60_000
UNKNOWN_RANGE = 0.25  # Kim 2014: words without a vector are uniform in (-.25, .25)
DIM = 100


@dataclass(frozen=True)
class Encoder:
    """The words that a network knows: those of the texts that it learns from, most frequent first.

    Attributes:
        ids: word -> number; 0 pads and 1 is any other word.
        most_tokens: texts are cut there.
    """

    ids: dict[str, int] = field(repr=False)
    most_tokens: int

    @classmethod
    def of(cls, texts: Iterable[str], most_tokens: int, vectors: Vectors | None = None) -> Encoder:
        """Of the words of some texts, and of those that have a vector (they mean something before they are learnt)."""
        counted = Counter(form for text in texts for form in words(text)[:most_tokens])
        known = [form for form, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDS]]
        more = [] if vectors is None else [word for word in vectors.words if word not in counted]
        room = max(0, MOST_WORDS - len(known))
        return cls({form: i for i, form in enumerate([*known, *more[:room]], 2)}, most_tokens)

    def __len__(self) -> int:
        return len(self.ids) + 2

    def rows(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The numbers of each text's words; a text without words is one unknown word."""
        get = self.ids.get
        found = ([get(form, UNKNOWN) for form in words(text)[: self.most_tokens]] for text in texts)
        return [np.array(row or [UNKNOWN], dtype=np.int64) for row in found]

    def matrix(self, vectors: Vectors | None, rng: Generator) -> NDArray[np.float32]:
        """(n_words + 2, dim): zeros to pad, the words' vectors, and uniform draws for words without one."""
        dim = DIM if vectors is None else vectors.dim
        matrix = rng.uniform(-UNKNOWN_RANGE, UNKNOWN_RANGE, (len(self), dim)).astype(np.float32)
        matrix[PAD] = 0
        if vectors is not None:
            for form, row in self.ids.items():
                if form in vectors.ids:
                    matrix[row] = vectors.matrix[vectors.ids[form]]
        return matrix


def padded(rows: Sequence[NDArray[np.int64]], least: int) -> NDArray[np.int64]:
    """(n, longest) rows with zeros behind them, at least `least` columns."""
    width = max(least, *(row.size for row in rows))
    table = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : row.size] = row
    return table


def batches(rows: Sequence[NDArray[np.int64]], size: int, rng: Generator | None = None) -> list[NDArray[np.int64]]:
    """Numbers of rows in batches of like length, so that little is padding; with a generator in random order."""
    lengths = np.array([row.size for row in rows])
    if rng is None:
        order = np.argsort(lengths, kind="stable")
        return [order[i : i + size] for i in range(0, order.size, size)]
    # Of like length, but not the same company every time: sorted within windows of 50 batches of a random order.
    order = rng.permutation(lengths.size)
    windows = [order[i : i + 50 * size] for i in range(0, order.size, 50 * size)]
    order = np.concatenate([window[np.argsort(lengths[window], kind="stable")] for window in windows])
    cut = [order[i : i + size] for i in range(0, order.size, size)]
    return [cut[i] for i in rng.permutation(len(cut))]
