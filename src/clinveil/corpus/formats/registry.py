"""The formats that notes come in and go out in, by the suffix of the file name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from clinveil.core.errors import InputError, UsageError
from clinveil.corpus.formats.delimited import DelimitedSink, DelimitedSource
from clinveil.corpus.formats.jsonl import JsonlSink, JsonlSource
from clinveil.corpus.formats.parquet import ParquetSink, ParquetSource
from clinveil.corpus.formats.streams import ROW_BYTES
from clinveil.corpus.formats.text_folder import TextFolderSink, TextFolderSource

OWN = "notes.parquet"  # in a folder that we made (generate, synthesize)
_PACKED = ("", ".gz", ".zst")
SUFFIXES = (
    ".parquet",
    *(kind + packed for kind in (".csv", ".tsv", ".jsonl", ".ndjson") for packed in _PACKED),
)


class Source(Protocol):
    """A file or folder of notes with its own columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""
        ...

    @property
    def unsteady(self) -> frozenset[str]:
        """Those of its columns that not every row has, where the format has no header (JSON lines)."""
        ...

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named, from the start.

        Where the format has no types by column, `ids` are numbers or text, `texts` text only, and `kept` anything.
        """
        ...


class Sink(Protocol):
    """A file or folder that rows are written to."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ...

    def close(self) -> None:
        """Finish it."""
        ...


def suffix_of(path: Path) -> str:
    """The known suffix of a file name, in lower case; "" for any other name, which means a folder."""
    name = path.name.lower()
    return next((s for s in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(s)), "")


def open_source(path: Path, encoding: str, row_bytes: int = ROW_BYTES) -> tuple[Source, str]:
    """The source at a path and its suffix; of a folder without .txt that we made, its `notes.parquet`.

    Raises InputError if there is none, if it is empty or damaged, or has a row of more than `row_bytes` (not Parquet,
    whose rows do not wait for an end).
    """
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, remedy="check the path")
    if path.is_dir() and (path / OWN).is_file() and not any(path.rglob("*.txt")):
        return ParquetSource(path / OWN), ".parquet"
    if path.is_dir():
        return TextFolderSource(path, encoding, row_bytes), ""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return ParquetSource(path), suffix
    if suffix.startswith((".jsonl", ".ndjson")):
        return JsonlSource(path, encoding, row_bytes), suffix
    if suffix.startswith((".csv", ".tsv")):
        return DelimitedSource(path, "\t" if suffix.startswith(".tsv") else ",", encoding, row_bytes), suffix
    raise InputError("unknown kind of file", where=path.name, remedy="one of " + ", ".join(SUFFIXES) + ", or a folder")


def open_sink(path: Path, schema: pa.Schema, suffix: str) -> Sink:
    """A new sink of the format of `suffix` ("" for a folder of .txt). Raises UsageError for an unknown suffix."""
    if suffix == "":
        return TextFolderSink(path, schema, suffix)
    if suffix == ".parquet":
        return ParquetSink(path, schema, suffix)
    if suffix in SUFFIXES:
        kind = JsonlSink if suffix.startswith((".jsonl", ".ndjson")) else DelimitedSink
        return kind(path, schema, suffix)
    raise UsageError(f"unknown kind of file {suffix!r}", remedy="one of " + ", ".join(SUFFIXES))
