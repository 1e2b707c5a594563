"""Scores of recovered words: first guess, first five, rank, calibration and longest span; per word kind and patient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from clinveil.attacks.adversary import AlignedNote, Recovery
from clinveil.core.types import Doubles, Ints, Mask

CONFIDENT = 0.9
BATCH = 1_000_000  # candidates


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of every attacked word.

    Attributes:
        truth, patient: (n,). named: (n,) the first candidate; -1 if there is none. rank: (n,) of the right word, from
            1; if it is not a candidate, the mean rank of all non-candidates. belief: (n,) probability of `named`.
    """

    truth: Ints
    patient: Ints
    named: Ints
    rank: Doubles
    confidence: Doubles

    @cached_property
    def is_right(self) -> Mask:
        """Return whether the first candidate is right, (n,)."""
        return np.asarray(self.named == self.truth)

    def first(self, k: int) -> float:
        """Return the share of words that are among the first k candidates."""
        return float((self.rank <= k).mean())

    def where(self, among: Mask) -> Scored:
        """Select the words of a kind, given as a mask (n_words + 1,)."""
        return self.at(among[self.truth])

    def at(self, mask: Mask) -> Scored:
        """Select words by a mask (n,)."""
        truth, patient, named = self.truth[mask], self.patient[mask], self.named[mask]
        return Scored(truth, patient, named, self.rank[mask], self.confidence[mask])

    @property
    def by_patient(self) -> Ints:
        """Return the recovered words and the words of each patient, (n_patients, 2)."""
        _, place = np.unique(self.patient, return_inverse=True)
        return np.column_stack([np.bincount(place, self.is_right), np.bincount(place)]).astype(np.int64)

    @property
    def confident(self) -> tuple[float, float | None]:
        """Return the share of words with a probability of at least 0.9, and the share of these that are right."""
        asserted = self.confidence >= CONFIDENT
        return float(asserted.mean()), float(self.is_right[asserted].mean()) if asserted.any() else None

    @property
    def most_frequent_share(self) -> float:
        """Return the share of the most frequent of these words."""
        return float(np.bincount(self.truth).max() / self.truth.size)


def scored(
    notes: Sequence[AlignedNote],
    recoveries: Sequence[Recovery],
    n_words: int,
    among: Mask | None = None,
    fallback: int = -1,
) -> Scored:
    """Score recovered words.

    Args:
        among: (n_words + 1,) mask of possible words. Other candidates are removed and the rest is normalized.
        fallback: the guess if no candidate is left.
    """
    truth = np.concatenate([note.truth for note in notes])
    patient = np.repeat([note.patient for note in notes], [len(note) for note in notes])
    sizes = np.concatenate([np.diff(recovery.starts) for recovery in recoveries])
    if sizes.size != truth.size:
        raise ValueError("a recovery has another number of words than its note")
    place = np.repeat(np.arange(truth.size), sizes)
    rows = np.concatenate([recovery.rows for recovery in recoveries]).astype(np.int64)
    chances = np.concatenate([recovery.chances for recovery in recoveries])
    if among is None:
        return _ranked(truth, patient, place, rows, chances, n_words)
    mask = among[rows]
    place, rows, chances = place[mask], rows[mask], chances[mask]
    chances = chances / np.bincount(place, chances, truth.size)[place]
    found = _ranked(truth, patient, place, rows, chances, int(among.sum()))
    named = np.where(found.named < 0, fallback, found.named)
    rank = np.where((found.named < 0) & (named == truth), 1.0, found.rank)
    return replace(found, named=named, rank=rank)


def _joined(parts: Sequence[Scored]) -> Scored:
    return Scored(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Scored)))


def _blocks(
    notes: Iterable[AlignedNote], recoveries: Iterable[Recovery]
) -> Iterator[tuple[list[AlignedNote], list[Recovery]]]:
    """Yield batches of notes and recoveries; clusters have thousands of candidates per word."""
    block, size = list[tuple[AlignedNote, Recovery]](), 0
    for pair in zip(notes, recoveries, strict=True):
        if block and size + pair[1].rows.size > BATCH:
            yield [note for note, _ in block], [recovery for _, recovery in block]
            block, size = [], 0
        block.append(pair)
        size += pair[1].rows.size
    if block:
        yield [note for note, _ in block], [recovery for _, recovery in block]


@dataclass(frozen=True, eq=False)
class Scores:
    """All scores of one adversary, so that recoveries need not be stored.

    Attributes:
        plain: of every word. kind_known: by kind of words, of every word: recovered by an attacker who knows the kind.
        longest: (n_notes,) as in `spans`.
    """

    plain: Scored
    kind_known: Mapping[str, Scored]
    longest: Ints

    @classmethod
    def of(
        cls,
        notes: Iterable[AlignedNote],
        recoveries: Iterable[Recovery],
        n_words: int,
        kind_known: Mapping[str, tuple[Mask, int]],
    ) -> Scores:
        """Score recoveries as they arrive; `kind_known`: mask of each kind, and the guess without a candidate."""
        plain, longest = list[Scored](), list[Ints]()
        kinds: dict[str, list[Scored]] = {kind: [] for kind in kind_known}
        for block in _blocks(notes, recoveries):
            plain.append(scored(*block, n_words))
            longest.append(spans(*block, n_words))
            for kind, (among, fallback) in kind_known.items():
                kinds[kind].append(scored(*block, n_words, among, fallback))
        made = {kind: _joined(parts) for kind, parts in kinds.items()}
        return cls(_joined(plain), made, np.concatenate(longest))

    def kind(self, name: str, among: Mask) -> Scored:
        """Return the scores of a kind, (n_words + 1,); in kinds of `kind_known`, by an attacker who knows the kind."""
        return self.kind_known.get(name, self.plain).where(among)


def _ranked(truth: Ints, patient: Ints, place: Ints, rows: Ints, chances: Doubles, n_words: int) -> Scored:
    """Find the most probable row of each word (the first of equals) and the rank of the truth; `place` is sorted."""
    sizes = np.bincount(place, minlength=truth.size)
    some = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[some]
    named, confidence = np.full(truth.size, -1, dtype=np.int64), np.zeros(truth.size)
    if some.size:
        confidence[some] = np.maximum.reduceat(chances, starts)
        named[some] = np.minimum.reduceat(np.where(chances == confidence[place], rows, n_words + rows.max()), starts)
    hit = rows == truth[place]
    truth_chance = np.full(truth.size, np.inf)
    truth_chance[place[hit]] = chances[hit]
    better = (chances > truth_chance[place]) | ((chances == truth_chance[place]) & (rows < truth[place]))
    ahead = np.bincount(place[better], minlength=truth.size)
    rank = np.where(np.isfinite(truth_chance), 1.0 + ahead, sizes + (n_words - sizes + 1) / 2)
    return Scored(truth, patient, named, np.maximum(rank, 1.0), confidence)


def spans(notes: Sequence[AlignedNote], recoveries: Sequence[Recovery], n_words: int) -> Ints:
    """Return the longest run of words that are consecutive in the source, right and in order, (n_notes,)."""
    is_right, start = scored(notes, recoveries, n_words).is_right, 0
    longest = []
    for note in notes:
        longest.append(max(_runs(is_right[start : start + len(note)], note.positions), default=0))
        start += len(note)
    return np.array(longest, dtype=np.int64)


def _runs(is_right: Mask, positions: Ints) -> Iterator[int]:
    """Yield the lengths of runs of right words at consecutive positions."""
    follows = is_right[1:] & is_right[:-1] & (np.diff(positions) == 1)
    length = 0
    for hit, continues in zip(is_right.tolist(), [False, *follows.tolist()], strict=False):
        length = (length + 1 if continues else 1) if hit else 0
        yield length
