"""The notes that utility tasks work on: a sample of the real notes, and the released notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.channel import Channel
from clinveil.core import InputError, Ints, Mask
from clinveil.corpus import Corpus, KeySample, Note, rows
from clinveil.utility.labelled import by_source
from clinveil.utility.split import splits

FOLDS = 5
MOST_NOTES = 4_000
MOST_CHARACTERS = 8_000_000
FEWEST_TESTED = 20  # test patients


@dataclass(frozen=True)
class Sides:
    """Real and released notes, and what links them.

    Attributes:
        original, released: the notes of both sides. entered: the real notes as the mechanism
            received them.
        notes: released id -> real id; None where released notes describe no note of the original.
        channel: how words were replaced, in order; None where words do not correspond.
        scratch: a private folder; None for the system's. workers: threads.
        test_patients: patients of `original` to test on; None: cross-validation over all patients.
        unread: whether it is known that no model of the release has read their notes.
    """

    original: Corpus
    released: Corpus
    entered: Corpus | None = None
    notes: Mapping[str, str] | None = field(default=None, repr=False)
    channel: Channel | None = field(default=None, repr=False)
    scratch: Path | None = field(default=None, repr=False)
    workers: int = 2
    test_patients: frozenset[str] | None = field(default=None, repr=False)
    unread: bool = False

    @classmethod
    def of(cls, context: Any) -> Sides:
        """Return the sides of an object with the same attributes. Raises ValueError if one is
        missing.
        """
        if context.original is None or context.released is None:
            raise ValueError("utility compares the notes of both sides")
        return cls(*(getattr(context, each.name) for each in fields(cls)))

    @property
    def paired(self) -> bool:
        """Whether each released note belongs to a real one."""
        return self.notes is not None

    def tested_on(self, notes: int, patients: int) -> str:
        """Return on what a figure was tested, and whether the release's models have read it."""
        numbers = f"{notes:,} notes of {patients:,} patients"
        if self.test_patients is not None and self.unread:
            return f"{numbers} that the release's models have not read"
        return f"{numbers}; whether the release's models have read them is not known"


def refuse_few(patients: int) -> None:
    """Raise InputError for too few test patients: their interval would not hold."""
    if patients < FEWEST_TESTED:
        what = f"{patients} test patients have such notes; {FEWEST_TESTED} are required"
        raise InputError(f"{what} (pass more patients, or a larger test_share)")


@dataclass(frozen=True)
class Texts:
    """Real notes in the order of their ids, and released notes.

    Attributes:
        ids, patients, real: of each real note. released: texts.
        owner: (n_released,) row of the real note behind each released one; -1 where there is none.
        tested: (n_real,) whether the note is of a test patient; None: cross-validation.
    """

    ids: Sequence[str] = field(repr=False)
    patients: Sequence[str] = field(repr=False)
    real: Sequence[str] = field(repr=False)
    released: Sequence[str] = field(repr=False)
    owner: Ints = field(repr=False)
    rng_seed: int
    tested: Mask | None = field(default=None, repr=False)

    @cached_property
    def patient(self) -> Ints:
        """(n_real,) number of each note's patient."""
        return np.unique(np.array(self.patients, dtype=object), return_inverse=True)[1].astype(
            np.int64
        )

    @cached_property
    def folds(self) -> list[tuple[Ints, Ints]]:
        """Rows of real notes to train and to test on; no patient or near-duplicate text is on both
        sides.

        With test patients there is one fold. Raises InputError for fewer independent notes than
        folds, or for too few test patients.
        """
        if self.tested is not None:
            refuse_few(len(np.unique(self.patient[self.tested])))
            return [(np.flatnonzero(~self.tested), np.flatnonzero(self.tested))]
        rng = np.random.default_rng([self.rng_seed, 7])
        made = splits(self.patients, self.real, [""] * len(self.real), rng, parts=FOLDS)
        return [(split.train, split.test) for split in made]

    def tested_rows(self, folds: int) -> Ints:
        """Return the real notes that the first folds test on."""
        return np.concatenate([test for _, test in self.folds[:folds]])

    def released_rows(self, train: Ints) -> Ints:
        """Return the released notes to train on: those of real training notes, or all where none
        has an owner.
        """
        return np.flatnonzero((self.owner < 0) | np.isin(self.owner, train))


def read_texts(release: Sides, rng: Generator) -> Texts:
    """Read a random sample of the real notes (at most MOST_NOTES and MOST_CHARACTERS) and their
    released notes.

    Without pairing, as many released notes are sampled. Raises InputError if no real note was
    released.
    """
    seed = int(rng.integers(2**31))
    real = _sample(release.original, rng)
    order = sorted(real)
    row = {note: i for i, note in enumerate(order)}
    if release.notes is not None:
        found = {
            row[s]: text
            for s, text in by_source(release.released.batches(), release.notes)
            if s in row
        }
        if not found:
            raise InputError(
                "original and released have no note id in common",
                hint="pass the vault with --vault",
            )
        kept = sorted(found)
        released = [found[i] for i in kept]
        owner = np.arange(len(kept), dtype=np.int64)
        order = [order[i] for i in kept]
    else:
        sampled = _sample(release.released, rng)
        released = [sampled[note][1] for note in sorted(sampled)]
        owner = np.full(len(released), -1, dtype=np.int64)
    patients = [real[i][0] for i in order]
    tested = None
    if release.test_patients is not None:
        tested = np.array(
            [patient in release.test_patients for patient in patients], dtype=np.bool_
        )
    return Texts(order, patients, [real[i][1] for i in order], released, owner, seed, tested)


def _patient_and_text(note: Note) -> tuple[str, str]:
    return note.patient_id, note.text


def _sample(corpus: Corpus, rng: Generator) -> dict[str, tuple[str, str]]:
    """Return patient and text of sampled notes by id, in a random order that depends on ids and
    seed only.
    """
    sample: KeySample[tuple[str, str]] = KeySample(MOST_NOTES, rng)
    for note in rows(corpus):
        sample.offer(note.note_id, partial(_patient_and_text, note))
    names = sorted(sample.values)
    order = [names[i] for i in rng.permutation(len(names))]
    ends = np.cumsum([len(sample.values[note][1]) for note in order])
    kept = max(1, int((ends <= MOST_CHARACTERS).sum()))
    return {note: sample.values[note] for note in order[:kept]}


def texts_entered(release: Sides, texts: Texts) -> list[str]:
    """Return the texts that the mechanism received."""
    row = {note: i for i, note in enumerate(texts.ids)}
    entered: list[str] = list(texts.real)
    for note in rows(release.entered) if release.entered else ():
        if note.note_id in row:
            entered[row[note.note_id]] = note.text
    return entered
