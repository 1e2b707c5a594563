"""Convert a source's columns to those of a corpus: check types, nulls and encoding, and remove all
metadata.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core import InputError
from clinveil.corpus.corpus import JSON_MARK, ROLE_FIELDS, Columns
from clinveil.corpus.streams import wrong_encoding


def to_roles(
    raw: pa.RecordBatch, columns: Columns, where: str, rows: int, per_row: int = 1
) -> pa.RecordBatch:
    """Return a batch with the fields of `ROLE_FIELDS`, then the kept columns, reduced to plain
    values.

    Args:
        raw: the source's columns.
        where: base name of the file.
        rows: number of preceding notes, for messages. per_row: number of notes of a row of the
            file.

    Raises:
        InputError: a text column that is not text; an id that is null, empty or neither text nor
            whole number; a kept column that cannot be converted to plain values; invalid UTF-8.
    """
    reader = _ColumnReader(where, rows, per_row)
    note_ids = reader.ids(raw.column(columns.note_id), columns.note_id)
    patient_id = columns.patient_id
    patients = reader.ids(raw.column(patient_id), patient_id) if patient_id else note_ids
    text = reader.text(raw.column(columns.text), columns.text)
    kept = [reader.kept(raw.column(name), name) for name in columns.keep]
    # The source's metadata may contain data.
    marks = [
        (raw.schema.field(name).metadata or {}).get(b"clinveil") == JSON_MARK[b"clinveil"]
        for name in columns.keep
    ]
    fields = [
        pa.field(name, column.type, metadata=JSON_MARK if marked else None)
        for name, column, marked in zip(columns.keep, kept, marks, strict=True)
    ]
    return pa.record_batch(
        [note_ids, patients, text, *kept], schema=pa.schema([*ROLE_FIELDS, *fields])
    )


def id_column(raw: pa.RecordBatch, name: str, where: str, rows: int = 0) -> pa.Array:
    """Return the ids of one column as strings. Raises InputError like `to_roles`."""
    return _ColumnReader(where, rows).ids(raw.column(name), name)


class _ColumnReader:
    def __init__(self, where: str, rows: int, per_row: int = 1) -> None:
        self._where = where
        self._rows = rows
        self._per_row = per_row

    def row_name(self, offset: int) -> str:
        return f"{self._where}, row {(self._rows + offset) // self._per_row + 1}"

    def text(self, column: pa.Array, name: str) -> pa.Array:
        column = _plain(column)
        if not is_text(column.type):
            problem = f"column {name!r} contains {_kind(column.type)}, not text"
            raise InputError(
                problem,
                where=self._where,
                hint="choose another column with --text, or store it as a string",
            )
        return self._valid(pc.cast(column, pa.large_string()))

    def ids(self, column: pa.Array, name: str) -> pa.Array:
        column = _plain(column)
        if pa.types.is_null(column.type):
            column = pc.cast(column, pa.string())
        if pa.types.is_floating(column.type):
            with suppress(pa.ArrowInvalid):  # not whole numbers; rejected below
                column = pc.cast(column, pa.int64())
        if not (is_text(column.type) or pa.types.is_integer(column.type)):
            problem = f"column {name!r} contains {_kind(column.type)}, not ids"
            hint = "ids must be text or whole numbers; choose another column with --id"
            raise InputError(problem, where=self._where, hint=hint)
        ids = self._valid(pc.cast(column, pa.string()))
        empty = pc.index(pc.fill_null(pc.equal(ids, ""), True), True).as_py()
        if empty >= 0:
            problem = f"column {name!r} is null or empty"
            hint = "every note needs an id, and a patient if there is a patient column"
            raise InputError(problem, where=self.row_name(empty), hint=hint)
        return ids

    def kept(self, column: pa.Array, name: str) -> pa.Array:
        try:
            # A dictionary may contain values of rows that are not included.
            column = plain_array(column)
        except TypeError:
            problem = f"kept column {name!r} has an unsupported type"
            raise InputError(
                problem, where=self._where, hint="store it as plain values, or do not keep it"
            ) from None
        if pa.types.is_large_string(column.type):
            column = pc.cast(column, pa.string())
        return self._valid(column)

    def _valid(self, column: pa.Array) -> pa.Array:
        """Return a column after checking its UTF-8, which Parquet readers do not check."""
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            bad = next(i for i in range(len(column)) if not _is_valid(column.take(pa.array([i]))))
            raise wrong_encoding(self.row_name(bad), "UTF-8") from None
        return column


def _is_valid(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _kind(kind: pa.DataType) -> str:
    """Return the type for messages; the keys of a nested type may be data and are not shown."""
    return (
        "nested values" if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) else str(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is text."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries and without metadata of list items.

    Raises TypeError for records, maps, nested lists, unions, extension types and other encodings.
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = kind.value_field
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        value = plain_type(item.type)
        if not pa.types.is_nested(value):
            return make(pa.field(item.name, value, nullable=item.nullable))
    if (
        pa.types.is_nested(kind)
        or pa.types.is_run_end_encoded(kind)
        or isinstance(kind, pa.BaseExtensionType)
    ):
        raise TypeError
    return kind


def plain_array(column: pa.Array) -> pa.Array:
    """Return the same values with the type of `plain_type`. Raises TypeError if they cannot be
    converted.
    """
    wanted = plain_type(column.type)
    try:
        column = pc.cast(_plain(column), wanted)
    except pa.ArrowException:
        raise TypeError from None
    if not column.type.equals(wanted, check_metadata=True):
        raise TypeError
    return column
