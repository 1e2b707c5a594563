"""Notes of a corpus in MedText's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import Corpus, rows
from clinveil.corpus.medtext.note import medtext
from clinveil.corpus.medtext.paragraphs import Tags
from clinveil.corpus.medtext.tokenizer import Splitter, sentences
from clinveil.corpus.selection import UNWANTED, selected

NO_WORD = "no word in it"


@dataclass(frozen=True)
class MedTextNotes:
    """Notes in MedText's form, in source order. `repr` shows none of it.

    Attributes:
        skipped: notes left out, by reason.
    """

    texts: tuple[str, ...] = field(repr=False)
    note_ids: tuple[str, ...] = field(repr=False)
    patients: tuple[str, ...] = field(repr=False)
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> list[int]:
        """Words of each note; ends of lines are not counted."""
        return [len(text.split()) for text in self.texts]


def read_medtext(
    corpus: Corpus, *, only: Mapping[str, str] | None = None, tags: Tags = "all", split: Splitter = sentences
) -> MedTextNotes:
    """All notes of a corpus that are asked for, in memory.

    Args:
        only: column -> value; the corpus keeps these columns.

    Raises:
        InputError: no note is left.
    """
    skipped: Counter[str] = Counter()
    read: list[tuple[str, str, str]] = []
    for batch in corpus.batches():
        wanted = batch.filter(pa.array(selected(batch, only or {}), pa.bool_()))
        before = len(read)
        for note, patient, raw in rows([wanted]):
            if text := medtext(raw, tags=tags, split=split):
                read.append((text, note, patient))
        skipped[UNWANTED] += batch.num_rows - wanted.num_rows
        skipped[NO_WORD] += wanted.num_rows - (len(read) - before)
    skipped += corpus.skipped  # which also takes zeros away
    if not read:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in skipped.most_common())
        raise InputError(f"no note is left ({reasons})", remedy="is it the right --text, and the right --only?")
    texts, notes, patients = zip(*read, strict=True)
    return MedTextNotes(texts, notes, patients, skipped)
