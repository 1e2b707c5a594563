"""Delta tables: the files of a table's current version are its parts; the others of its folder are of earlier ones."""

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
    """The part files of a table's current version, with its partition columns, in the order of their paths.

    Raises:
        MissingExtra: without the library the folder is not read at all, for its files may be of earlier versions.
        InputError: a log that cannot be read, an empty table, or a table whose files alone do not say what is in it.
    """
    opened = _opened(table)
    _refuse_more_than_files(opened, table.name)
    adds = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    if not adds:
        raise InputError("the table holds no notes", where=table.name, hint="its current version has no file")
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
            raise InputError("its log names files of another folder", where=table.name, hint=hint)
        path = table.child(below) if isinstance(table, RemotePath) else table / below
        values = {key: _text(add.get(f"partition.{key}")) for key in keys}
        yield PartFile(path, ".parquet", f"{table.name} (part {number} of {len(adds)})", values, own)


def _opened(table: Path) -> Any:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise MissingExtra("deltalake, which knows which files of a Delta table are current,", "delta") from None
    try:
        where = table.shown if isinstance(table, RemotePath) else str(table)
        return DeltaTable(where, storage_options=_options())
    except (DeltaError, OSError, ValueError):  # their messages quote paths and the log
        raise InputError("its Delta log cannot be read", where=table.name, hint="look at it with Delta's own") from None


def _options() -> dict[str, str]:
    """An address that is not secure, such as one of this machine, must be allowed by name."""
    address = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL", ""))
    return {"AWS_ALLOW_HTTP": "true"} if address.startswith("http://") else {}


def _refuse_more_than_files(opened: Any, where: str) -> None:
    """Rows that are marked as deleted still stand in the files, and renamed columns have their old names there."""
    features = opened.protocol().reader_features or []
    if "deletionVectors" in features and pa.table(opened.deletion_vectors()).num_rows:
        hint = "rewrite it first: REORG TABLE … APPLY (PURGE)"
        raise InputError("rows that were deleted still stand in its files", where=where, hint=hint)
    if opened.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        raise InputError("its columns have other names in its files", where=where, hint="write it without mapping")


def _text(value: object) -> str | None:
    return None if value is None else str(value)
