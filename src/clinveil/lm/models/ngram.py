"""An n-gram model with absolute discounting: trained in seconds and memorizes word sequences.

An attacker with only the released text would use such a model.

p_k(w | h) = max(c(hw) - D, 0) / c(h) + D * types(h) / c(h) * p_{k-1}(w | h'), h' without its oldest word, and a
Lidstone unigram below. Source: Chen & Goodman 1999, section 2.6 (interpolated, one discount).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Doubles, Ints
from clinveil.lm.model import Stream
from clinveil.lm.models.unigram import counts_of
from clinveil.lm.notes import EncodedNotes
from clinveil.lm.recipe import CountedKind, language_models
from clinveil.lm.vocabulary import END, Ids, Vocabulary

NONE = -1


@dataclass(frozen=True)
class _Order:
    """All n-grams of one length; for each context (row of the shorter n-gram), tokens and distinct words after it.

    `keys`: (n,) sorted: row of the context times the vocabulary size, plus the last word.
    """

    keys: Ints = field(repr=False)
    counts: Ints = field(repr=False)
    context_counts: Ints = field(repr=False)
    context_types: Ints = field(repr=False)


class Ngram:
    """N-gram model for scoring; it cannot write notes."""

    kind = "ngram"

    def __init__(self, notes: EncodedNotes, vocabulary: Vocabulary, order: int = 5, discount: float = 0.75) -> None:
        """Count all n-grams up to `order` within each note. Raises ValueError for an order below 2."""
        if order < 2 or not 0 < discount < 1:
            raise ValueError("an n-gram model has an order of 2 or more and a discount between 0 and 1")
        self.vocabulary, self.discount = vocabulary, discount
        self._size = vocabulary.size
        counts = counts_of(notes, vocabulary)
        self._unigram = (counts + 1.0) / (counts.sum() + counts.size)
        ids, places = _primed([notes.note(row) for row in range(len(notes))])
        self._orders: list[_Order] = []
        rows, shorter = ids.astype(np.int64), self._size
        for length in range(2, order + 1):
            order_, rows = _count(ids, rows, places, length, self._size, shorter)
            self._orders.append(order_)
            shorter = len(order_.keys)

    def score(self, notes: Sequence[Ids]) -> list[Doubles]:
        """Return the log-probabilities of all tokens."""
        if not notes:
            return []
        ids, places = _primed(notes)
        chance = self._unigram[ids]
        rows = ids.astype(np.int64)
        for length, order in enumerate(self._orders, 2):
            chance, rows = self._one(order, ids, rows, places, length, chance)
        logs = np.log(chance)
        ends = np.cumsum([note.size + 1 for note in notes])
        return [logs[end - note.size : end] for end, note in zip(ends, notes, strict=True)]

    def _one(
        self, order: _Order, ids: Ids, rows: Ints, places: Ints, length: int, chance: Doubles
    ) -> tuple[Doubles, Ints]:
        before = _before(rows, places, length)
        found = _find(order.keys, np.where(before == NONE, NONE, before * self._size + ids))
        followed, types = _at(order.context_counts, before), _at(order.context_types, before)
        here = _at(order.counts, found)
        total = np.maximum(followed, 1)
        mixed = np.maximum(here - self.discount, 0) / total + self.discount * types / total * chance
        return np.where(followed > 0, mixed, chance), found

    def ready(self, *, double: bool = False, threads: int = 1) -> AbstractContextManager[None]:
        """Return an empty context."""
        return nullcontext()

    def stream(self, lanes: int) -> Stream:
        """Raise InputError: an n-gram model only scores."""
        raise InputError("an n-gram model cannot write notes", hint="pass --model unigram, lstm or gpt")


def _primed(notes: Sequence[Ids]) -> tuple[Ids, Ints]:
    """Return all tokens with an end before each note, and the position of each in its note (0 for that end)."""
    start = np.array([END], dtype=np.int32)
    ids = np.concatenate([part for note in notes for part in (start, note)])
    sizes = np.array([note.size + 1 for note in notes])
    return ids, np.arange(ids.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _before(rows: Ints, places: Ints, length: int) -> Ints:
    """Return the row of the context of the n-gram that ends at each position; -1 where there is none."""
    before = np.concatenate([[NONE], rows[:-1]])
    return np.where(places >= length - 1, before, NONE)


def _count(ids: Ids, rows: Ints, places: Ints, length: int, size: int, shorter: int) -> tuple[_Order, Ints]:
    before = _before(rows, places, length)
    there = before != NONE
    keys, back, counts = np.unique(before[there] * size + ids[there], return_inverse=True, return_counts=True)
    found = np.full(ids.size, NONE, dtype=np.int64)
    found[there] = back
    context = keys // size
    followed = np.bincount(context, weights=counts, minlength=shorter).astype(np.int64)
    types = np.bincount(context, minlength=shorter).astype(np.int64)
    return _Order(keys, counts.astype(np.int64), followed, types), found


def _find(keys: Ints, wanted: Ints) -> Ints:
    """Return the positions of some keys; -1 for unknown keys."""
    if not keys.size:
        return np.full(wanted.size, NONE, dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, NONE)


def _at(values: Ints, rows: Ints) -> Ints:
    """Return the values of some rows; 0 where the row is -1."""
    if not values.size:
        return np.zeros(rows.size, dtype=np.int64)
    return np.where(rows == NONE, 0, values[np.maximum(rows, 0)])


language_models.register("ngram")(CountedKind(about="an n-gram model, which only scores notes", count=Ngram))
