"""`Corpus`, a restartable stream of Arrow record batches, and the roles of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

# The columns that every batch of every corpus begins with; what the user keeps comes after, under its own name.
NOTE_ID, PATIENT_ID, TEXT = "note_id", "patient_id", "text"
ROLE_FIELDS = (
    pa.field(NOTE_ID, pa.string()),
    pa.field(PATIENT_ID, pa.string()),
    pa.field(TEXT, pa.large_string()),
)
BATCH_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Columns:
    """Which source column plays which role, and what becomes of the others.

    Attributes:
        text, note_id: source column names.
        patient_id: source column name, or None where each note is its own patient.
        keep: columns passed through, in source order (labels are among them).
        labels: columns that utility is measured on.
        dropped: the source columns that are left out.
        order: all written columns in source order, for the writer.
        other_dropped: how many columns are left out besides, which have no place in a list: keys of JSON lines that
            not every record has may be data, such as a name.
    """

    text: str
    note_id: str
    patient_id: str | None = None
    keep: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    other_dropped: int = 0

    @property
    def has_patients(self) -> bool:
        """Whether a column tells the patients apart; if not, each note is its own patient, which callers warn of."""
        return self.patient_id is not None


class Corpus(Protocol):
    """A restartable stream of notes: iterating twice gives the same rows in the same order.

    Batches have the fields of `ROLE_FIELDS`, then `columns.keep` under their own names; a null text is null.
    """

    @property
    def columns(self) -> Columns:
        """The roles of the source's columns."""
        ...

    @property
    def suffix(self) -> str:
        """The format of the source: ".parquet", ".csv.gz", … or "" for a folder of .txt."""
        ...

    @property
    def skipped(self) -> Counter[str]:
        """Rows that the last pass left out, by reason; rows read = rows in batches + these."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, from the start, in source order."""
        ...


@dataclass(frozen=True)
class MemoryCorpus:
    """A corpus of batches that are held in memory, or made anew by a function at each pass."""

    source: Callable[[], Iterator[pa.RecordBatch]] | Sequence[pa.RecordBatch] = field(repr=False)
    columns: Columns = Columns(text=TEXT, note_id=NOTE_ID, patient_id=PATIENT_ID)
    suffix: str = ".parquet"
    skipped: Counter[str] = field(default_factory=Counter)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, from the start."""
        return self.source() if callable(self.source) else iter(self.source)


class Note(NamedTuple):
    """One note of a corpus. Its repr shows nothing of it."""

    note_id: str
    patient_id: str
    text: str

    def __repr__(self) -> str:
        return "Note()"


def rows(source: Corpus | Iterable[pa.RecordBatch]) -> Iterator[Note]:
    """The notes of a corpus or of some batches, in order: the one way to read them row by row.

    A note whose text is null is left out; one without a patient is its own patient.
    """
    return (note for note, _ in rows_with(source))


def rows_with(source: Corpus | Iterable[pa.RecordBatch], *columns: str) -> Iterator[tuple[Note, tuple[Any, ...]]]:
    """As `rows`, each note with its values in some more columns. Raises KeyError for a column that is not there."""
    for batch in source if isinstance(source, Iterable) else source.batches():
        ids, texts = batch.column(NOTE_ID).to_pylist(), batch.column(TEXT).to_pylist()
        patients = batch.column(PATIENT_ID).to_pylist() if PATIENT_ID in batch.schema.names else ids
        others = zip(*(batch.column(name).to_pylist() for name in columns), strict=True) if columns else [()] * len(ids)
        for note_id, patient, text, values in zip(ids, patients, texts, others, strict=True):
            if text is not None:
                yield Note(note_id, note_id if patient is None else patient, text), values


def with_texts(batch: pa.RecordBatch, texts: Sequence[str | None]) -> pa.RecordBatch:
    """The batch with other texts, one for each row; rows without one are left out."""
    at = batch.schema.get_field_index(TEXT)
    column = pa.array(texts, type=batch.schema.field(at).type)
    return batch.set_column(at, batch.schema.field(at), column).filter(column.is_valid())


@dataclass
class Accounting:
    """Rows read, written, and skipped by reason; balanced at the end of every pass."""

    read: int = 0
    written: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def balanced(self) -> bool:
        """Whether read = written + skipped."""
        return self.read == self.written + sum(self.skipped.values())

    def __add__(self, other: Accounting) -> Accounting:
        return Accounting(self.read + other.read, self.written + other.written, self.skipped + other.skipped)


def memory_corpus(notes: Sequence[tuple[str, str, str | None]]) -> MemoryCorpus:
    """A corpus of (note_id, patient_id, text) triples, for tests and small things."""
    columns = list(zip(*notes, strict=True)) or [(), (), ()]
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, ROLE_FIELDS, strict=True)]
    return MemoryCorpus((pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS)),))
