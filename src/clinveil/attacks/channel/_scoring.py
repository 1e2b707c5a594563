"""How well words were read: first guess, first five, rank, calibration, longest span; by stratum and by patient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from clinveil.attacks.adversary import AlignedNote, Recovery
from clinveil.core.types import Doubles, Ints, Mask

SURE = 0.9
AT_ONCE = 1_000_000  # candidates


@dataclass(frozen=True, eq=False)
class Scored:
    """Every attacked word: what was named, and where the right word stood among those that the reader weighed.

    Attributes:
        truth, patient: (n,). named: (n,) the first candidate; -1 where there is none. rank: (n,) of the right word, 1
            for the first; where it is no candidate, the middle of all words that are none. belief: (n,) in `named`.
    """

    truth: Ints
    patient: Ints
    named: Ints
    rank: Doubles
    belief: Doubles

    @cached_property
    def right(self) -> Mask:
        """(n,) whether the first candidate is right."""
        return np.asarray(self.named == self.truth)

    def first(self, k: int) -> float:
        """The share of words that stand among the k first candidates."""
        return float((self.rank <= k).mean())

    def where(self, among: Mask) -> Scored:
        """Only the words of a kind, (n_words + 1,)."""
        return self.at(among[self.truth])

    def at(self, kept: Mask) -> Scored:
        """Only some of the words, (n,)."""
        truth, patient, named = self.truth[kept], self.patient[kept], self.named[kept]
        return Scored(truth, patient, named, self.rank[kept], self.belief[kept])

    @property
    def by_patient(self) -> Ints:
        """(n_patients, 2) words read right and words, of each patient."""
        _, place = np.unique(self.patient, return_inverse=True)
        return np.column_stack([np.bincount(place, self.right), np.bincount(place)]).astype(np.int64)

    @property
    def sure(self) -> tuple[float, float | None]:
        """The share of words that the reader is at least 90 % sure of, and how many of these are right."""
        asserted = self.belief >= SURE
        return float(asserted.mean()), float(self.right[asserted].mean()) if asserted.any() else None

    @property
    def usual(self) -> float:
        """The share that is right when always the most frequent of these words is named."""
        return float(np.bincount(self.truth).max() / self.truth.size)


def scored(
    notes: Sequence[AlignedNote],
    recoveries: Sequence[Recovery],
    n_words: int,
    among: Mask | None = None,
    usual: int = -1,
) -> Scored:
    """Lay readings beside the truth.

    Args:
        among: (n_words + 1,) the reader knows that the words are some of these: what they believe of other words is
            left out, and the rest brought to 1.
        usual: what they name where nothing is left.
    """
    return _together([_scored(*block, n_words, among, usual) for block in _blocks(notes, recoveries)])


def _together(parts: Sequence[Scored]) -> Scored:
    return Scored(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Scored)))


def _blocks(
    notes: Iterable[AlignedNote], recoveries: Iterable[Recovery]
) -> Iterator[tuple[list[AlignedNote], list[Recovery]]]:
    """Some notes at a time with their readings: a cluster has thousands of candidates for each word."""
    block, held = list[tuple[AlignedNote, Recovery]](), 0
    for pair in zip(notes, recoveries, strict=True):
        if block and held + pair[1].rows.size > AT_ONCE:
            yield [note for note, _ in block], [recovery for _, recovery in block]
            block, held = [], 0
        block.append(pair)
        held += pair[1].rows.size
    if block:
        yield [note for note, _ in block], [recovery for _, recovery in block]


@dataclass(frozen=True, eq=False)
class Scores:
    """All that is asked of what one reader reads, so that no reading is kept.

    Attributes:
        plain: of every word. told: by kind of words, of every word too: what is read by who knows that words are of it.
        longest: (n_notes,) as `spans` has it.
    """

    plain: Scored
    told: Mapping[str, Scored]
    longest: Ints

    @classmethod
    def of(
        cls,
        notes: Iterable[AlignedNote],
        recoveries: Iterable[Recovery],
        n_words: int,
        told: Mapping[str, tuple[Mask, int]],
    ) -> Scores:
        """Of readings as they come; `told`: by kind the words of it, and what is named where nothing is left."""
        plain, longest = list[Scored](), list[Ints]()
        kinds: dict[str, list[Scored]] = {kind: [] for kind in told}
        for block in _blocks(notes, recoveries):
            plain.append(_scored(*block, n_words, None, -1))
            longest.append(spans(*block, n_words))
            for kind, (among, usual) in told.items():
                kinds[kind].append(_scored(*block, n_words, among, usual))
        made = {kind: _together(parts) for kind, parts in kinds.items()}
        return cls(_together(plain), made, np.concatenate(longest))

    def kind(self, name: str, among: Mask) -> Scored:
        """The words of a kind, (n_words + 1,); of some kinds by who knows that they are of it."""
        return self.told.get(name, self.plain).where(among)


def _scored(
    notes: Sequence[AlignedNote], recoveries: Sequence[Recovery], n_words: int, among: Mask | None, usual: int
) -> Scored:
    truth = np.concatenate([note.truth for note in notes])
    patient = np.repeat([note.patient for note in notes], [len(note) for note in notes])
    sizes = np.concatenate([np.diff(recovery.starts) for recovery in recoveries])
    if sizes.size != truth.size:
        raise ValueError("a reading has another number of places than its note")
    place = np.repeat(np.arange(truth.size), sizes)
    rows = np.concatenate([recovery.rows for recovery in recoveries]).astype(np.int64)
    chances = np.concatenate([recovery.chances for recovery in recoveries])
    if among is None:
        return _ranked(truth, patient, place, rows, chances, n_words)
    kept = among[rows]
    place, rows, chances = place[kept], rows[kept], chances[kept]
    chances = chances / np.bincount(place, chances, truth.size)[place]
    found = _ranked(truth, patient, place, rows, chances, int(among.sum()))
    named = np.where(found.named < 0, usual, found.named)
    rank = np.where((found.named < 0) & (named == truth), 1.0, found.rank)
    return replace(found, named=named, rank=rank)


def _ranked(truth: Ints, patient: Ints, place: Ints, rows: Ints, chances: Doubles, n_words: int) -> Scored:
    """Of each place the likeliest row (of equal ones the first) and the rank of the truth; `place` ascends."""
    sizes = np.bincount(place, minlength=truth.size)
    some = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[some]
    named, belief = np.full(truth.size, -1, dtype=np.int64), np.zeros(truth.size)
    if some.size:
        belief[some] = np.maximum.reduceat(chances, starts)
        named[some] = np.minimum.reduceat(np.where(chances == belief[place], rows, n_words + rows.max()), starts)
    hit = rows == truth[place]
    believed = np.full(truth.size, np.inf)
    believed[place[hit]] = chances[hit]
    before = (chances > believed[place]) | ((chances == believed[place]) & (rows < truth[place]))
    ahead = np.bincount(place[before], minlength=truth.size)
    rank = np.where(np.isfinite(believed), 1.0 + ahead, sizes + (n_words - sizes + 1) / 2)
    return Scored(truth, patient, named, np.maximum(rank, 1.0), belief)


def spans(notes: Sequence[AlignedNote], recoveries: Sequence[Recovery], n_words: int) -> Ints:
    """(n_notes,) the longest run of words that follow each other in the source, read right and in their order."""
    right, at = scored(notes, recoveries, n_words).right, 0
    longest = []
    for note, recovery in zip(notes, recoveries, strict=True):
        order = np.arange(len(note)) if recovery.order is None else np.argsort(recovery.order, kind="stable")
        own, positions = right[at : at + len(note)][order], note.positions[order]
        longest.append(max(_runs(own, positions), default=0))
        at += len(note)
    return np.array(longest, dtype=np.int64)


def _runs(right: Mask, positions: Ints) -> Iterator[int]:
    """The lengths of runs of right words at consecutive places."""
    follows = right[1:] & right[:-1] & (np.diff(positions) == 1)
    length = 0
    for is_right, goes_on in zip(right.tolist(), [False, *follows.tolist()], strict=False):
        length = (length + 1 if goes_on else 1) if is_right else 0
        yield length
