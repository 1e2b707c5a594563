"""Notes as a language model reads them: one array of numbers, and where each note begins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.types import Ints
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, MemoryCorpus, memory_corpus
from clinveil.corpus.medtext import medtext
from clinveil.lm.vocabulary import Ids, Vocabulary


@dataclass(frozen=True)
class PlainNotes:
    """Notes in MedText's form, with their ids and patients, in source order. `repr` shows none of it."""

    texts: tuple[str, ...] = field(repr=False)
    note_ids: tuple[str, ...] = field(repr=False)
    patients: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, rows: Sequence[int]) -> PlainNotes:
        """Some of them, in the order given."""
        return PlainNotes(*(tuple(part[row] for row in rows) for part in (self.texts, self.note_ids, self.patients)))

    def as_corpus(self) -> MemoryCorpus:
        """The same as a corpus."""
        return memory_corpus(list(zip(self.note_ids, self.patients, self.texts, strict=True)))

    @property
    def words(self) -> int:
        """Tokens, ends of lines not counted (paper C, Table 1)."""
        return sum(len(text.split()) for text in self.texts)


def read_notes(corpus: Corpus, *, prepared: bool = False) -> PlainNotes:
    """All notes of a corpus in MedText's form; those without a word are left out.

    Args:
        prepared: the texts are in that form already (`clinveil prepare medtext`).

    Raises:
        InputError: no note has a word.
    """
    texts, ids, patients = [], [], []
    for batch in corpus.batches():
        columns = (batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT))
        for note, patient, text in zip(*columns, strict=True):
            if text and (own := _lines(text) if prepared else medtext(text)):
                texts.append(own)
                ids.append(note)
                patients.append(patient or note)
    if not texts:
        raise InputError("no note holds a word")
    return PlainNotes(tuple(texts), tuple(ids), tuple(patients))


def _lines(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class EncodedNotes:
    """Notes as numbers, one after another.

    Attributes:
        ids: (n_tokens,) int32, of each note its tokens and the end. offsets: (n_notes + 1,).
        characters: (n_notes,) of each note's text and the end of each line, for bits per character.
    """

    ids: Ids = field(repr=False)
    offsets: Ints = field(repr=False)
    characters: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def note(self, row: int) -> Ids:
        """The tokens of one note."""
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> Ints:
        """(n_notes,) tokens."""
        return np.diff(self.offsets)


def encode(texts: Iterable[str], vocabulary: Vocabulary) -> EncodedNotes:
    """Encode notes in MedText's form. Raises InputError for none."""
    texts = list(texts)
    notes = [vocabulary.encode(text) for text in texts]
    if not notes:
        raise InputError("there is no note to encode")
    return joined(notes, np.array([len(text) + 1 for text in texts], dtype=np.int64))


def joined(notes: Sequence[Ids], characters: Ints) -> EncodedNotes:
    """Notes from the tokens of each, ends included, and its number of characters."""
    offsets = np.concatenate([[0], np.cumsum([note.size for note in notes])]).astype(np.int64)
    return EncodedNotes(np.concatenate(notes), offsets, characters)
