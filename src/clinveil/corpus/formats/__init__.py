"""File formats of notes, one per file, and the choice between them by suffix."""

from __future__ import annotations

from pathlib import Path

from clinveil.core import InputError, Location, UsageError
from clinveil.corpus.file_format import FileFormat, NotesSource, ReadOptions
from clinveil.corpus.formats.delimited import DELIMITED
from clinveil.corpus.formats.folders import FOLDERS
from clinveil.corpus.formats.jsonl import JSONL
from clinveil.corpus.formats.parquet import PARQUET
from clinveil.corpus.streams import ROW_BYTES

FORMATS = (PARQUET, DELIMITED, JSONL, FOLDERS)
OWN = "notes.parquet"  # in a folder of synthetic notes that `demo` wrote


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of all file formats."""
    return tuple(suffix for file_format in FORMATS for suffix in file_format.suffixes if suffix)


def folder_suffixes() -> tuple[str, ...]:
    """Return the suffixes of formats with one file per note, except .txt."""
    return tuple(suffix for kind in FORMATS if kind.folder for suffix in kind.suffixes if suffix)


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
    for file_format in FORMATS:
        if suffix in file_format.suffixes:
            return file_format
    raise UsageError(f"unknown file type {suffix!r}", hint="use one of " + ", ".join(suffixes()))
