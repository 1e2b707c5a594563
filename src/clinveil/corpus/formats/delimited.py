"""CSV and TSV, plain or compressed: rows of any length, all values read as text.

`csv.reader` in strict mode finds the rows and refuses misplaced quotes, and every row must have the
fields of the header: a lenient parser would merge two notes after a missing quote. Pyarrow converts
the values, because it distinguishes an unquoted empty field from `""`. Rows may end in LF, CRLF or
CR, and an unquoted field may contain quotes after its first character (5" needle).

The delimiter is a comma, semicolon, tab or vertical bar: the one that splits the first rows into
the same number of fields as the header. Files are written with the usual one of their suffix.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from clinveil.core import InputError, Location
from clinveil.corpus.file_format import PACKED, FileFormat, ReadOptions
from clinveil.corpus.streams import (
    CHUNK_BYTES,
    ROW_BYTES,
    ByteReader,
    create_bytes,
    too_long,
    wrong_encoding,
)

# Bytes as text of one character each, so that rows are found before the encoding is known to be
# valid.
_BYTES = "latin-1"
_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 20
# The limit of `csv` holds for the process. `_Pass` limits whole rows, which are at least as long.
csv.field_size_limit(max(csv.field_size_limit(), ROW_BYTES))


def sniffed(data: bytes, usual: str) -> str:
    """Return the delimiter of the first rows of a file; the usual one if several are as good.

    Args:
        data: the beginning of the file.
    """
    complete = data[: _end_of_lines(data)].decode(_BYTES)
    best = (0.0, 1, False)
    delimiter = usual
    for sign in _DELIMITERS:
        lengths = _row_lengths(complete, sign)
        if not lengths or lengths[0] < 2:
            continue
        regular = lengths.count(lengths[0]) / len(lengths)
        rank = (regular, lengths[0], sign == usual)
        if rank > best:
            best = rank
            delimiter = sign
    return delimiter


def _end_of_lines(data: bytes) -> int:
    """Return the end of the last complete line; a CR at the end of the data may have a LF after
    it.
    """
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1


def _row_lengths(text: str, delimiter: str) -> list[int]:
    """Return the numbers of fields of the first rows, up to the first misplaced quote."""
    lengths: list[int] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if row:
                lengths.append(len(row))
            if len(lengths) == _SAMPLE_ROWS:
                break
    except csv.Error:
        """The rows before it count."""
    return lengths


@dataclass(frozen=True)
class DelimitedSource:
    """A delimited file with a header. An unquoted empty field is null; `""` is an empty text.

    Attributes:
        delimiter: the given one; if it is `auto`, that of the first rows.
        names: the columns of its header.

    Raises:
        InputError: empty, unreadable, a duplicate column name; while reading: a misplaced quote, a
            ragged row, NUL bytes, invalid bytes in the encoding, a row of more than `row_bytes`.
    """

    path: Location
    delimiter: str = ","
    encoding: str = "utf-8"
    row_bytes: int = ROW_BYTES
    names: tuple[str, ...] = field(init=False)
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        if self.delimiter == "auto":
            with ByteReader(self.path, self.encoding) as reader:
                data = reader.read(_SAMPLE_BYTES)
                is_whole = len(data) < _SAMPLE_BYTES and not reader.read(1)
            if is_whole:
                data += b"\n"
            object.__setattr__(self, "delimiter", sniffed(data, _delimiter(self.path.name.lower())))
        with _Pass(self) as reading:
            next(reading.chunks(), None)
            object.__setattr__(self, "names", reading.names)

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns, as strings."""
        with _Pass(self) as reading:
            for chunk, n in reading.chunks():
                yield reading.parse(chunk, n, list(dict.fromkeys((*ids, *texts, *kept))))


class _Pass(ByteReader):
    """One pass over the file: splits it into chunks of complete rows, and converts them."""

    def __init__(self, source: DelimitedSource) -> None:
        super().__init__(source.path, source.encoding)
        self._where = source.path.name
        self._row_bytes = source.row_bytes
        self._parse = pa_csv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True)
        self._delimiter = source.delimiter
        self._data = b""  # complete lines after the last chunk
        self._size = 0  # of those that the reader of rows has taken
        self._row_size = 0  # of those in the row in progress
        self.names: tuple[str, ...] = ()
        self.rows = 0  # complete rows, without the header

    def chunks(self) -> Iterator[tuple[bytes, int]]:
        """Yield chunks of complete rows with their number, a few MB each, or more for a longer
        row; the header is removed.

        Raises InputError for a misplaced quote, or a row with more or fewer fields than the header.
        """
        rows = csv.reader(self._read_lines(), delimiter=self._delimiter, strict=True)
        n = 0
        try:
            for row in rows:
                self._row_size = 0
                if not row:
                    continue
                if not self.names:
                    self._take_header(row)
                    continue
                if len(row) != len(self.names):
                    problem = f"{len(row)} fields for {len(self.names)} columns"
                    raise InputError(
                        problem, where=self._row_name(), hint="correct or quote the fields"
                    )
                self.rows += 1
                n += 1
                if self._size >= CHUNK_BYTES:
                    yield self._taken(), n
                    n = 0
        except csv.Error as error:
            raise self._bad_quote(error) from None
        if not self.names:
            raise InputError(
                "the file is empty", where=self._where, hint="use a file with a header and notes"
            )
        if n:
            yield self._taken(), n

    def parse(self, chunk: bytes, n: int, wanted: list[str]) -> pa.RecordBatch:
        """Convert a chunk of n rows; return the `wanted` columns."""
        convert = pa_csv.ConvertOptions(
            # As bytes, because pyarrow's message on invalid UTF-8 has no row number.
            column_types=dict.fromkeys(wanted, pa.large_binary()),
            include_columns=wanted,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        )
        read = pa_csv.ReadOptions(
            column_names=self.names, block_size=len(chunk) + 1, use_threads=False
        )
        first = self.rows - n + 1
        try:
            table = pa_csv.read_csv(pa.BufferReader(chunk), read, self._parse, convert)
        except pa.ArrowInvalid:
            table = None
        if table is None or table.num_rows != n:  # the two parsers disagree
            raise InputError(
                "the rows cannot be parsed",
                where=f"{self._where}, rows {first} to {self.rows}",
                hint="convert the file to Parquet or JSONL",
            )
        arrays = [self._text(column, first) for column in table.combine_chunks().columns]
        return pa.record_batch(arrays, names=wanted)

    def _read_lines(self) -> Iterator[str]:
        """Yield lines with their ends. Raises InputError for a NUL byte, and for a row that is too
        long.
        """
        rest = b""
        has_data = True
        while has_data:
            data = self.read(min(max(CHUNK_BYTES, len(rest)), self._row_bytes))
            has_data = bool(data)
            rest += data
            end = _end_of_lines(rest) if has_data else len(rest)
            yield from self._lines_of(rest[:end])
            rest = rest[end:]
            if self._row_size + len(rest) > self._row_bytes:
                raise too_long("a row", self._row_bytes, self._row_name())

    def _lines_of(self, data: bytes) -> Iterator[str]:
        """Yield the lines of complete lines."""
        self._data += data
        has_nul = b"\0" in data
        for line in io.TextIOWrapper(io.BytesIO(data), encoding=_BYTES, newline=""):
            self._row_size += len(line)
            if self._row_size > self._row_bytes:
                raise too_long("a row", self._row_bytes, self._row_name())
            if has_nul and "\0" in line:
                hint = (
                    "use a text file, or pass its encoding, such as --set notes.encoding=utf-16-le"
                )
                raise InputError("contains a NUL byte", where=self._row_name(), hint=hint)
            self._size += len(line)
            yield line

    def _taken(self) -> bytes:
        """Return the lines since the last chunk, and forget them."""
        chunk = self._data[: self._size]
        self._data = self._data[self._size :]
        self._size = 0
        return chunk

    def _text(self, column: pa.ChunkedArray, first: int) -> pa.Array:
        array = column.chunk(0) if column.num_chunks else pa.array([], pa.large_binary())
        try:
            return pc.cast(array, pa.large_string())
        except pa.ArrowInvalid:
            values = enumerate(array.to_pylist())
            row = next(
                i
                for i, value in values
                if value and value.decode(errors="ignore").encode() != value
            )
            raise wrong_encoding(f"{self._where}, row {first + row}", "utf-8") from None

    def _take_header(self, row: list[str]) -> None:
        self._taken()
        try:
            self.names = tuple(name.encode(_BYTES).decode() for name in row)
        except UnicodeDecodeError:
            raise wrong_encoding(f"{self._where}, header", "utf-8") from None
        if len(set(self.names)) < len(self.names):
            raise InputError(
                "duplicate column name", where=f"{self._where}, header", hint="rename one"
            )

    def _bad_quote(self, error: csv.Error) -> InputError:
        if "unexpected end" in str(error):
            return InputError("a quote is never closed", where=self._row_name(), hint="close it")
        problem = "a quote is not closed, or closed too early"
        return InputError(problem, where=self._row_name(), hint='write quotes inside a field as ""')

    def _row_name(self) -> str:
        """Return the place of the row in progress."""
        return f"{self._where}, row {self.rows + 1}" if self.names else f"{self._where}, header"


class DelimitedSink:
    """Write a delimited file: text is quoted and null is an empty field, so that reading restores
    all values.

    Raises:
        InputError: a column of lists, records or bytes, or a NUL character.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        nested = [f.name for f in schema if pa.types.is_nested(f.type)]
        if nested:
            problem = f"a column of lists or records cannot be written as {suffix}"
            raise InputError(
                problem,
                where=", ".join(nested),
                hint="write .parquet or .jsonl, or drop the column",
            )
        if raw := [f.name for f in schema if "binary" in str(f.type)]:
            problem = f"a column of bytes cannot be written as {suffix}"
            raise InputError(
                problem, where=", ".join(raw), hint="write .parquet, or drop the column"
            )
        self._suffix = suffix
        self._rows = 0
        options = pa_csv.WriteOptions(delimiter=_delimiter(suffix), quoting_style="needed")
        self._file = create_bytes(path, suffix)
        self._writer = pa_csv.CSVWriter(self._file, schema, write_options=options)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        for column in batch.columns:
            text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            if text and (row := pc.index(pc.match_substring(column, "\0"), True).as_py()) >= 0:
                where = f"row {self._rows + row + 1} of the {self._suffix} output"
                raise InputError(
                    "the text contains a NUL character", where=where, hint="remove it from the note"
                )
        self._writer.write_batch(batch)
        self._rows += batch.num_rows

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()
        self._file.close()


def _delimiter(suffix: str) -> str:
    return "\t" if ".tsv" in suffix else ","


def _source(path: Location, options: ReadOptions) -> DelimitedSource:
    return DelimitedSource(path, options.delimiter, options.encoding, options.row_bytes)


_SUFFIXES = tuple(kind + packed for kind in (".csv", ".tsv") for packed in PACKED)
DELIMITED = FileFormat(_SUFFIXES, _source, DelimitedSink)
