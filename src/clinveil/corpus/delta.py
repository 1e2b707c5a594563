"""Delta tables: the files of the current version are the parts; other files belong to earlier versions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core.errors import InputError, MissingExtra
from clinveil.core.remote import RemotePath
from clinveil.corpus.part_files import PartFile, decoded


def delta_files(table: Path) -> tuple[PartFile, ...]:
    """Return the part files of a table's current version, with its partition columns, sorted by path.

    Raises:
        MissingExtra: the library that determines the current files is not installed.
        InputError: an unreadable log, an empty table, deleted rows still in the files, or renamed columns.
    """
    opened = _opened(table)
    _refuse_more_than_files(opened, table.name)
    adds = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    if not adds:
        raise InputError("the table is empty", where=table.name, hint="its current version has no files")
    keys = list(opened.metadata().partition_columns)
    schema = pa.schema(opened.schema().to_arrow())
    own = {field.name: field.type for field in schema if field.name not in keys}
    return tuple(_parts(table, sorted(adds, key=lambda add: str(add["path"])), keys, own))


def _parts(
    table: Path, adds: list[dict[str, Any]], keys: list[str], own: Mapping[str, pa.DataType]
) -> Iterator[PartFile]:
    for number, add in enumerate(adds, start=1):
        below = decoded(add["path"])
        if "://" in below or below.startswith("/") or ".." in below.split("/"):
            hint = "copy the table, with all its files, to one folder"
            raise InputError("the log refers to files in another folder", where=table.name, hint=hint)
        path = table.child(below) if isinstance(table, RemotePath) else table / below
        values = {key: _text(add.get(f"partition.{key}")) for key in keys}
        yield PartFile(path, ".parquet", f"{table.name} (part {number} of {len(adds)})", values, own)


def _opened(table: Path) -> Any:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise MissingExtra("deltalake, which reads Delta tables,", "delta") from None
    try:
        where = table.shown if isinstance(table, RemotePath) else str(table)
        return DeltaTable(where, storage_options=_options())
    except (DeltaError, OSError, ValueError):  # their messages quote paths and the log
        hint = "check the table with Delta's own tools"
        raise InputError("the Delta log cannot be read", where=table.name, hint=hint) from None


def _options() -> dict[str, str]:
    """Return storage options; HTTP without TLS, for example to localhost, must be enabled explicitly."""
    address = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL", ""))
    return {"AWS_ALLOW_HTTP": "true"} if address.startswith("http://") else {}


def _refuse_more_than_files(opened: Any, where: str) -> None:
    """Raise InputError if the files contain deleted rows or have the old names of renamed columns."""
    features = opened.protocol().reader_features or []
    if "deletionVectors" in features and pa.table(opened.deletion_vectors()).num_rows:
        hint = "purge them first: REORG TABLE … APPLY (PURGE)"
        raise InputError("the table's files still contain deleted rows", where=where, hint=hint)
    if opened.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        hint = "write the table without column mapping"
        raise InputError("the table uses column mapping, which is not supported", where=where, hint=hint)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
