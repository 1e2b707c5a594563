"""Convert a source's columns to those of a corpus: check types, nulls and encoding, and remove all metadata."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import JSON_MARK, ROLE_FIELDS, Columns
from clinveil.corpus.streams import wrong_encoding


def to_roles(raw: pa.RecordBatch, columns: Columns, where: str, rows: int) -> pa.RecordBatch:
    """Return a batch with the fields of `ROLE_FIELDS`, then the kept columns, reduced to plain values.

    Args:
        raw: the source's columns.
        where: base name of the file.
        rows: number of preceding rows, for messages.

    Raises:
        InputError: a text column that is not text; an id that is null, empty or neither text nor whole number; a kept
            column that cannot be converted to plain values; invalid UTF-8.
    """
    note_ids = id_column(raw, columns.note_id, where, rows)
    patients = id_column(raw, columns.patient_id, where, rows) if columns.patient_id else note_ids
    place = _Place(where, rows)
    text = place.text(raw.column(columns.text), columns.text)
    kept = [place.kept(raw.column(name), name) for name in columns.keep]
    fields = [_kept_field(raw.schema.field(a), b.type) for a, b in zip(columns.keep, kept, strict=True)]
    return pa.record_batch([note_ids, patients, text, *kept], schema=pa.schema([*ROLE_FIELDS, *fields]))


def id_column(raw: pa.RecordBatch, name: str, where: str, rows: int = 0) -> pa.Array:
    """Return the ids of one column as strings. Raises InputError like `to_roles`."""
    return _Place(where, rows).ids(raw.column(name), name)


class _Place:
    def __init__(self, where: str, rows: int) -> None:
        self._where, self._rows = where, rows

    def at(self, offset: int) -> str:
        return f"{self._where}, row {self._rows + offset + 1}"

    def text(self, column: pa.Array, name: str) -> pa.Array:
        column = _plain(column)
        if not _is_text(column.type):
            what = f"column {name!r} contains {_kind(column.type)}, not text"
            raise InputError(what, where=self._where, hint="choose another column with --text, or store it as a string")
        return self._valid(pc.cast(column, pa.large_string()))

    def ids(self, column: pa.Array, name: str) -> pa.Array:
        column = _whole_numbers(_plain(column))
        if not (_is_text(column.type) or pa.types.is_integer(column.type)):
            what = f"column {name!r} contains {_kind(column.type)}, not ids"
            hint = "ids must be text or whole numbers; choose another column with --id"
            raise InputError(what, where=self._where, hint=hint)
        ids = self._valid(pc.cast(column, pa.string()))
        empty = pc.index(pc.fill_null(pc.equal(ids, ""), True), True).as_py()
        if empty >= 0:
            what = f"column {name!r} is null or empty"
            hint = "every note needs an id, and a patient if there is a patient column"
            raise InputError(what, where=self.at(empty), hint=hint)
        return ids

    def kept(self, column: pa.Array, name: str) -> pa.Array:
        try:
            column = plain_array(column)  # a dictionary may contain values of rows that are not included
        except TypeError:
            what = f"kept column {name!r} has an unsupported type"
            raise InputError(what, where=self._where, hint="store it as plain values, or do not keep it") from None
        if pa.types.is_large_string(column.type):
            column = pc.cast(column, pa.string())
        return self._valid(column)

    def _valid(self, column: pa.Array) -> pa.Array:
        """Return a column after checking its UTF-8, which Parquet readers do not check."""
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            bad = next(i for i in range(len(column)) if not _is_valid(column.take(pa.array([i]))))
            raise wrong_encoding(self.at(bad), "UTF-8") from None
        return column


def _is_valid(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _kept_field(source: pa.Field, kind: pa.DataType) -> pa.Field:
    """Return the field without the source's metadata, which may contain data."""
    marked = (source.metadata or {}).get(b"clinveil") == JSON_MARK[b"clinveil"]
    return pa.field(source.name, kind, metadata=JSON_MARK if marked else None)


def _kind(kind: pa.DataType) -> str:
    """Return the type for messages; the keys of a nested type may be data and are not shown."""
    return "nested values" if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) else str(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _whole_numbers(column: pa.Array) -> pa.Array:
    """Return floats with whole values as integers; other floats stay unchanged and are rejected later."""
    if pa.types.is_null(column.type):
        return pc.cast(column, pa.string())
    if not pa.types.is_floating(column.type):
        return column
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, run-end encoding, extension types and field metadata, at any depth.

    List views become lists. Raises TypeError for unions, which no output format supports.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if not pa.types.is_nested(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), keys_sorted=kind.keys_sorted)
    return _plain_list(kind)


def plain_array(column: pa.Array) -> pa.Array:
    """Return the same values with the type of `plain_type`; values outside a slice or under a null stay hidden.

    Raises TypeError if the values cannot be converted.
    """
    wanted = plain_type(column.type)
    try:
        column = _outermost(column)
        if not column.type.equals(wanted, check_metadata=True):
            column = pc.cast(column, wanted)
    except pa.ArrowException:
        raise TypeError from None
    if not column.type.equals(wanted, check_metadata=True):
        raise TypeError
    return column


def _outermost(column: pa.Array) -> pa.Array:
    """Remove the encodings that a cast does not remove."""
    while True:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        elif pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        elif pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        else:
            return column


def _plain_field(source: pa.Field) -> pa.Field:
    return pa.field(source.name, plain_type(source.type), nullable=source.nullable)


def _plain_list(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(_plain_field(kind.value_field))
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    raise TypeError
