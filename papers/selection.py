"""Rows of a source by the values of a column: what the two preparations of data sets share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from clinveil import InputError, UsageError

UNWANTED = "not of the notes asked for"
_WHOLE = re.compile(r"([0-9]+)\.0+")  # a whole number that a table library wrote as a float


def selection(only: Sequence[str]) -> dict[str, str]:
    """Parse `COLUMN=VALUE` items; blanks around a value are ignored. Raises UsageError for any
    other form.
    """
    wanted = {name: value.strip() for name, _, value in (item.partition("=") for item in only)}
    if len(wanted) < len(only) or not all(wanted) or not all(wanted.values()):
        hint = "use for example --only CATEGORY=Report"
        raise UsageError("--only must be COLUMN=VALUE, once per column", hint=hint)
    return wanted


def selected(batch: pa.RecordBatch, wanted: Mapping[str, str]) -> list[bool]:
    """Return for each row whether all columns have the wanted values. Raises InputError like
    `as_text`.
    """
    rows = [True] * batch.num_rows
    for name, value in wanted.items():
        cells = as_text(batch.column(name))
        rows = [row and cell == value for row, cell in zip(rows, cells, strict=True)]
    return rows


def as_text(values: pa.Array) -> list[str | None]:
    """Return ids as text; floats with whole values become whole numbers, blanks become None.

    Raises InputError for lists and records.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_nested(values.type):
        raise InputError(
            "the id column contains lists or records", hint="ids must be text or whole numbers"
        )
    texts = [(text or "").strip() for text in pc.cast(values, pa.string()).to_pylist()]
    return [(whole[1] if (whole := _WHOLE.fullmatch(text)) else text) or None for text in texts]
