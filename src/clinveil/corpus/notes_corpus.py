"""`NotesCorpus`: the notes of one source, with the roles of its columns, as a restartable stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.columns import drop_errors, resolve
from clinveil.corpus.corpus import NOTE_ID, Columns, rebatch, text_bytes
from clinveil.corpus.file_format import Source
from clinveil.corpus.roles import id_column, to_roles
from clinveil.corpus.streams import ROW_BYTES
from clinveil.corpus.uniqueness import HashLog, hashes, refuse_repeats

ENTERED_IN_ERROR = "entered in error"
AS_GUESSED = NotesSettings()


@dataclass(frozen=True)
class NotesCorpus:
    """Notes in a file or folder. Memory does not grow with their number.

    Attributes:
        columns: the roles of the source's columns; without a patient column each note is its own patient.
        suffix: ".parquet", ".csv.gz", … or "" for a folder of .txt.
        name: base name of the file or folder, for messages.
        guessed: the roles whose column was guessed.
        preset: name of the known source, or None.
        skipped: rows that the last pass left out, by reason; filled while it runs, emptied when the next one starts.
    """

    columns: Columns
    suffix: str
    name: str
    guessed: tuple[str, ...] = ()
    preset: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    _source: Source = field(repr=False, kw_only=True)
    _error_flag: str | None = field(default=None, repr=False, kw_only=True)
    _most: int = field(default=ROW_BYTES, repr=False, kw_only=True)
    _may_be_empty: bool = field(default=False, repr=False, kw_only=True)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, from the start, in source order.

        Raises:
            InputError: whatever does not fit, with the row; an id that stands twice shows at the end of a pass.
        """
        return rebatch(self._checked())

    def _checked(self) -> Iterator[pa.RecordBatch]:
        self.skipped.clear()
        columns, rows = self.columns, 0
        patient = (columns.patient_id,) if columns.patient_id else ()
        flag = (self._error_flag,) if self._error_flag else ()
        with closing(HashLog()) as log:
            for raw in self._source.read((columns.note_id, *patient, *flag), (columns.text,), columns.keep):
                batch = to_roles(raw, columns, self.name, rows)
                self._refuse_long(batch, rows)
                rows += raw.num_rows
                log.add(hashes(batch.column(NOTE_ID).to_pylist()))
                yield self._without_errors(batch, raw)
            if not rows and not self._may_be_empty:
                raise InputError("it holds no notes", where=self.name, hint="only a header stands in it")
            refuse_repeats(log, self.ids, self.name)

    def _refuse_long(self, batch: pa.RecordBatch, rows: int) -> None:
        found = np.flatnonzero(text_bytes(batch) > self._most)
        if found.size:
            where, hint = f"{self.name}, row {rows + found[0] + 1}", "split it, or a larger --max-note-bytes"
            raise InputError(f"a note of more than {self._most:,} bytes", where=where, hint=hint)

    def _without_errors(self, batch: pa.RecordBatch, raw: pa.RecordBatch) -> pa.RecordBatch:
        if self._error_flag:
            batch, dropped = drop_errors(batch, raw.column(self._error_flag))
            self.skipped[ENTERED_IN_ERROR] += dropped
        return batch

    def of_part(self, name: str, source: Source) -> NotesCorpus:
        """The same columns of another source, a part of several, which may have no rows."""
        return replace(self, name=name, skipped=Counter(), _source=source, _may_be_empty=True)

    def ids(self) -> Iterator[list[str]]:
        """The ids of all rows, also of those that are left out, a list a batch."""
        name = self.columns.note_id
        for raw in self._source.read((name,)):
            yield id_column(raw, name, self.name).to_pylist()


def corpus_of(
    source: Source,
    settings: NotesSettings = AS_GUESSED,
    *,
    label: tuple[str, ...] = (),
    keep: tuple[str, ...] = (),
    name: str,
    suffix: str,
) -> NotesCorpus:
    """The corpus of a source of rows, a file's or a table's: its columns get their roles.

    Args:
        settings, label, keep: as in `open_corpus`.
        name: what messages call it. suffix: the format that it is written in.

    Raises:
        InputError: columns that do not fit.
    """
    found = resolve(source.names, settings, name, label=label, keep=keep, optional_keys=source.optional_keys)
    return NotesCorpus(
        found.columns,
        suffix,
        name,
        found.guessed,
        found.preset.name if found.preset else None,
        _source=source,
        _error_flag=found.error_flag,
        _most=settings.max_note_bytes,
    )
