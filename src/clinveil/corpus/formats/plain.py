"""Kept columns with nothing but their values: no categories of other rows, metadata or extension types at any depth."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the same values without dictionaries, runs, extension types and metadata of fields, at any depth.

    List views become lists. Raises TypeError for unions, which no format writes.
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
    """The same values in the type that `plain_type` gives; rows outside a slice, and hidden by a null, stay so.

    Raises TypeError where the values cannot be brought into that type.
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
    """Without the wrappings that a cast does not take off."""
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
