"""Input and output formats of notes: one file of `formats/` each, selected by the file name's
suffix.

To add a format, write a file there and add its `FileFormat` to `FORMATS` of
`formats/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from clinveil.core import Location
from clinveil.corpus.streams import ROW_BYTES

PACKED = ("", ".gz", ".zst")
"""Compression suffixes of the formats that are written through `streams.create_bytes`."""


class NotesSource(Protocol):
    """A file or folder of notes with its columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names."""

    @property
    def optional_keys(self) -> frozenset[str]:
        """Columns that some rows lack, if the format has no header (JSON lines)."""

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns, from the start.

        If the format has no column types, `ids` are numbers or text, `texts` are text, and `kept`
        have any type.
        """


class Sink(Protocol):
    """A file or folder that rows are written to."""

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append rows."""

    def close(self) -> None:
        """Finish it."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading a file.

    Attributes:
        suffix: the suffix of its name, in lower case.
        encoding: of its text.
        row_bytes: the longest row that is accepted, in formats parsed as a stream.
        delimiter: between the fields of delimited files, or `auto`.
    """

    suffix: str
    encoding: str = "utf-8"
    row_bytes: int = ROW_BYTES
    delimiter: str = "auto"


@dataclass(frozen=True, slots=True)
class FileFormat:
    """One file format.

    Attributes:
        suffixes: ends of file names, in lower case; "" is a folder.
        source: opens a path. Raises InputError if it is empty or damaged.
        sink: creates a file for a schema and a suffix. Raises InputError for types that it cannot
            store.
        folder: whether it is a folder with one file per note.
        agree: gives each of the given columns one type in several sources; None for a format with a
            header.
    """

    suffixes: tuple[str, ...]
    source: Callable[[Location, ReadOptions], NotesSource]
    sink: Callable[[Path, pa.Schema, str], Sink]
    folder: bool = False
    agree: Callable[[Sequence[Any], Sequence[str]], None] | None = None
