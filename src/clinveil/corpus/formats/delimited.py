"""CSV and TSV, plain or compressed: rows of any length, all values read as text.

The grammar is RFC 4180 with two unambiguous extensions: rows may end in LF, CRLF or CR, and an
unquoted field may contain quotes after its first character (5" needle). A closing quote must be
followed by a delimiter or the row's end:
anything else indicates a missing quote, and a lenient parser would merge two notes.

The delimiter is a comma, semicolon, tab or vertical bar: the one that splits the first rows into
the same number of fields as the header. Files are written with the usual one of their suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from clinveil.core.errors import InputError
from clinveil.core.locations import Location
from clinveil.corpus.file_format import PACKED, FileFormat, Reading, formats
from clinveil.corpus.streams import (
    CHUNK_BYTES,
    ROW_BYTES,
    ByteReader,
    create_bytes,
    too_long,
    wrong_encoding,
)

_END = rb"(?:\r\n|\n|\r)"
_QUOTED_OPEN = rb'"[^"]*+(?:""[^"]*+)*+'


@dataclass(frozen=True)
class Grammar:
    """Patterns for one delimiter (one ASCII byte). All repeats are possessive, so matching takes
    linear time.
    """

    delimiter: bytes
    _field: re.Pattern[bytes] = field(init=False, repr=False)
    _row: re.Pattern[bytes] = field(init=False, repr=False)
    _rows: re.Pattern[bytes] = field(init=False, repr=False)
    _partial: re.Pattern[bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mark = re.escape(self.delimiter)
        value = rb'(?:%b"|[^"%b\r\n][^%b\r\n]*+|)' % (_QUOTED_OPEN, mark, mark)
        fields = rb"%b(?:%b%b)*+" % (value, mark, value)
        patterns = {
            "_field": rb"(%b)(?:%b|%b)" % (value, mark, _END),
            "_row": fields + _END,
            "_rows": rb"(?:%b%b)*+" % (fields, _END),
            "_partial": rb"%b(?:%b)?\Z" % (fields, _QUOTED_OPEN),
        }
        for name, pattern in patterns.items():
            object.__setattr__(self, name, re.compile(pattern))

    def complete(self, data: bytes) -> int:
        """Return the end of the last complete row of `data`; 0 if there is none."""
        match = self._rows.match(data)
        return match.end() if match else 0

    def may_go_on(self, data: bytes) -> bool:
        """Return whether `data` can be the beginning of a row; if not, a quote is misplaced."""
        return self._partial.match(data) is not None

    def rows(self, data: bytes) -> Iterator[bytes]:
        """Yield the complete rows at the beginning of `data`, without empty lines."""
        for match in self._row.finditer(data, 0, self.complete(data)):
            if (row := match.group()).strip(b"\r\n"):
                yield row

    def fields(self, row: bytes) -> list[bytes]:
        """Return the fields of one complete row, unquoted."""
        raw = [match.group(1) for match in self._field.finditer(row)]
        return [f[1:-1].replace(b'""', b'"') if f.startswith(b'"') else f for f in raw]


_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 1 << 18
_SAMPLE_ROWS = 20


def sniffed(data: bytes, usual: str) -> str:
    """Return the delimiter of the first rows of a file; the usual one if several are as good.

    Args:
        data: the beginning of the file.
    """
    best = (0.0, 1, False)
    delimiter = usual
    for sign in _DELIMITERS:
        grammar = Grammar(sign.encode())
        rows = [
            grammar.fields(row) for row in islice(grammar.rows(data.lstrip(b"\r\n")), _SAMPLE_ROWS)
        ]
        if not rows or len(rows[0]) < 2:
            continue
        regular = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        rank = (regular, len(rows[0]), sign == usual)
        if rank > best:
            best = rank
            delimiter = sign
    return delimiter


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
                whole = len(data) < _SAMPLE_BYTES and not reader.read(1)
            data += b"\n" * whole
            object.__setattr__(self, "delimiter", sniffed(data, _delimiter(self.path.name.lower())))
        with _Pass(self) as reading:
            next(reading.chunks(), None)
            object.__setattr__(self, "names", reading.names)

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns, as strings."""
        with _Pass(self) as reading:
            for chunk in reading.chunks():
                yield reading.parse(chunk, list(dict.fromkeys((*ids, *texts, *kept))))


class _Pass(ByteReader):
    """One pass over the file: splits the stream into complete rows, parses them and tracks the row
    number.
    """

    def __init__(self, source: DelimitedSource) -> None:
        super().__init__(source.path, source.encoding)
        self._where = source.path.name
        self._row_bytes = source.row_bytes
        self._grammar = Grammar(source.delimiter.encode())
        self._parse = pa_csv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True)
        self.names: tuple[str, ...] = ()
        self.rows = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield chunks of complete rows, a few MB each, or more for a longer row; the header is
        removed.
        """
        rest = b""
        more = True
        while more:
            data = self.read(min(max(CHUNK_BYTES, len(rest)), self._row_bytes))
            more = bool(data)
            if (position := data.find(b"\0")) >= 0:
                before = sum(1 for _ in self._grammar.rows(rest + data[:position]))
                hint = "use a text file, or pass its encoding, for example --set encoding=utf-16-le"
                raise InputError("contains a NUL byte", where=self._at(before), hint=hint)
            rest += data if more else b"\n" * bool(rest)
            end = self._grammar.complete(rest)
            whole = rest[:end]
            rest = rest[end:]
            if not self.names:
                whole = self._take_header(whole)
            if whole:
                yield whole
            if len(rest) > self._row_bytes:
                raise too_long("a row", self._row_bytes, self._at(0))
            if rest:
                self._refuse_bad_quote(rest, more)
        if not self.names:
            raise InputError(
                "the file is empty", where=self._where, hint="use a file with a header and notes"
            )

    def parse(self, chunk: bytes, wanted: list[str]) -> pa.RecordBatch:
        """Parse complete rows; return the `wanted` columns."""
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
        try:
            table = pa_csv.read_csv(pa.BufferReader(chunk), read, self._parse, convert)
        except pa.ArrowInvalid:
            raise self._ragged(chunk) from None
        arrays = [self._text(column) for column in table.combine_chunks().columns]
        self.rows += table.num_rows
        return pa.record_batch(arrays, names=wanted)

    def _text(self, column: pa.ChunkedArray) -> pa.Array:
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
            raise wrong_encoding(self._at(row), "utf-8") from None

    def _take_header(self, whole: bytes) -> bytes:
        start = len(whole) - len(whole.lstrip(b"\r\n"))
        row = next(self._grammar.rows(whole[start:]), b"")
        try:
            self.names = tuple(name.decode() for name in self._grammar.fields(row)) if row else ()
        except UnicodeDecodeError:
            raise wrong_encoding(f"{self._where}, header", "utf-8") from None
        if len(set(self.names)) < len(self.names):
            raise InputError(
                "duplicate column name", where=f"{self._where}, header", hint="rename one"
            )
        return whole[start + len(row) :]

    def _refuse_bad_quote(self, rest: bytes, more: bool) -> None:
        if not self._grammar.may_go_on(rest):
            what = "a quote is not closed, or closed too early"
            raise InputError(what, where=self._at(0), hint='write quotes inside a field as ""')
        if not more:
            raise InputError("a quote is never closed", where=self._at(0), hint="close it")

    def _ragged(self, chunk: bytes) -> InputError:
        for offset, row in enumerate(self._grammar.rows(chunk)):
            if (n := len(self._grammar.fields(row))) != len(self.names):
                what = f"{n} fields for {len(self.names)} columns"
                return InputError(what, where=self._at(offset), hint="correct or quote the fields")
        return InputError(
            "the row cannot be parsed",
            where=self._at(0),
            hint="convert the file to Parquet or JSONL",
        )

    def _at(self, offset: int) -> str:
        row = self.rows + offset + bool(self.names)
        return f"{self._where}, row {row}" if row else f"{self._where}, header"


class DelimitedSink:
    """Write a delimited file: text is quoted and null is an empty field, so that reading restores
    all values.

    Raises:
        InputError: a column of lists, records or bytes, or a NUL character.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        nested = [f.name for f in schema if pa.types.is_nested(f.type)]
        if nested:
            what = f"a column of lists or records cannot be written as {suffix}"
            raise InputError(
                what, where=", ".join(nested), hint="write .parquet or .jsonl, or drop the column"
            )
        if raw := [f.name for f in schema if "binary" in str(f.type)]:
            what = f"a column of bytes cannot be written as {suffix}"
            raise InputError(what, where=", ".join(raw), hint="write .parquet, or drop the column")
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


def _source(path: Location, how: Reading) -> DelimitedSource:
    return DelimitedSource(path, how.delimiter, how.encoding, how.row_bytes)


_SUFFIXES = tuple(kind + packed for kind in (".csv", ".tsv") for packed in PACKED)
formats.register("delimited")(FileFormat(_SUFFIXES, _source, DelimitedSink))
