"""Input and output formats of notes: one file of `formats/` each, selected by the file name's
suffix.

To add a format, register a `FileFormat` in a new file there or in an entry point of the group
`clinveil.file_formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from clinveil.core import InputError, Location, Registry, UsageError
from clinveil.corpus.streams import ROW_BYTES

OWN = "notes.parquet"  # in a folder of synthetic notes that `demo` wrote
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


formats: Registry[FileFormat] = Registry(
    "file format", "clinveil.corpus.formats", first=("parquet", "delimited", "jsonl")
)


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all file formats."""
    return tuple(suffix for _, file_format in formats for suffix in file_format.suffixes if suffix)


def folder_suffixes() -> tuple[str, ...]:
    """Return the suffixes of formats with one file per note, except .txt."""
    return tuple(suffix for _, kind in formats if kind.folder for suffix in kind.suffixes if suffix)


def suffix_of(path: Location) -> str:
    """Return the supported suffix of a file name, in lower case; "" for any other name, which means
    a folder.
    """
    name = path.name.lower()
    return next((s for s in sorted(suffixes(), key=len, reverse=True) if name.endswith(s)), "")


def open_source(
    path: Location, encoding: str, row_bytes: int = ROW_BYTES, delimiter: str = "auto"
) -> tuple[NotesSource, str]:
    """Open a path; return its source and suffix. A folder contains .txt or .xml files, or our own
    `notes.parquet`.

    Raises InputError if it does not exist, is empty or damaged, or has a row of more than
    `row_bytes` (not checked for Parquet).
    """
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, hint="check the path")
    if isinstance(path, Path) and (path / OWN).is_file() and not any(path.rglob("*.txt")):
        path = path / OWN
    suffix = suffix_of(path)
    if isinstance(path, Path) and path.is_dir():
        suffix = _suffix_of_folder(path)
    if not suffix and not path.is_dir():
        hint = "use one of " + ", ".join(suffixes()) + ", or a folder"
        raise InputError("unknown file type", where=path.name, hint=hint)
    return format_of(suffix).source(
        path, ReadOptions(suffix, encoding, row_bytes, delimiter)
    ), suffix


def _suffix_of_folder(folder: Path) -> str:
    """Return the suffix of the notes in a folder; .txt files ("") take precedence, also in an empty
    folder.
    """
    if any(item.suffix.lower() == ".txt" for item in folder.rglob("*")):
        return ""
    return next((kind for kind in folder_suffixes() if any(folder.rglob(f"*{kind}"))), "")


def format_of(suffix: str) -> FileFormat:
    """Return the format of a suffix ("" for a folder of .txt). Raises UsageError for an unknown
    suffix.
    """
    for _, file_format in formats:
        if suffix in file_format.suffixes:
            return file_format
    raise UsageError(f"unknown file type {suffix!r}", hint="use one of " + ", ".join(suffixes()))
