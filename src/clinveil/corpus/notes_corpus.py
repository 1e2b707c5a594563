"""`NotesCorpus`: the notes of one source as a restartable stream with column roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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
from clinveil.corpus.uniqueness import Hashes, hashes, repeated

ENTERED_IN_ERROR = "entered in error"
AS_GUESSED = NotesSettings()


@dataclass(frozen=True)
class NotesCorpus:
    """Notes in a file or folder; a pass needs 8 bytes of memory per note, to detect duplicate ids.

    Attributes:
        columns: the roles of the source's columns; without a patient column each note is a separate patient.
        suffix: ".parquet", ".csv.gz", … or "" for a folder of .txt.
        name: base name of the file or folder, for messages.
        guessed: the roles with a guessed column.
        preset: name of the known source, or None.
        skipped: rows that the last pass left out, by reason; filled during a pass, cleared when the next one starts.
    """

    columns: Columns
    suffix: str
    name: str
    guessed: tuple[str, ...] = ()
    preset: str | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    _source: Source = field(repr=False, kw_only=True)
    _error_flag: str | None = field(default=None, repr=False, kw_only=True)
    _max_bytes: int = field(default=ROW_BYTES, repr=False, kw_only=True)
    _may_be_empty: bool = field(default=False, repr=False, kw_only=True)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, from the start, in source order.

        Raises:
            InputError: invalid rows, with the row number; a duplicate id is detected at the end of a pass.
        """
        return rebatch(self._checked())

    def _checked(self) -> Iterator[pa.RecordBatch]:
        self.skipped.clear()
        columns, rows = self.columns, 0
        patient = (columns.patient_id,) if columns.patient_id else ()
        flag = (self._error_flag,) if self._error_flag else ()
        ids: list[Hashes] = []
        for raw in self._source.read((columns.note_id, *patient, *flag), (columns.text,), columns.keep):
            batch = to_roles(raw, columns, self.name, rows)
            longer = np.flatnonzero(text_bytes(batch) > self._max_bytes)
            if longer.size:
                what, where = f"the note has more than {self._max_bytes:,} bytes", f"row {rows + longer[0] + 1}"
                hint = "split it or raise --set max_note_bytes=BYTES"
                raise InputError(what, where=f"{self.name}, {where}", hint=hint)
            rows += raw.num_rows
            ids.append(hashes(batch.column(NOTE_ID).to_pylist()))
            if self._error_flag:
                batch, dropped = drop_errors(batch, raw.column(self._error_flag))
                self.skipped[ENTERED_IN_ERROR] += dropped
            yield batch
        if not rows and not self._may_be_empty:
            raise InputError("contains no notes", where=self.name, hint="check the file; it has only a header")
        if repeats := repeated(ids, self.ids):
            what, where = f"duplicate id, already used in row {repeats[0]}", f"{self.name}, row {repeats[1]}"
            raise InputError(what, where=where, hint="ids must be unique; choose another column with --id")

    def of_part(self, name: str, source: Source) -> NotesCorpus:
        """Return a corpus with the same columns over another part file, which may have no rows."""
        return replace(self, name=name, skipped=Counter(), _source=source, _may_be_empty=True)

    def ids(self) -> Iterator[list[str]]:
        """Yield the ids of all rows, including those that are left out, as one list per batch."""
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
    """Return a corpus over a source's rows, after assigning column roles.

    Args:
        settings, label, keep: as in `open_corpus`.
        name: its name in messages. suffix: the format for writing it.

    Raises:
        InputError: missing or ambiguous columns.
    """
    resolved = resolve(source.names, settings, name, label=label, keep=keep, optional_keys=source.optional_keys)
    return NotesCorpus(
        resolved.columns,
        suffix,
        name,
        resolved.guessed,
        resolved.preset.name if resolved.preset else None,
        _source=source,
        _error_flag=resolved.error_flag,
        _max_bytes=settings.max_note_bytes,
    )
