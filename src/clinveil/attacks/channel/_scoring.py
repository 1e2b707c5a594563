"""Scores of recovered words: whether the first guess of each word is right; per word kind and patient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from clinveil.attacks.adversary import AlignedNote, Recovery
from clinveil.core.types import Ints, Mask

BATCH = 1_000_000  # candidates


@dataclass(frozen=True, eq=False)
class Scored:
    """The true word, the patient, and the first candidate of every attacked word, (n,); -1 without a candidate."""

    truth: Ints
    patient: Ints
    named: Ints

    @property
    def is_right(self) -> Mask:
        """Return whether the first candidate is right, (n,)."""
        return np.asarray(self.named == self.truth)

    def at(self, mask: Mask) -> Scored:
        """Select words by a mask (n,)."""
        return Scored(self.truth[mask], self.patient[mask], self.named[mask])

    @property
    def by_patient(self) -> Ints:
        """Return the recovered words and the words of each patient, (n_patients, 2)."""
        _, place = np.unique(self.patient, return_inverse=True)
        return np.column_stack([np.bincount(place, self.is_right), np.bincount(place)]).astype(np.int64)

    @property
    def most_frequent_share(self) -> float:
        """Return the share of the most frequent of these words."""
        return float(np.bincount(self.truth).max() / self.truth.size)


def scored(
    notes: Sequence[AlignedNote], recoveries: Sequence[Recovery], among: Mask | None = None, fallback: int = -1
) -> Scored:
    """Score recovered words; of candidates with equal probabilities the first row counts.

    Args:
        among: (n_words + 1,) mask of possible words; other candidates are removed.
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
    if among is not None:
        mask = among[rows]
        place, rows, chances = place[mask], rows[mask], chances[mask]
    order = np.lexsort((rows, -chances, place))
    some, first = np.unique(place[order], return_index=True)
    named = np.full(truth.size, fallback, dtype=np.int64)
    named[some] = rows[order][first]
    return Scored(truth, patient, named)


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


def scores_by_kind(
    notes: Iterable[AlignedNote], recoveries: Iterable[Recovery], kinds: Mapping[str, tuple[Mask | None, int]]
) -> dict[str, Scored]:
    """Score recoveries as they arrive, so that they need not be stored.

    Args:
        kinds: `among` and `fallback` of each kind of words that the attacker knows; None: all words.

    Returns: scores of every word, by an attacker who knows the kind.
    """
    parts: dict[str, list[Scored]] = {kind: [] for kind in kinds}
    for block in _blocks(notes, recoveries):
        for kind, (among, fallback) in kinds.items():
            parts[kind].append(scored(*block, among, fallback))
    columns = [field.name for field in fields(Scored)]
    return {
        kind: Scored(*(np.concatenate([getattr(part, name) for part in own]) for name in columns))
        for kind, own in parts.items()
    }
