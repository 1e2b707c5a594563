"""`Corpus`, a restartable stream of Arrow record batches, and the roles of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
