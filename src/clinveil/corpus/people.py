"""Known patients and diagnosis codes: input for PHI removal, and ground truth for attacks.

`patients.parquet` has the columns `patient_id`, `name` (full name, space-separated tokens) and
`codes` (list of strings), and optionally the lists `record_number`, `phone`, `email`, `address`,
`birth_date`, and `date_shift`, the days by which the patient's dates move.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clinveil.core import InputError
from clinveil.corpus.roles import is_text
from clinveil.corpus.streams import refuse_other_encoding

_STRINGS = pa.list_(pa.string())
# Column -> attribute; all are optional.
LISTS = {"codes": "codes", "record_number": "record_numbers", "phone": "phones", "email": "emails",
         "address": "addresses"}  # fmt: skip
PATIENTS_SCHEMA = pa.schema(
    [("patient_id", pa.string()), ("name", pa.string())]
    + [(column, _STRINGS) for column in LISTS]
    + [("birth_date", pa.date32()), ("date_shift", pa.int32())]
)
REQUIRED = ("patient_id", "name")
ROWS = 4096
LARGEST_SHIFT = 36_500  # days


@dataclass(frozen=True, slots=True)
class Patient:
    """A hospital's record of one patient. Its repr shows counts only.

    Attributes:
        name: the tokens of the full name, in order.
        codes: diagnosis codes. record_numbers, phones, emails, addresses: as on file; each may be
            empty.
        birth_date: or None. date_shift: days by which the dates move, or None for those of the key.
    """

    patient_id: str
    name: tuple[str, ...]
    codes: tuple[str, ...] = ()
    record_numbers: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    birth_date: date | None = None
    date_shift: int | None = None

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{len(getattr(self, attribute))} {attribute}" for attribute in LISTS.values()
        )
        return f"Patient({len(self.name)} name tokens, {counts})"


def patients_batch(patients: Sequence[Patient]) -> pa.RecordBatch:
    """Return the patients as a record batch of `PATIENTS_SCHEMA`."""
    columns: list[list[Any]] = [
        [p.patient_id for p in patients],
        [" ".join(p.name) for p in patients],
    ]
    columns += [[list(getattr(p, attribute)) for p in patients] for attribute in LISTS.values()]
    columns.append([p.birth_date for p in patients])
    columns.append([p.date_shift for p in patients])
    arrays = [
        pa.array(values, type=field.type)
        for values, field in zip(columns, PATIENTS_SCHEMA, strict=True)
    ]
    return pa.record_batch(arrays, schema=PATIENTS_SCHEMA)


def write_patients(patients: Iterable[Patient], path: Path) -> int:
    """Write patients.parquet as a stream; return the number of patients. The caller ensures an
    atomic, private file.
    """
    rest = iter(patients)
    written = 0
    with pq.ParquetWriter(path, PATIENTS_SCHEMA, compression="zstd") as writer:
        while some := list(islice(rest, ROWS)):
            writer.write_batch(patients_batch(some))
            written += len(some)
    return written


class Patients(Mapping[str, Patient]):
    """Known patients by id, in the order of their file; a fifth of the memory of a dictionary.

    Processes that read them by `scale.pieces.shared` share their memory.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        self._ids = self._table.column("patient_id")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as one array, which `scale.pieces.shared` maps into memory."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, PATIENTS_SCHEMA) as writer:
            writer.write_table(self._table)
        return _of_bytes, (np.frombuffer(sink.getvalue(), np.uint8),)

    @cached_property
    def _order(self) -> NDArray[np.uint64]:
        """Return the rows in the order of their ids."""
        return np.asarray(pc.sort_indices(self._ids))

    def __getitem__(self, patient_id: str) -> Patient:
        position = bisect_left(self._order, patient_id, key=lambda row: self._ids[int(row)].as_py())
        if (
            position < len(self)
            and self._ids[row := int(self._order[position])].as_py() == patient_id
        ):
            return next(_patients(self._table.slice(row, 1).to_batches()[0]))
        raise KeyError

    def take(self, rows: NDArray[np.int64]) -> list[Patient]:
        """Return the patients of some rows, counted from 0."""
        return [
            patient for batch in self._table.take(rows).to_batches() for patient in _patients(batch)
        ]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids.to_pylist())

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def values(self) -> ValuesView[Patient]:
        """Return the patients in the order of the file."""
        return _Values(self)


def _of_bytes(raw: NDArray[np.uint8]) -> Patients:
    return Patients(pa.ipc.open_stream(pa.py_buffer(raw)).read_all())


class _Values(ValuesView[Patient]):
    _mapping: Patients

    def __iter__(self) -> Iterator[Patient]:
        batches = self._mapping._table.to_batches(ROWS)
        return (patient for batch in batches for patient in _patients(batch))


def read_patients(path: Path) -> Patients:
    """Read the known patients of a file by patient id, in the order of the file.

    Raises:
        InputError: not a Parquet or CSV file, a missing or mistyped column, a null or repeated
            patient id, or an empty name.
    """
    patients = _checked(path)
    batches = list(iter(lambda: patients_batch(list(islice(patients, ROWS))), patients_batch([])))
    if not batches:
        raise InputError("contains no patients", where=path.name, hint="write one row per patient")
    return Patients(pa.Table.from_batches(batches, PATIENTS_SCHEMA))


def _checked(path: Path) -> Iterator[Patient]:
    ids = set[str]()
    shifts = set[bool]()
    for row, patient in enumerate(_rows(path), 1):
        if not patient.patient_id:
            raise InputError(
                f"row {row} has no patient_id", where=path.name, hint="every patient needs an id"
            )
        if not patient.name:
            raise InputError(
                f"row {row} has no name", where=path.name, hint="remove patients without a name"
            )
        if patient.patient_id in ids:
            raise InputError(
                f"row {row} repeats a patient_id", where=path.name, hint="write one row per patient"
            )
        if patient.date_shift is not None and not 1 <= abs(patient.date_shift) <= LARGEST_SHIFT:
            hint = f"use 1 to {LARGEST_SHIFT} days in either direction"
            raise InputError(f"row {row} has an invalid date_shift", where=path.name, hint=hint)
        shifts.add(patient.date_shift is None)
        if len(shifts) > 1:
            hint = "give every patient of the table an offset, or remove the column"
            raise InputError(
                f"the column date_shift has gaps (first seen at row {row})",
                where=path.name,
                hint=hint,
            )
        ids.add(patient.patient_id)
        yield patient


def _rows(path: Path) -> Iterator[Patient]:
    try:
        for batch in _csv(path) if path.suffix.lower() == ".csv" else _parquet(path):
            yield from _patients(batch, path)
    except (OSError, pa.ArrowInvalid, OverflowError, UnicodeDecodeError):
        refuse_other_encoding(path)
        hint = "write known patients as Parquet, or as CSV with a header"
        raise InputError(
            "missing, damaged, or not a Parquet or CSV file", where=path.name, hint=hint
        ) from None


def _parquet(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(ROWS, columns=_known(file.schema_arrow.names, path))


def _csv(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file, all as text; a cell is one value of a list."""
    from pyarrow import csv

    types = dict.fromkeys(PATIENTS_SCHEMA.names, pa.string())
    options = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    table = csv.read_csv(
        path, convert_options=options, parse_options=csv.ParseOptions(newlines_in_values=True)
    )
    yield from table.select(_known(table.column_names, path)).to_batches()


def _known(present: Sequence[str], path: Path) -> list[str]:
    """Return the columns of patients among those of a file. Raises InputError if a required one is
    missing.
    """
    if missing := [column for column in REQUIRED if column not in present]:
        hint = "patient_id and name are required; the other columns are optional"
        raise InputError(f"the column {missing[0]} is missing", where=path.name, hint=hint)
    return [column for column in PATIENTS_SCHEMA.names if column in present]


def _patients(batch: pa.RecordBatch, path: Path = Path()) -> Iterator[Patient]:
    texts = [_texts(batch.column(name), name, path) for name in REQUIRED]
    lists = [_lists(batch, name, path) for name in LISTS]
    births = _births(batch, path)
    shifts = _shifts(batch, path)
    for identity, name, *groups, born, shift in zip(*texts, *lists, births, shifts, strict=True):
        codes, numbers, phones, emails, addresses = (
            tuple(item for item in group or () if item) for group in groups
        )
        yield Patient(
            identity or "",
            tuple((name or "").split()),
            codes,
            numbers,
            phones,
            emails,
            addresses,
            born,
            shift,
        )


def _texts(array: pa.Array, name: str, path: Path) -> list[str | None]:
    """Return strings, or whole numbers as strings. Raises InputError for other types."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type) and name != "name":
        array = array.cast(pa.string())
    if not (is_text(array.type) or pa.types.is_null(array.type)):
        raise InputError(
            f"the column {name} is {array.type}, not text",
            where=path.name,
            hint="cast it to string",
        )
    return list(array.to_pylist())


def _lists(batch: pa.RecordBatch, name: str, path: Path) -> list[Any]:
    """Return lists of strings; a plain text column becomes lists of one."""
    if name not in batch.schema.names:
        return [None] * batch.num_rows
    array = batch.column(name)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        inner = array.type.value_type
        if not (is_text(inner) or pa.types.is_integer(inner) or pa.types.is_null(inner)):
            problem = f"the column {name} is a list of {inner}, not of text"
            raise InputError(problem, where=path.name, hint="cast it to a list of strings")
        return [
            items and [None if i is None else str(i) for i in items] for items in array.to_pylist()
        ]
    return [text and [text] for text in _texts(array, name, path)]


def _births(batch: pa.RecordBatch, path: Path) -> list[date | None]:
    if "birth_date" not in batch.schema.names:
        return [None] * batch.num_rows
    array = batch.column("birth_date")
    try:
        if not (
            is_text(array.type) or pa.types.is_temporal(array.type) or pa.types.is_null(array.type)
        ):
            raise pa.ArrowInvalid
        return list(pc.cast(array, pa.date32(), safe=False).to_pylist())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        hint = "use dates, or text as YYYY-MM-DD"
        raise InputError(
            "the column birth_date does not contain dates", where=path.name, hint=hint
        ) from None


TABLES = (".parquet", ".csv")
_NO_TABLE = (
    "name a table of patients .csv or .parquet; otherwise write one full name per line, first name"
    " first"
)


def _shifts(batch: pa.RecordBatch, path: Path) -> list[int | None]:
    """Return the days by which dates move. Raises InputError for other values than whole numbers of
    days.
    """
    if "date_shift" not in batch.schema.names:
        return [None] * batch.num_rows
    try:
        return list(pc.cast(batch.column("date_shift"), pa.int32()).to_pylist())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        hint = "use whole numbers of days, such as -120"
        raise InputError(
            "the column date_shift does not contain whole numbers", where=path.name, hint=hint
        ) from None


def read_names(path: Path) -> list[tuple[str, ...]]:
    """Read full names as tokens from a table of patients (.parquet, .csv) or a text file with one
    full name per line.

    A table returns the name of each patient, so that namesakes stay separate. Repeated lines are
    returned once.

    Raises:
        InputError: an empty file, one that is not UTF-8, a table without its columns, or text that
            looks like a table.
    """
    if path.suffix.lower() in TABLES:
        return [patient.name for patient in _read_table(path).values()]
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        hint = "write one full name per line"
        raise InputError("cannot be read as UTF-8 text", where=path.name, hint=hint) from None
    if number := next(
        (number for number, line in enumerate(lines, 1) if _SEPARATOR.search(line)), 0
    ):
        raise InputError(
            f"line {number} has columns, as a table has", where=path.name, hint=_NO_TABLE
        )
    names = [tokens for line in lines if (tokens := tuple(line.split()))]
    if not names:
        raise InputError("contains no names", where=path.name, hint="write one full name per line")
    return list(dict.fromkeys(names))


_SEPARATOR = re.compile(r"[,;|\t]")


def _read_table(path: Path) -> Patients:
    """Read a table of patients. Raises InputError, with the other form that a list of names may
    have.
    """
    try:
        return read_patients(path)
    except InputError as error:
        if "is missing" not in error.problem or path.suffix.lower() != ".csv":
            raise
        hint = "write the columns patient_id and name; name a file with one full name per line .txt"
        raise InputError(error.problem, where=path.name, hint=hint) from None


def read_codes(path: Path) -> dict[str, str]:
    """Read code -> description (1 to 3 words) from a `codes.csv` with the columns `code` and
    `description`.

    Raises:
        InputError: a missing column, a row without code or description, a repeated code, invalid
            UTF-8.
    """
    codes: dict[str, str] = {}
    hint = "write a CSV file in UTF-8 with a header: code,description"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            if not {"code", "description"} <= set(rows.fieldnames or ()):
                raise InputError(
                    "the columns code and description are missing", where=path.name, hint=hint
                )
            for row in rows:
                code, description = ((row[key] or "").strip() for key in ("code", "description"))
                if not code or not description:
                    raise InputError(
                        f"line {rows.line_num} has no code or no description",
                        where=path.name,
                        hint=hint,
                    )
                if code in codes:
                    raise InputError(
                        f"line {rows.line_num} repeats a code", where=path.name, hint="remove it"
                    )
                codes[code] = description
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InputError("cannot be read as CSV in UTF-8", where=path.name, hint=hint) from None
    return codes


def write_codes(codes: dict[str, str], path: Path) -> None:
    """Write codes.csv. The caller ensures an atomic, private file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("code", "description"), *codes.items()])
