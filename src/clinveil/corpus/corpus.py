"""`Corpus`, a restartable stream of Arrow record batches, and the roles of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core import Ints, visible_text

# The first columns of every batch; kept columns follow under their own names.
NOTE_ID = "note_id"
PATIENT_ID = "patient_id"
TEXT = "text"
ROLE_FIELDS = (
    pa.field(NOTE_ID, pa.string()),
    pa.field(PATIENT_ID, pa.string()),
    pa.field(TEXT, pa.large_string()),
)
# A kept column with values of several types is stored as JSON text and has this metadata.
JSON_MARK = {b"clinveil": b"json"}
BATCH_ROWS = 2000
NO_PATIENTS = "no patient column: each note counts as a separate patient"
BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Columns:
    """The roles of the source's columns, and the treatment of the others.

    Attributes:
        text, note_id: source column names.
        patient_id: source column name, or None if each note counts as a separate patient.
        keep: columns passed through, in source order (labels are among them).
        labels: columns that utility is measured on.
        dropped: names of the source columns that are left out.
        order: all written columns in source order, for the writer.
        other_dropped: number of additional dropped columns that are not listed, because optional
            keys of JSON lines may be data, such as a name.
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
        """Whether there is a patient column; if not, each note is a separate patient and callers
        warn.
        """
        return self.patient_id is not None


class Corpus(Protocol):
    """A restartable stream of notes: iterating twice gives the same rows in the same order.

    Batches have the fields of `ROLE_FIELDS`, then `columns.keep` under their own names; a null text
    is null.
    """

    @property
    def columns(self) -> Columns:
        """Roles of the source's columns."""

    @property
    def suffix(self) -> str:
        """Format of the source: ".parquet", ".csv.gz", … or "" for a folder of .txt."""

    @property
    def skipped(self) -> Counter[str]:
        """Rows that the last pass left out, by reason; rows read = rows in batches + these."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, from the start, in source order."""


@dataclass(frozen=True)
class MemoryCorpus:
    """A corpus of batches in memory, or created by a function in each pass."""

    source: Callable[[], Iterator[pa.RecordBatch]] | Sequence[pa.RecordBatch] = field(repr=False)
    columns: Columns = Columns(text=TEXT, note_id=NOTE_ID, patient_id=PATIENT_ID)
    suffix: str = ".parquet"
    skipped: Counter[str] = field(default_factory=Counter)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, from the start."""
        return self.source() if callable(self.source) else iter(self.source)


class Note(NamedTuple):
    """One note of a corpus. Its repr shows no content."""

    note_id: str
    patient_id: str
    text: str

    def __repr__(self) -> str:
        return "Note()"


def rows(source: Corpus | Iterable[pa.RecordBatch]) -> Iterator[Note]:
    """Yield the notes of a corpus or of batches row by row, in order.

    A note with a null text is skipped; one without a patient counts as a separate patient.
    """
    return (note for note, _ in rows_with(source))


def rows_with(
    source: Corpus | Iterable[pa.RecordBatch], *columns: str
) -> Iterator[tuple[Note, tuple[Any, ...]]]:
    """Yield notes like `rows`, each with its values in additional columns. Raises KeyError for a
    missing column.
    """
    for batch in source if isinstance(source, Iterable) else source.batches():
        ids = batch.column(NOTE_ID).to_pylist()
        texts = batch.column(TEXT).to_pylist()
        patients = batch.column(PATIENT_ID).to_pylist() if PATIENT_ID in batch.schema.names else ids
        others = (
            zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
            if columns
            else [()] * len(ids)
        )
        for note_id, patient, text, values in zip(ids, patients, texts, others, strict=True):
            if text is not None:
                yield Note(note_id, note_id if patient is None else patient, text), values


class Rebatcher:
    """Regroup batches into batches of `rows` rows, or fewer if their text reaches `max_bytes`.

    A note longer than `max_bytes` becomes a batch by itself.
    """

    def __init__(self, rows: int = BATCH_ROWS, max_bytes: int = BATCH_BYTES) -> None:
        self._limit = rows
        self._max_bytes = max_bytes
        self._pieces: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch; yield the batches that are complete."""
        ends = np.cumsum(text_bytes(batch))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            fitting = (
                int(np.searchsorted(ends, before + self._max_bytes - self._bytes, side="right"))
                - start
            )
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
        """Yield the remaining rows, if any."""
        pieces = self._pieces
        self._pieces = []
        self._rows = 0
        self._bytes = 0
        if len(pieces) == 1:
            yield pieces[0]
        elif pieces:
            yield from pa.Table.from_batches(pieces).combine_chunks().to_batches()


def rebatch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of about `BATCH_ROWS` rows and at most about `BATCH_BYTES` of
    text.
    """
    rebatcher = Rebatcher()
    for batch in batches:
        yield from rebatcher.push(batch)
    yield from rebatcher.flush()


def text_bytes(batch: pa.RecordBatch) -> Ints:
    """Return the bytes of each row's text, shape (n_rows,); 0 for null."""
    lengths = pc.fill_null(pc.binary_length(batch.column(TEXT)), 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def with_texts(batch: pa.RecordBatch, texts: Sequence[str | None]) -> pa.RecordBatch:
    """Return the batch with new texts, one per row; rows with None are left out."""
    index = batch.schema.get_field_index(TEXT)
    column = pa.array(texts, type=batch.schema.field(index).type)
    return batch.set_column(index, batch.schema.field(index), column).filter(column.is_valid())


def visible_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with what is displayed of marked-up texts."""
    texts = batch.column(TEXT).to_pylist()
    visible = [text and visible_text(text) for text in texts]
    if visible == texts:
        return batch
    index = batch.schema.get_field_index(TEXT)
    field = batch.schema.field(index)
    return batch.set_column(index, field, pa.array(visible, type=field.type))


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
        return Accounting(
            self.read + other.read, self.written + other.written, self.skipped + other.skipped
        )


def corpus_of_texts(texts: Iterable[str]) -> MemoryCorpus:
    """Return a corpus of texts, each of a separate patient; ids are numbers."""
    return memory_corpus([(str(i), str(i), text) for i, text in enumerate(texts)])


def memory_corpus(notes: Sequence[tuple[str, str, str | None]]) -> MemoryCorpus:
    """Return a corpus of (note_id, patient_id, text) triples, for tests and small inputs."""
    columns = list(zip(*notes, strict=True)) or [(), (), ()]
    arrays = [pa.array(c, type=f.type) for c, f in zip(columns, ROLE_FIELDS, strict=True)]
    return MemoryCorpus((pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS)),))
