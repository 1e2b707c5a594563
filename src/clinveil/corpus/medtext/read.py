"""Notes of a corpus in MedText's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus
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
    rows: list[tuple[str, str, str]] = []
    for batch in corpus.batches():
        for wanted, note, patient, raw in _rows(batch, only or {}):
            text = medtext(raw, tags=tags, split=split) if wanted and raw else ""
            if text:
                rows.append((text, note, patient))
            else:
                skipped[NO_WORD if wanted else UNWANTED] += 1
    skipped += corpus.skipped
    if not rows:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in skipped.most_common())
        raise InputError(f"no note is left ({reasons})", remedy="is it the right --text, and the right --only?")
    texts, notes, patients = zip(*rows, strict=True)
    return MedTextNotes(texts, notes, patients, skipped)


def _rows(batch: pa.RecordBatch, only: Mapping[str, str]) -> Iterator[tuple[bool, str, str, str | None]]:
    columns = [batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT)]
    return zip(selected(batch, only), *columns, strict=True)
