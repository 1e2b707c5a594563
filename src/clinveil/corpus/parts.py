"""Find the part files of a folder, a pattern or a Delta table, and the columns encoded in their
folder names.

Folders named `key=value` (Hive partitioning, as written by Spark and Arrow) add a column to their
rows. The parts of a Delta table are the files of its current version; its other files belong to
earlier versions.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core import (
    InputError,
    InputWarning,
    Location,
    MissingExtra,
    RemotePath,
    below,
    files_of,
    is_pattern,
    root_of,
)
from clinveil.corpus.formats import OWN, folder_suffixes, suffix_of, suffixes

_NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
_CHECKSUM = ".crc"
DELTA_LOG = "_delta_log"


@dataclass(frozen=True)
class PartFile:
    """One file of several.

    Attributes:
        path: its location. suffix: its format.
        name: its name in messages, without folders, because their names may be data.
        keys: column -> value from the folder names, the same for all rows.
        fills: columns that may be missing, with their types; they are null then (Delta tables gain
            columns over time).
    """

    path: Location
    suffix: str
    name: str
    keys: Mapping[str, str | None]
    fills: Mapping[str, pa.DataType] = field(default_factory=dict)


def part_files(path: Location) -> tuple[PartFile, ...]:
    """Return the part files of a folder or a pattern, sorted by path; empty for anything else.

    A folder with one file per note (.txt, .xml) has none, and neither has a folder with our own
    `notes.parquet`.

    Raises:
        InputError: no file matches the pattern, files of several formats, folder names with
            different keys or not in UTF-8, a link that leaves the folder.

        Warns with InputWarning about files of other types, which are skipped.
    """
    pattern = is_pattern(path)
    if not pattern and not path.is_dir():
        return ()
    if not pattern and not isinstance(path, RemotePath):
        kinds = (".txt", *folder_suffixes())
        if (path / OWN).is_file() or any(
            item.name.lower().endswith(kinds) for item in path.rglob("*")
        ):
            return ()
    root = root_of(path) if pattern else path
    files = [file for file in files_of(path) if not file.name.lower().endswith(_CHECKSUM)]
    known = [file for file in files if suffix_of(file)]
    if (pattern or isinstance(path, RemotePath)) and not known:
        empty = "no file matches the pattern" if pattern else "the folder is empty"
        hint = f"use a quoted pattern of {', '.join(suffixes())} files"
        raise InputError(
            "no file of a supported type" if files else empty, where=path.name, hint=hint
        )
    if known and (others := len(files) - len(known)):
        count = f"{others} files" if others > 1 else "1 file"
        warnings.warn(f"{path.name}: skipped {count} of other types", InputWarning, stacklevel=3)
    _refuse_delta(known, root, path.name)
    return tuple(_parts(known, root, path.name))


def is_delta(folder: Location) -> bool:
    """Return whether a local or remote folder is a Delta table."""
    if isinstance(folder, RemotePath):
        return not folder.pattern and folder.is_dir() and folder.child(DELTA_LOG).is_dir()
    return (folder / DELTA_LOG).is_dir()


def _refuse_delta(files: Sequence[Location], root: Location, where: str) -> None:
    """Raise InputError for files inside a Delta table: only its log tells which ones are
    current.
    """
    inside = {below(file, root).rpartition("/")[0] for file in files}
    # A table's root is above its `key=value` folders.
    plain = {
        "/".join(takewhile(lambda name: "=" not in name, folder.split("/"))) for folder in inside
    } - {""}
    folders = [
        root.child(folder) if isinstance(root, RemotePath) else root / folder for folder in plain
    ]
    above = root.above() if isinstance(root, RemotePath) else list(root.absolute().parents)
    if any(map(is_delta, [*folders, root, *above])):
        raise InputError(
            "the files belong to a Delta table", where=where, hint="pass the table's folder"
        )


def _parts(files: Sequence[Location], root: Location, where: str) -> Iterator[PartFile]:
    kinds = sorted({suffix_of(file) for file in files})
    if len(kinds) > 1:
        hint = "use a pattern that matches one format"
        raise InputError(f"files of several formats: {', '.join(kinds)}", where=where, hint=hint)
    times = Counter(file.name for file in files)
    first: list[str] | None = None
    for number, file in enumerate(files, start=1):
        if isinstance(file, Path) and isinstance(root, Path) and _leaves(file, root):
            hint = "copy the notes or remove the link"
            raise InputError("a link points outside the folder", where=where, hint=hint)
        name = (
            file.name if times[file.name] == 1 else f"{file.name} (part {number} of {len(files)})"
        )
        keys = _keys(below(file, root).split("/")[:-1], name)
        first = list(keys) if first is None else first
        if list(keys) != first:
            problem = "its folder names have other keys than those of the first part"
            raise InputError(
                problem, where=name, hint="use a pattern with the same folder levels for all parts"
            )
        yield PartFile(file, kinds[0], name, keys)


def _leaves(file: Path, root: Path) -> bool:
    """Return whether a file is a link that points outside the folder."""
    return file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(
        os.path.realpath(root)
    )


def _keys(folders: Sequence[str], where: str) -> dict[str, str | None]:
    pairs = [(key, value) for key, sign, value in (name.partition("=") for name in folders) if sign]
    try:
        keys = {decoded(key): None if value == _NULL else decoded(value) for key, value in pairs}
    except UnicodeError:
        raise InputError(
            "the folder name is not valid UTF-8", where=where, hint="rename it"
        ) from None
    if len(keys) < len(pairs):
        raise InputError(
            "two folders of its path have the same key", where=where, hint="rename one"
        )
    return keys


def decoded(escaped: str) -> str:
    """Return a name with `%20` and similar escapes decoded. Raises UnicodeError."""
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), escaped.encode()).decode()


def delta_files(table: Location) -> tuple[PartFile, ...]:
    """Return the part files of a table's current version, with its partition columns, sorted by
    path.

    Raises:
        MissingExtra: the library that determines the current files is not installed.
        InputError: an unreadable log, an empty table, deleted rows still in the files, or renamed
            columns.
    """
    opened = _delta_table(table)
    if (
        "deletionVectors" in (opened.protocol().reader_features or [])
        and pa.table(opened.deletion_vectors()).num_rows
    ):
        hint = "purge them first: REORG TABLE … APPLY (PURGE)"
        raise InputError(
            "the table's files still contain deleted rows", where=table.name, hint=hint
        )
    if opened.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        hint = "write the table without column mapping"
        raise InputError(
            "the table uses column mapping, which is not supported", where=table.name, hint=hint
        )
    adds = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    if not adds:
        raise InputError(
            "the table is empty", where=table.name, hint="its current version has no files"
        )
    keys = list(opened.metadata().partition_columns)
    schema = pa.schema(opened.schema().to_arrow())
    types = {field.name: field.type for field in schema if field.name not in keys}
    parts = []
    for number, add in enumerate(sorted(adds, key=lambda add: str(add["path"])), start=1):
        below = decoded(add["path"])
        if "://" in below or below.startswith("/") or ".." in below.split("/"):
            hint = "copy the table, with all its files, to one folder"
            raise InputError(
                "the log refers to files in another folder", where=table.name, hint=hint
            )
        path = table.child(below) if isinstance(table, RemotePath) else table / below
        values = {key: add.get(f"partition.{key}") for key in keys}
        values = {key: None if value is None else str(value) for key, value in values.items()}
        parts.append(
            PartFile(
                path, ".parquet", f"{table.name} (part {number} of {len(adds)})", values, types
            )
        )
    return tuple(parts)


def _delta_table(table: Location) -> Any:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise MissingExtra("deltalake, which reads Delta tables,", "delta") from None
    try:
        where = table.shown if isinstance(table, RemotePath) else str(table)
        address = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL", ""))
        # HTTP without TLS, for example to localhost, must be enabled explicitly.
        options = {"AWS_ALLOW_HTTP": "true"} if address.startswith("http://") else {}
        return DeltaTable(where, storage_options=options)
    except (DeltaError, OSError, ValueError):  # their messages quote paths and the log
        hint = "check the table with Delta's own tools"
        raise InputError("the Delta log cannot be read", where=table.name, hint=hint) from None
