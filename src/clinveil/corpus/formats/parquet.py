"""Parquet: read page by page; written with zstd in row groups of about 2,000 notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core import (
    ClinveilError,
    InputError,
    Location,
    RemotePath,
    failure,
    is_failure_of_store,
)
from clinveil.corpus.corpus import BATCH_BYTES, BATCH_ROWS
from clinveil.corpus.file_format import FileFormat
from clinveil.corpus.streams import open_input

_BUFFER = 1 << 20


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file.

    Attributes:
        names: its columns. types: the types of the columns.

    Raises:
        InputError: not a Parquet file, a damaged one, or a duplicate column name.
    """

    path: Location
    names: tuple[str, ...] = field(init=False)
    types: Mapping[str, pa.DataType] = field(init=False, repr=False)
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        schema = self._open().schema_arrow
        names = schema.names
        if len(set(names)) < len(names):
            raise InputError("duplicate column name", where=self.path.name, hint="rename one")
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "types", dict(zip(names, schema.types, strict=True)))

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns, with their own types."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        with self._open() as file:
            for group in range(file.num_row_groups):
                yield from self._read_group(file, group, wanted)

    def _read_group(
        self, file: pq.ParquetFile, group: int, names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        facts = file.metadata.row_group(group)
        rows = max(
            1, min(BATCH_ROWS, BATCH_BYTES * facts.num_rows // max(1, facts.total_byte_size))
        )
        batches = file.iter_batches(
            batch_size=rows, row_groups=[group], columns=names, use_threads=False
        )
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise self._damaged(error) from None
            if batch is None:
                return
            yield batch.select(names)

    def _open(self) -> pq.ParquetFile:
        try:
            # With a buffer, pages are read one by one; without it, a complete row group is held in
            # memory.
            return pq.ParquetFile(open_input(self.path), buffer_size=_BUFFER, pre_buffer=False)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> ClinveilError:
        if isinstance(self.path, RemotePath):
            if is_failure_of_store(error):
                return failure(error, self.path.name)
            hint = "copy it again from its source"
            return InputError(
                "not a Parquet file, or a damaged one", where=self.path.name, hint=hint
            )
        empty = self.path.is_file() and self.path.stat().st_size == 0
        problem = "the file is empty" if empty else "not a Parquet file, or a damaged one"
        return InputError(problem, where=self.path.name, hint="copy it again from its source")


def _sink(path: Path, schema: pa.Schema, suffix: str) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd")  # one row group per batch


PARQUET = FileFormat((".parquet",), lambda path, _: ParquetSource(path), _sink)
