"""Notes in MedText's form, their encoding, and fingerprints, by which training notes are
recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from clinveil.core import Doubles, InputError, Ints
from clinveil.corpus import Corpus, MemoryCorpus, medtext, memory_corpus, rows
from clinveil.lm.vocabulary import Ids, Vocabulary, bare

FLOORS = 4  # a group of notes that steers has this many times the patient floor
REPEATED = 5  # tokens in a row; their repetition by one patient is limited
ODD = 0x9E3779B97F4A7C15  # of hashes modulo 2^64


@dataclass(frozen=True)
class PlainNotes:
    """Notes with their ids, patients and numbers of labels (if any), in source order; `repr` shows
    none of these.
    """

    texts: tuple[str, ...] = field(repr=False)
    note_ids: tuple[str, ...] = field(repr=False)
    patients: tuple[str, ...] = field(repr=False)
    labels: tuple[int, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, rows: Sequence[int]) -> PlainNotes:
        """Return some of the notes, in the order given."""
        texts, note_ids, patients = (
            tuple(part[row] for row in rows) for part in (self.texts, self.note_ids, self.patients)
        )
        return PlainNotes(
            texts,
            note_ids,
            patients,
            tuple(self.labels[row] for row in rows) if self.labels else (),
        )

    def as_corpus(self) -> MemoryCorpus:
        """Return the notes as a corpus."""
        return memory_corpus(list(zip(self.note_ids, self.patients, self.texts, strict=True)))

    @property
    def words(self) -> int:
        """Tokens without ends of lines (paper C, Table 1)."""
        return sum(len(text.split()) for text in self.texts)


def read_notes(corpus: Corpus, *, prepared: bool = False, layout: bool = False) -> PlainNotes:
    """Return the notes of a corpus in MedText's form, without empty notes. Raises InputError if all
    are empty.

    `prepared`: the texts already have this form. `layout`: return the texts unchanged.
    """
    form = str.strip if layout else bare if prepared else medtext
    formed = ((form(text), note, patient) for note, patient, text in rows(corpus))
    if not (kept := [row for row in formed if row[0]]):
        raise InputError("no note contains a word")
    texts, note_ids, patients = zip(*kept, strict=True)
    return PlainNotes(texts, note_ids, patients)


@dataclass(frozen=True)
class SyntheticNote:
    """One written note: number of its patient, position among the patient's notes, values by
    column, and text.
    """

    patient: int
    position: int
    labels: Mapping[str, str]
    text: str = field(repr=False)


@dataclass(frozen=True)
class Conditions:
    """What a model of shared n-grams is conditioned on: (n_notes,) number of patient and of label
    (-1: none).

    `min_patients`: n-grams of fewer patients are left out.
    """

    patients: Ints = field(repr=False)
    labels: Ints = field(repr=False)
    min_patients: int

    @classmethod
    def of(cls, notes: PlainNotes, min_patients: int) -> Conditions:
        """Number the patients of notes."""
        patients = np.unique(np.array(notes.patients, dtype=object), return_inverse=True)[1]
        labels = np.array(notes.labels or [-1] * len(notes), dtype=np.int64)
        return cls(patients.astype(np.int64), labels, min_patients)


@dataclass(frozen=True)
class EncodedNotes:
    """Encoded notes: tokens of all notes with their ends, (n_tokens,), and the start of each note,
    (n_notes + 1,).

    `characters`: (n_notes,) characters of each note with ends of lines, for bits per character.
    `conditions`: patients and labels, where the model uses them.
    """

    ids: Ids = field(repr=False)
    offsets: Ints = field(repr=False)
    characters: Ints = field(repr=False)
    conditions: Conditions | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def note(self, row: int) -> Ids:
        """Return the tokens of one note."""
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def rows(self, rows: Ints) -> EncodedNotes:
        """Return some of the notes, without conditions."""
        return joined([self.note(row) for row in rows.tolist()], self.characters[rows])

    @property
    def lengths(self) -> Ints:
        """Tokens of each note, (n_notes,)."""
        return np.diff(self.offsets)

    @cached_property
    def weights(self) -> Doubles:
        """How much each token counts, (n_tokens,); 1 without conditions.

        Five tokens that a patient repeats count at most as often as for the `min_patients`-th
        patient, so that a note of one patient does not dominate by repetition. The first four of a
        note count as its fifth.
        """
        found = np.ones(self.ids.size)
        if (given := self.conditions) is None:
            return found
        code = np.zeros(self.ids.size, dtype=np.uint64)
        for back in range(min(REPEATED, self.ids.size)):
            code[back:] += (
                self.ids[: self.ids.size - back].astype(np.uint64) + np.uint64(1)
            ) * np.uint64(pow(ODD, back + 1, 2**64))
        owners = np.repeat(given.patients, self.lengths)
        pairs, first, back_to, times = np.unique(
            code * np.uint64(ODD) + owners.astype(np.uint64),
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        order = np.lexsort((-times, code[first]))
        sorted_codes = code[first][order]
        begins = np.flatnonzero(np.append(True, sorted_codes[1:] != sorted_codes[:-1]))
        sizes = np.diff(np.append(begins, pairs.size))
        at = np.minimum(begins + given.min_patients - 1, pairs.size - 1)
        most = np.where(sizes >= given.min_patients, times[order][at], 1)
        limit = np.empty(pairs.size)
        limit[order] = np.repeat(most, sizes)
        found = np.minimum(1.0, limit / times)[back_to]
        places = np.arange(self.ids.size) - np.repeat(self.offsets[:-1], self.lengths)
        last = np.repeat(self.offsets[1:] - 1, self.lengths)
        fifth = np.minimum(np.arange(self.ids.size) + np.maximum(REPEATED - 1 - places, 0), last)
        weights: Doubles = found[fifth]
        return weights


def encode(
    texts: Iterable[str], vocabulary: Vocabulary, conditions: Conditions | None = None
) -> EncodedNotes:
    """Encode notes. Raises InputError if there are none."""
    texts = list(texts)
    notes = [vocabulary.encode(text) for text in texts]
    if not notes:
        raise InputError("no note to encode")
    found = joined(notes, np.array([len(text) + 1 for text in texts], dtype=np.int64))
    return replace(found, conditions=conditions)


def joined(notes: Sequence[Ids], characters: Ints) -> EncodedNotes:
    """Join the tokens of notes, with their ends, and their numbers of characters."""
    offsets = np.concatenate([[0], np.cumsum([note.size for note in notes])]).astype(np.int64)
    return EncodedNotes(np.concatenate(notes), offsets, characters)


def fingerprint(text: str) -> str:
    """Return a 64-bit hash of a note in MedText's form, in hex; secret, because guesses can be
    looked up.
    """
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
