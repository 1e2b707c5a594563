"""Which notes of a source are wanted: those with a value in a column, as `--only COLUMN=VALUE` says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError, UsageError

UNWANTED = "not of the notes asked for"
_WHOLE = re.compile(r"([0-9]+)\.0+")  # a whole number that a table library wrote as a float


def selection(only: Sequence[str]) -> dict[str, str]:
    """Column -> value of `COLUMN=VALUE`; blanks around a value do not count. Raises UsageError for anything else."""
    wanted = {name: value.strip() for name, _, value in (one.partition("=") for one in only)}
    if len(wanted) < len(only) or not all(wanted) or not all(wanted.values()):
        raise UsageError("--only is COLUMN=VALUE, once a column", hint="such as --only CATEGORY=Report")
    return wanted


def selected(batch: pa.RecordBatch, wanted: Mapping[str, str]) -> list[bool]:
    """Whether each row has the wanted value in every column. Raises InputError as `as_text` does."""
    rows = [True] * batch.num_rows
    for name, value in wanted.items():
        rows = [row and own == value for row, own in zip(rows, as_text(batch.column(name)), strict=True)]
    return rows


def as_text(values: pa.Array) -> list[str | None]:
    """Ids as text: whole numbers also where a table library made floats of them; blanks are None.

    Raises InputError for lists and records.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_nested(values.type):
        raise InputError("a column of ids holds lists or records", hint="ids are text or whole numbers")
    return [_bare(text) for text in pc.cast(values, pa.string()).to_pylist()]


def _bare(text: str | None) -> str | None:
    text = (text or "").strip()
    whole = _WHOLE.fullmatch(text)
    return (whole[1] if whole else text) or None
