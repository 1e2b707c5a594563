"""Write notes with the source's column names, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, ROLE_FIELDS, TEXT, Columns, Rebatcher
from clinveil.corpus.file_format import Sink
from clinveil.corpus.formats import format_of, suffix_of


@dataclass
class Writer:
    """Write the batches of a corpus as a file or folder with the source's layout; use it in a
    `with` statement.

    It writes directly to its path; use `core.atomic` for atomic output.

    Attributes:
        columns: the roles of the source's columns; names and order are restored from it.
        suffix: the format, ".parquet", ".csv.gz", … or "" for a folder of .txt.
        rows: number of rows so far.

        Raises:
            InputError: content that the format does not support (lists in CSV, kept columns in a
                folder of .txt).
    """

    path: Path
    columns: Columns
    suffix: str
    rows: int = 0
    _sink: Sink | None = field(default=None, repr=False)
    _rebatcher: Rebatcher = field(default_factory=Rebatcher, repr=False)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows with the fields of `ROLE_FIELDS` and the kept columns."""
        self.rows += batch.num_rows
        for full in self._rebatcher.push(batch):
            self._put(full)

    def _put(self, batch: pa.RecordBatch) -> None:
        named = source_names(self.columns, self.suffix)
        schema = pa.schema(
            [batch.schema.field(role).with_name(name) for name, role in named.items()]
        )
        if self._sink is None:
            self._sink = format_of(self.suffix).sink(self.path, schema, self.suffix)
        self._sink.write_batch(
            pa.record_batch([batch.column(role) for role in named.values()], schema=schema)
        )

    def close(self) -> None:
        """Write the remaining rows and finish the file; a file without rows still gets its
        header.
        """
        for full in self._rebatcher.flush():
            self._put(full)
        if self._sink is None:
            kept = [pa.field(name, pa.string()) for name in self.columns.keep]
            self._put(pa.RecordBatch.from_pylist([], schema=pa.schema([*ROLE_FIELDS, *kept])))
        assert self._sink is not None
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif self._sink is not None:
            self._sink.close()


def source_names(columns: Columns, suffix: str) -> dict[str, str]:
    """Return the written columns in order: source name -> name in a batch."""
    roles = {columns.note_id: NOTE_ID, columns.text: TEXT}
    if columns.patient_id is not None:
        roles[columns.patient_id] = PATIENT_ID
    elif format_of(suffix).folder and not columns.keep:
        return roles
    order = columns.order or (*roles, *columns.keep)
    return {name: roles.get(name, name) for name in order}


def output_in(part: Path, out: Path, source_format: str) -> tuple[Path, str]:
    """Return the path and format of notes inside the temporary OUT: a single file if OUT has a
    known suffix.

    Otherwise OUT is a folder: with one file per note if `source_format` is such a folder, else with
    one file.
    """
    if suffix_of(out) or format_of(source_format).folder:
        return part, suffix_of(out) or source_format
    part.mkdir(mode=0o700)
    return part / f"notes{source_format}", source_format


def write_corpus(
    batches: Iterable[pa.RecordBatch], path: Path, columns: Columns, suffix: str
) -> int:
    """Write all batches to a path; return the number of rows. Raises like `Writer`."""
    with Writer(path, columns, suffix) as writer:
        for batch in batches:
            writer.write(batch)
    return writer.rows
