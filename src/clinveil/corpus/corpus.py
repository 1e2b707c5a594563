"""`Corpus`, a restartable stream of Arrow record batches, and the roles of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.types import Ints

# The columns that every batch of every corpus begins with; what the user keeps comes after, under its own name.
NOTE_ID, PATIENT_ID, TEXT = "note_id", "patient_id", "text"
ROLE_FIELDS = (
    pa.field(NOTE_ID, pa.string()),
    pa.field(PATIENT_ID, pa.string()),
    pa.field(TEXT, pa.large_string()),
)
# A kept column whose values are not all of one plain type travels as JSON text, under this mark.
JSON_MARK = {b"clinveil": b"json"}
BATCH_ROWS = 2000
NO_PATIENTS = "no patient column: each note counts as a patient of its own"
BATCH_BYTES = 32 << 20


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
    """A corpus of batches that are held in memory, or made by a function at each pass."""

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


class Rebatcher:
    """Takes batches of any size, gives batches of `rows` rows, or fewer where their text reaches `max_bytes`.

    A single note longer than `max_bytes` makes a batch of its own.
    """

    def __init__(self, rows: int = BATCH_ROWS, max_bytes: int = BATCH_BYTES) -> None:
        self._limit, self._max_bytes = rows, max_bytes
        self._pieces: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch; yield those that are full now."""
        ends = np.cumsum(text_bytes(batch))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, before + self._max_bytes - self._bytes, side="right")) - start
            take = min(fitting, self._limit - self._rows, batch.num_rows - start)
            if take <= 0 and self._rows:
                yield from self.flush()
                continue
            take = max(take, 1)
            self._pieces.append(batch.slice(start, take))
            start += take
            self._rows += take
            self._bytes += int(ends[start - 1]) - before
            if self._rows >= self._limit or self._bytes >= self._max_bytes:
                yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield what is left, if anything."""
        pieces, self._pieces, self._rows, self._bytes = self._pieces, [], 0, 0
        if len(pieces) == 1:
            yield pieces[0]
        elif pieces:
            yield from pa.Table.from_batches(pieces).combine_chunks().to_batches()


def rebatch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `BATCH_ROWS` rows and at most about `BATCH_BYTES` of text."""
    rebatcher = Rebatcher()
    for batch in batches:
        yield from rebatcher.push(batch)
    yield from rebatcher.flush()


def text_bytes(batch: pa.RecordBatch) -> Ints:
    """Bytes of each row's text, shape (n_rows,); 0 where it is null."""
    lengths = pc.fill_null(pc.binary_length(batch.column(TEXT)), 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


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


def corpus_of_texts(texts: Iterable[str]) -> MemoryCorpus:
    """A corpus of texts, each of a patient of its own; ids are numbers."""
    return memory_corpus([(str(i), str(i), text) for i, text in enumerate(texts)])


def memory_corpus(notes: Sequence[tuple[str, str, str | None]]) -> MemoryCorpus:
    """A corpus of (note_id, patient_id, text) triples, for tests and small things."""
    columns = list(zip(*notes, strict=True)) or [(), (), ()]
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, ROLE_FIELDS, strict=True)]
    return MemoryCorpus((pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS)),))
