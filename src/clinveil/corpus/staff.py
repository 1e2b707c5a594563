"""Read the names of a site's staff."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core import InputError
from clinveil.corpus.streams import refuse_other_encoding

ROWS = 4096
_TITLES = frozenset(
    {
        *("dr", "dr.", "mr", "mr.", "mrs", "mrs.", "ms", "ms.", "miss", "prof", "prof."),
        *(
            "md",
            "m.d.",
            "do",
            "d.o.",
            "rn",
            "np",
            "pa",
            "pa-c",
            "phd",
            "ph.d.",
            "mbbs",
            "dds",
            "lcsw",
        ),
        *("jr", "jr.", "sr", "sr.", "ii", "iii", "iv"),
    }
)


def read_staff(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the names of a staff list as tokens, the family name last, without titles.

    A list is Parquet or CSV with a column `name` (or `given` and `family`), or text with one name
    per line. `Family, Given` is turned round.

    Raises:
        InputError: missing, another encoding than UTF-8, no such column, or no names.
    """
    count = 0
    tables = path.suffix.lower() in (".csv", ".parquet")
    for written in _table(path) if tables else _lines(path):
        if name := _tokens(written):
            count += 1
            yield name
    if not count:
        raise InputError("contains no names", where=path.name, hint="write one full name per line")


def _tokens(written: str) -> tuple[str, ...]:
    before, _, after = written.partition(",")
    first = _untitled(after)
    return (*first, *_untitled(before)) if first else _untitled(before)


def _untitled(text: str) -> tuple[str, ...]:
    tokens = (token.strip(",;") for token in text.split())
    return tuple(token for token in tokens if token and token.lower() not in _TITLES)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from file
    except UnicodeDecodeError:
        refuse_other_encoding(path)
    except OSError:
        raise InputError("cannot be read", where=path.name, hint="check the path") from None


def _table(path: Path) -> Iterator[str]:
    from pyarrow import csv

    try:
        if path.suffix.lower() == ".csv":
            types = dict.fromkeys(("name", "given", "family"), pa.string())
            table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types))
        else:
            table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid):
        refuse_other_encoding(path)
        hint = "write names as Parquet, as CSV with a header, or as text with one name per line"
        problem = "missing, damaged, or not a Parquet or CSV file"
        raise InputError(problem, where=path.name, hint=hint) from None
    names = ["name"] if "name" in table.column_names else ["given", "family"]
    if not {*names} <= {*table.column_names}:
        hint = "use a column name, or the columns given and family"
        raise InputError("has no column of names", where=path.name, hint=hint)
    for batch in table.select(names).to_batches(ROWS):
        for parts in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield " ".join(str(part) for part in parts if part)
