"""The training corpora that are compared: the real notes, and those that each model wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models._from_text import written
from clinveil.attacks.models.leaveout.data import load_data
from clinveil.attacks.models.leaveout.models import AuditModel
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.vocabulary import END, Vocabulary
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.clinicalnlp_2019.parts import Parts, load_notes, part_of, save_notes, vocabulary_of_parts

NOTES = "notes.json"
REAL, UNIGRAM = "real notes", "unigram"


@dataclass(frozen=True)
class Written:
    """One corpus: real training notes, a unigram's, or those that a member of an audit wrote.

    Attributes:
        label: `real notes`, `unigram` or `lstm, dropout 0.5`. member: who wrote them, or None.
    """

    label: str
    parts: Parts
    member: AuditModel | None = None

    @property
    def title(self) -> str:
        """For people."""
        return f"notes of: {self.label}"

    def identity(self) -> Mapping[str, Any]:
        """Parts and writer."""
        by = name_of(self.member) if self.member else self.label
        return {"parts": name_of(self.parts), "by": by, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes in MedText's form."""
        notes = self._notes(store)
        save_notes(folder / NOTES, notes)
        return {"notes": len(notes), "words": notes.words}

    def _notes(self, store: Store) -> PlainNotes:
        if self.label == REAL:
            return part_of(store, self.parts, "train")
        if self.member is not None:
            vocabulary = load_data(self.member.data).vocabulary
            ids = np.load(store.folder(self.member) / "text-ids.npy", allow_pickle=False)
            return decoded(ids, vocabulary)
        words = vocabulary_of_parts(store, self.parts)
        encoded = encode(part_of(store, self.parts, "train").texts, words)
        how = SamplingConfig(batch_size_for(len(encoded)), int(encoded.lengths.max()))
        notes = written(train_unigram(encoded, words), encoded.ids.size, self.parts.seed, how)
        return decoded(notes.ids, words)

    def load(self, store: Store) -> PlainNotes:
        """What a finished task wrote."""
        return load_notes(store.folder(self) / NOTES)


def decoded(ids: np.ndarray[Any, Any], vocabulary: Vocabulary) -> PlainNotes:
    """The notes of tokens with an end after each; notes without a word are left out."""
    ends = np.flatnonzero(ids == END)
    pieces = np.split(ids, ends + 1)
    texts = [text for piece in pieces if piece.size > 1 and (text := vocabulary.decode(piece.tolist()))]
    names = tuple(f"synthetic-{i:06d}" for i in range(1, len(texts) + 1))
    return PlainNotes(tuple(texts), names, names)
