"""The formats that notes come in and go out in: one file of `formats/` each, found by the end of a file's name.

To add one: a file there, or an entry point in the group `clinveil.file_formats`, that registers a `FileFormat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from clinveil.core.errors import InputError, UsageError
from clinveil.core.registry import Registry
from clinveil.corpus.streams import ROW_BYTES

OWN = "notes.parquet"  # in a folder that we made (generate)
PACKED = ("", ".gz", ".zst")
"""What may stand after the suffix of a format that is written through `streams.create_bytes`."""


class Source(Protocol):
    """A file or folder of notes with its own columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""
        ...

    @property
    def optional_keys(self) -> frozenset[str]:
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


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read.

    Attributes:
        suffix: the end of its name, in lower case.
        encoding: of its text.
        row_bytes: a longer row is refused, where rows are looked for in a stream.
    """

    suffix: str
    encoding: str = "utf-8"
    row_bytes: int = ROW_BYTES


@dataclass(frozen=True, slots=True)
class FileFormat:
    """One kind of file.

    Attributes:
        suffixes: ends of file names, in lower case; "" is a folder.
        source: opens what lies at a path. Raises InputError if it is empty or damaged.
        sink: begins a new file at a path, for a schema and a suffix. Raises InputError for what it cannot carry.
        folder: whether the sink makes a folder, of a file a note.
        agree: gives each of the columns named one type in all of several sources, where the format has no header.
    """

    suffixes: tuple[str, ...]
    source: Callable[[Path, Reading], Source]
    sink: Callable[[Path, pa.Schema, str], Sink]
    folder: bool = False
    agree: Callable[[Sequence[Any], Sequence[str]], None] | None = None


formats: Registry[FileFormat] = Registry(
    "file format", "clinveil.corpus.formats", first=("parquet", "delimited", "jsonl")
)


def suffixes() -> tuple[str, ...]:
    """The suffixes of all formats of files."""
    return tuple(suffix for _, found in formats for suffix in found.suffixes if suffix)


def folder_suffixes() -> tuple[str, ...]:
    """The suffixes of the formats that are a folder of a file a note, but that of .txt."""
    return tuple(suffix for _, found in formats if found.folder for suffix in found.suffixes if suffix)


def suffix_of(path: Path) -> str:
    """The known suffix of a file name, in lower case; "" for any other name, which means a folder."""
    name = path.name.lower()
    return next((s for s in sorted(suffixes(), key=len, reverse=True) if name.endswith(s)), "")


def open_source(path: Path, encoding: str, row_bytes: int = ROW_BYTES) -> tuple[Source, str]:
    """The source at a path and its suffix; of a folder without .txt its .xml, or if we made it its `notes.parquet`.

    Raises InputError if there is none, if it is empty or damaged, or has a row of more than `row_bytes` (not Parquet,
    whose rows do not wait for an end).
    """
    if not path.exists():
        raise InputError("no such file or folder", where=path.name, hint="check the path")
    if path.is_dir() and (path / OWN).is_file() and not any(path.rglob("*.txt")):
        path = path / OWN
    suffix = _suffix_of_folder(path) if path.is_dir() else suffix_of(path)
    if not suffix and not path.is_dir():
        hint = "one of " + ", ".join(suffixes()) + ", or a folder"
        raise InputError("unknown kind of file", where=path.name, hint=hint)
    return _format_of(suffix).source(path, Reading(suffix, encoding, row_bytes)), suffix


def _suffix_of_folder(path: Path) -> str:
    """What a folder holds: "" for .txt, which win, or for nothing."""
    txt = any(item.suffix.lower() == ".txt" for item in path.rglob("*"))
    return "" if txt else next((kind for kind in folder_suffixes() if any(path.rglob(f"*{kind}"))), "")


def makes_folder(suffix: str) -> bool:
    """Whether notes of this suffix are written as a folder, of a file a note."""
    return _format_of(suffix).folder


def has_header(suffix: str) -> bool:
    """Whether a format's files begin with their columns, so that two files can be seen to have the same."""
    return _format_of(suffix).agree is None


def agree_on_types(suffix: str, sources: Sequence[Source], kept: Sequence[str]) -> None:
    """Give each kept column one type in all sources, where the format has no types by column."""
    agree = _format_of(suffix).agree
    if agree is not None and kept:
        agree(sources, kept)


def open_sink(path: Path, schema: pa.Schema, suffix: str) -> Sink:
    """A new sink of the format of `suffix` ("" for a folder of .txt). Raises UsageError for an unknown suffix."""
    return _format_of(suffix).sink(path, schema, suffix)


def _format_of(suffix: str) -> FileFormat:
    for _, found in formats:
        if suffix in found.suffixes:
            return found
    raise UsageError(f"unknown kind of file {suffix!r}", hint="one of " + ", ".join(suffixes()))
