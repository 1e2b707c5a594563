"""The validated input of a release: the notes, and counts of one pass over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.corpus import (
    NOTE_ID,
    PATIENT_ID,
    TEXT,
    Corpus,
    Hashes,
    PartFacts,
    Patient,
    hashes,
    n_distinct,
)
from clinveil.releases.earlier.note_hashes import NoteHashes
from clinveil.releases.held_out import SplitRows
from clinveil.scale import Broken, Map, serial
from clinveil.vectors import MANY_WORDS, Vectors

CHARACTERS_PER_WORD = 6.6  # of MTSamples, punctuation and spaces included


@dataclass
class Preflight:
    """Counts of one validating pass over notes; those of several parts add up.

    Attributes:
        rows: notes read. characters: code points in total.
        skipped: rows left out by the preset of the source, by reason.
        notes: hashes of each batch, for the ledger. owners: hashes of the patient ids of
            each batch.
        split: what the draw of test patients needs of each batch.
    """

    rows: int = 0
    characters: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[NoteHashes] = field(default_factory=list, repr=False)
    owners: list[Hashes] = field(default_factory=list, repr=False)
    split: list[SplitRows] = field(default_factory=list, repr=False)

    def take(self, batch: pa.RecordBatch, label: str | None) -> None:
        """Count a batch of notes; `label`: the column by which test patients are drawn."""
        text = batch.column(TEXT)
        self.rows += batch.num_rows
        self.characters += int(pc.sum(pc.utf8_length(text)).as_py() or 0)
        ids = batch.column(NOTE_ID).to_pylist()
        patients = batch.column(PATIENT_ID).to_pylist()
        self.notes.append(NoteHashes.of(ids, text.to_pylist(), patients))
        self.owners.append(hashes(batch.column(PATIENT_ID).unique().to_pylist()))
        self.split.append(SplitRows.of(batch, label))

    def __iadd__(self, other: Preflight) -> Preflight:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        return self

    @cached_property
    def patients(self) -> int:
        """Number of distinct patient ids."""
        return n_distinct(self.owners)

    @cached_property
    def hashes(self) -> NoteHashes:
        """Hashes of all notes."""
        return NoteHashes.joined(self.notes)

    @property
    def read(self) -> int:
        """All rows of the source, including those left out."""
        return self.rows + self.skipped.total()

    @property
    def tokens(self) -> int:
        """Estimated number of words."""
        return round(self.characters / CHARACTERS_PER_WORD)


@dataclass(frozen=True, kw_only=True)
class PreparedInput:
    """Validated input of a run.

    Attributes:
        corpus: the notes. totals: their counts.
        known: known patients by id. imported: pretrained vectors.
        facts: facts per readable part file; empty for a single file. names: of all parts.
        broken: unreadable parts; the run stops after identifier detection on the others.
        executor: map for part files.
    """

    corpus: Corpus
    totals: Preflight
    known: Mapping[str, Patient] = field(default_factory=dict)
    imported: Vectors | None = None
    facts: tuple[PartFacts, ...] = ()
    names: tuple[str, ...] = ()
    broken: Broken = field(default_factory=Broken)
    executor: Map = serial

    @property
    def parts_executor(self) -> Map:
        """Executor for quick work on parts; of few words it is done here, because starting
        processes takes seconds.
        """
        return self.executor if self.totals.tokens >= MANY_WORDS else serial
