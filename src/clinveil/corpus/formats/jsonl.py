"""JSON lines: one object per line; its keys are the columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from clinveil.core import InputError, Location
from clinveil.corpus.corpus import BATCH_BYTES, BATCH_ROWS, JSON_MARK
from clinveil.corpus.file_format import PACKED, FileFormat, ReadOptions
from clinveil.corpus.streams import ROW_BYTES, byte_lines, create_bytes, wrong_encoding

_SAMPLE = 1000
_DEPTH = 100  # nesting of lists and objects; deeper values could not be written again
_SHAPE = 'write one {"id": …, "text": …} per line'
_TOO_DEEP = (f"the line is nested more than {_DEPTH} levels deep", "remove the nested key")
_PLAIN = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
Record = dict[str, Any]
Kinds = dict[str, set[type]]


@dataclass(frozen=True)
class JsonlSource:
    """A file of JSON objects, one per line; blank lines are skipped, a missing key is null.

    Attributes:
        names: the keys of the first 1,000 objects, in order of first occurrence.
        optional_keys: keys that some of these objects lack; they may be data, such as a name.

    Raises:
        InputError: empty, unreadable; while reading: a line that is not a JSON object, is nested
            more than 100 levels deep or has more than `row_bytes`; a duplicate key, or one with a
            lone surrogate; invalid bytes in the encoding.
    """

    path: Location
    encoding: str = "utf-8"
    row_bytes: int = ROW_BYTES
    names: tuple[str, ...] = field(init=False)
    optional_keys: frozenset[str] = field(init=False)
    _types: dict[str, pa.Field] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        first = [tuple(record) for record, _ in islice(self._records(), _SAMPLE)]
        counts = Counter(chain.from_iterable(first))
        object.__setattr__(self, "names", tuple(counts))
        object.__setattr__(
            self, "optional_keys", frozenset(n for n, count in counts.items() if count < len(first))
        )

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns; whole numbers in `ids` become text, `kept` keep
        their types.
        """
        self.take_types(self.kinds([name for name in kept if name not in self._types]))
        names = dict.fromkeys((*ids, *texts, *kept))
        fields = [self._types.get(name) or pa.field(name, pa.large_string()) for name in names]
        columns = [
            (name, self._converter(name, _as_id if name in ids else _as_text)) for name in names
        ]
        rows: list[list[Any]] = []
        size = 0
        for number, (record, length) in enumerate(self._records(), start=1):
            try:
                rows.append([convert(record.get(name)) for name, convert in columns])
            except _NotText as error:
                where = f"{self.path.name}, row {number}"
                problem = f"the value of {error} is not text"
                raise InputError(problem, where=where, hint="write it as a JSON string") from None
            size += length
            if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(rows, fields)
                rows = []
                size = 0
        if rows:
            yield _batch(rows, fields)

    def _converter(self, name: str, convert: Callable[[str, Any], Any]) -> Callable[[Any], Any]:
        """Return the conversion for the values of a column."""
        if name not in self._types:
            return partial(convert, name)
        return _as_json if self._types[name].metadata else lambda value: value

    def kinds(self, kept: Sequence[str]) -> Kinds:
        """Return the types of values in some columns, from a pass over the file, because later
        lines may differ.
        """
        kinds: Kinds = {name: set() for name in kept}
        for record, _ in self._records() if kept else ():
            for name, types in kinds.items():
                if (value := record.get(name)) is not None:
                    types.add(_kind(value))
        return kinds

    def take_types(self, kinds: Kinds) -> None:
        """Give columns the types that can store these kinds of values."""
        self._types.update({name: _field(name, types) for name, types in kinds.items()})

    def _records(self) -> Iterator[tuple[Record, int]]:
        decode = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_refuse).decode
        number = 0
        for line in byte_lines(self.path, self.encoding, self.row_bytes):
            if not line.strip():
                continue
            number += 1
            try:
                record = _checked(decode(line.decode()), line)
            except UnicodeDecodeError:
                raise wrong_encoding(f"{self.path.name}, row {number}", "utf-8") from None
            except (ValueError, RecursionError) as error:
                problem, hint = (
                    ("the line is not JSON", _SHAPE) if isinstance(error, ValueError) else _TOO_DEEP
                )
                problem, hint = error.args if isinstance(error, _BadRecord) else (problem, hint)
                raise InputError(
                    problem, where=f"{self.path.name}, row {number}", hint=hint
                ) from None
            yield record, len(line)
        if not number:
            raise InputError(
                "the file is empty", where=self.path.name, hint="write one JSON object per line"
            )


class _BadRecord(ValueError):
    """A problem of a line and its hint, without quoting the line."""


class _NotText(ValueError):
    """A value that is not text; the message is the column's name."""


def _checked(value: Any, line: bytes) -> Record:
    """Return a decoded line if it is an object that can be written again. Raises _BadRecord."""
    if not isinstance(value, dict):
        raise _BadRecord("the line is not a JSON object", _SHAPE)
    if b"\\" in line and not all(map(_encodable, value)):  # only an escape spells a surrogate
        raise _BadRecord(
            "a key contains a lone surrogate, which is not a character", "rename the key"
        )
    if line.count(b"[") + line.count(b"{") > _DEPTH and _is_deep(value):
        raise _BadRecord(*_TOO_DEEP)
    return value


def _is_deep(value: Record) -> bool:
    """Return whether lists and objects are nested more than `_DEPTH` levels deep."""
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        children = (value.values() if isinstance(value, dict) else value for value in level)
        level = [child for group in children for child in group if isinstance(child, dict | list)]
    return bool(level)


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _as_text(name: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and _encodable(value)):
        return value
    raise _NotText(repr(name))


def _as_id(name: str, value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _as_text(name, value)


def _distinct(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _BadRecord("duplicate key", "rename or remove one")
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError


def _encodable(text: str) -> bool:
    """Return whether a text has no lone surrogate, which JSON can represent but UTF-8 cannot."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _kind(value: Any) -> type:
    if isinstance(value, str) and not _encodable(value):
        return dict  # stored as JSON text, where it remains an escape
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return dict
    return type(value)


def _field(name: str, kinds: set[type]) -> pa.Field:
    if not kinds:
        return pa.field(name, pa.string())
    plain = _PLAIN.get(next(iter(kinds))) if len(kinds) == 1 else None
    return pa.field(name, plain) if plain else pa.field(name, pa.string(), metadata=JSON_MARK)


def _batch(rows: list[list[Any]], fields: list[pa.Field]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(c), type=f.type) for c, f in zip(columns, fields, strict=True)]
    return pa.record_batch(arrays, schema=pa.schema(fields))


class JsonlSink:
    """Write one object per line, in UTF-8, with only the escapes that JSON requires.

    Raises:
        InputError: a value that JSON cannot represent (NaN, bytes).
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        self._raw = {
            f.name for f in schema if f.metadata and f.metadata.get(b"clinveil") == b"json"
        }
        self._file = create_bytes(path, suffix)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        names = batch.schema.names
        columns = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        self._file.write(
            b"".join(self._line(dict(zip(names, row, strict=True))) for row in columns)
        )

    def _line(self, record: Record) -> bytes:
        for name in self._raw:
            record[name] = None if record[name] is None else json.loads(record[name])
        try:
            return (
                json.dumps(record, ensure_ascii=False, allow_nan=False, default=_spell).encode()
                + b"\n"
            )
        except UnicodeEncodeError:  # a lone surrogate in a kept column remains an escape
            return json.dumps(record, allow_nan=False, default=_spell).encode() + b"\n"
        except (ValueError, TypeError):
            hint = "write .parquet, or drop the column"
            raise InputError(
                "a kept column contains NaN or bytes, which JSON does not support", hint=hint
            ) from None

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def _spell(value: Any) -> str:
    """Return dates, times and decimals as text."""
    if isinstance(value, bytes):
        raise TypeError
    return str(value)


def _source(path: Location, options: ReadOptions) -> JsonlSource:
    return JsonlSource(path, options.encoding, options.row_bytes)


def _agree(sources: Sequence[JsonlSource], kept: Sequence[str]) -> None:
    all_kinds: Kinds = {name: set() for name in kept}
    for source in sources:
        with suppress(InputError):  # a damaged part raises its error when it is read
            for name, kinds in source.kinds(kept).items():
                all_kinds[name] |= kinds
    for source in sources:
        source.take_types(all_kinds)


_SUFFIXES = tuple(kind + packed for kind in (".jsonl", ".ndjson") for packed in PACKED)
JSONL = FileFormat(_SUFFIXES, _source, JsonlSink, agree=_agree)
