"""Notes in MedText's form, their encoding, and fingerprints of training notes for the check of test notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Ints
from clinveil.corpus.corpus import Corpus, MemoryCorpus, memory_corpus, rows
from clinveil.corpus.medtext import UNK, medtext
from clinveil.lm.vocabulary import Ids, Vocabulary, bare

ALL = "all {n:,} notes are verbatim training notes of the model: the result measures memorization"
SOME = "{some:,} of {n:,} notes are verbatim training notes of the model"
UNK_IN_TEST = "rare words are <unk> in these notes but not in the training notes; prepare both in the same way"
UNK_IN_TRAINING = "rare words are <unk> in the training notes but not in these notes; prepare both in the same way"


@dataclass(frozen=True)
class PlainNotes:
    """Notes in MedText's form, with their ids and patients, in source order; `repr` shows none of these."""

    texts: tuple[str, ...] = field(repr=False)
    note_ids: tuple[str, ...] = field(repr=False)
    patients: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, rows: Sequence[int]) -> PlainNotes:
        """Return some of the notes, in the order given."""
        return PlainNotes(*(tuple(part[row] for row in rows) for part in (self.texts, self.note_ids, self.patients)))

    def as_corpus(self) -> MemoryCorpus:
        """Return the notes as a corpus."""
        return memory_corpus(list(zip(self.note_ids, self.patients, self.texts, strict=True)))

    @property
    def words(self) -> int:
        """Tokens without ends of lines (paper C, Table 1)."""
        return sum(len(text.split()) for text in self.texts)


def read_notes(corpus: Corpus, *, prepared: bool = False) -> PlainNotes:
    """Return the notes of a corpus in MedText's form, without empty notes. Raises InputError if all are empty.

    `prepared`: the texts already have this form.
    """
    formed = ((bare(text) if prepared else medtext(text), note, patient) for note, patient, text in rows(corpus))
    if not (kept := [row for row in formed if row[0]]):
        raise InputError("no note contains a word")
    return PlainNotes(*(tuple(row[i] for row in kept) for i in range(3)))


@dataclass(frozen=True)
class EncodedNotes:
    """Encoded notes: tokens of all notes with their ends, (n_tokens,), and the start of each note, (n_notes + 1,).

    `characters`: (n_notes,) characters of each note with ends of lines, for bits per character.
    """

    ids: Ids = field(repr=False)
    offsets: Ints = field(repr=False)
    characters: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def note(self, row: int) -> Ids:
        """Return the tokens of one note."""
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Ints:
        """Tokens of each note, (n_notes,)."""
        return np.diff(self.offsets)


def encode(texts: Iterable[str], vocabulary: Vocabulary) -> EncodedNotes:
    """Encode notes in MedText's form. Raises InputError if there are none."""
    texts = list(texts)
    notes = [vocabulary.encode(text) for text in texts]
    if not notes:
        raise InputError("no note to encode")
    return joined(notes, np.array([len(text) + 1 for text in texts], dtype=np.int64))


def joined(notes: Sequence[Ids], characters: Ints) -> EncodedNotes:
    """Join the tokens of notes, with their ends, and their numbers of characters."""
    offsets = np.concatenate([[0], np.cumsum([note.size for note in notes])]).astype(np.int64)
    return EncodedNotes(np.concatenate(notes), offsets, characters)


@dataclass(frozen=True)
class Seen:
    """Hashes of training notes, and whether they contain `<unk>`; secret, because guesses can be looked up."""

    fingerprints: frozenset[str] = field(repr=False)
    has_unk: bool

    @classmethod
    def of(cls, notes: PlainNotes) -> Seen:
        """Return the hashes of some notes."""
        return cls(frozenset(map(fingerprint, notes.texts)), _has_unk(notes))

    @classmethod
    def from_dict(cls, data: Any) -> Seen | None:
        """Return the result of `as_dict`; None for other data, such as models of earlier versions."""
        if not isinstance(data, Mapping) or not isinstance(data.get("fingerprints"), list):
            return None
        return cls(frozenset(map(str, data["fingerprints"])), bool(data.get("blotted")))

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"blotted": self.has_unk, "fingerprints": sorted(self.fingerprints)}

    def warnings(self, test: PlainNotes) -> list[str]:
        """Return warnings about a result on these test notes."""
        n, some = len(test), sum(fingerprint(text) in self.fingerprints for text in test.texts)
        overlap = [(ALL if some == n else SOME).format(n=n, some=some)] if some else []
        has_unk = _has_unk(test)
        return overlap + ([UNK_IN_TEST if has_unk else UNK_IN_TRAINING] if has_unk != self.has_unk else [])


def fingerprint(text: str) -> str:
    """Return a 64-bit hash of a note in MedText's form, in hex."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _has_unk(notes: PlainNotes) -> bool:
    return any(UNK in text.split() for text in notes.texts)


@dataclass(frozen=True)
class Form:
    """Signs of MedText's form in notes: words `<unk>`, and commas that are separate or attached to a word."""

    n_unk: int
    alone: int
    attached: int

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Form:
        """Count the signs; texts may be null."""
        n_unk = alone = attached = 0
        for text in texts:
            for word in (text or "").split():
                n_unk += word == UNK
                alone += word == ","
                attached += len(word) > 1 and word.endswith(",")
        return cls(n_unk, alone, attached)

    @property
    def prepared(self) -> bool | None:
        """Whether the notes have MedText's form; None if there is no sign."""
        if self.n_unk or self.alone > self.attached:
            return True
        return False if self.attached > self.alone else None
