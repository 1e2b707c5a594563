"""Notes from a database: the rows of one query, read as they come, in the order of their ids.

Postgres by ADBC, DuckDB by its own library, SQLite by Python's. A database is only read: its file is opened so, or the
transaction says so. What it says of an error may quote data, so one of a few sentences stands in its place.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core.errors import ClinveilError, InputError, MissingExtra, UsageError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.columns import resolve
from clinveil.corpus.corpus import BATCH_ROWS

WHERE = "--from-sql"
PART_BYTES = 128 << 20
_URI = re.compile(r"(?P<kind>[a-z]+)://(?P<who>[^/?]*)(?P<path>/?[^?]*)(?:\?(?P<query>.*))?", re.DOTALL)
_DAMAGED = "the file is no database of this kind, or a damaged one"
_SHELL = "try it in the database's own shell"
_CAME = "set PGPASSWORD or ~/.pgpass; see docs/storage.md"
_REACH = "the database cannot be reached, or the connection was lost"
# SQLSTATE where a database gives one, else its own words.
_SAID = (
    (r"^28|password|authentication", "the database did not let this user in", _CAME),
    (r"^3D000|database .* does not exist", "there is no such database", "check --uri"),
    (r"^42501|^25006|permission denied|read-?only", "it asks for what may not be done: notes are only read", _SHELL),
    (r"^42P01|no such table|table with name|relation .* does not exist", "it names a table that is not there", _SHELL),
    (
        r"^42703|no such column|referenced column|column .* does not exist",
        "it names a column that is not there",
        _SHELL,
    ),
    (r"^42|syntax error|parser error|incomplete input", "it is no query that the database understands", _SHELL),
    (r"^08|^57P|connect|terminat|server closed|translate host|timeout", _REACH, "try again; nothing was written"),
    (r"not a database|not a valid|malformed|corrupt", _DAMAGED, "check --uri"),
)


@dataclass(frozen=True)
class SqlSource:
    """The rows of a query; it is run again at each pass.

    Attributes:
        names: its columns. order: the column that it is sorted by.

    Raises:
        UsageError: an address of no known kind, or with a password in it. MissingExtra: no driver for it.
        InputError: what the database says of the query, in our words.
    """

    query: str = field(repr=False)
    uri: str = field(repr=False)
    order: str | None = None
    names: tuple[str, ...] = field(init=False)
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        _refuse_password(self.uri)
        with self._run(f"{self._inner} LIMIT 0") as (names, _):
            if len(set(names)) < len(names):
                raise InputError("a column name stands twice", where=WHERE, hint="give one an AS")
            object.__setattr__(self, "names", tuple(names))

    def sorted_by(self, column: str) -> SqlSource:
        """The same rows in the order of a column, which is the same at each pass."""
        return SqlSource(self.query, self.uri, column)

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All rows of the columns named."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        columns = ", ".join(map(_quoted, wanted)) or "*"
        order = f" ORDER BY {_quoted(self.order)}" if self.order else ""
        with self._run(f"SELECT {columns} FROM (\n{_bare(self.query)}\n) AS clinveil_notes{order}") as (_, batches):
            while (batch := _said(lambda: next(batches, None))) is not None:
                yield batch

    @property
    def _inner(self) -> str:
        return f"SELECT * FROM (\n{_bare(self.query)}\n) AS clinveil_notes"

    @contextmanager
    def _run(self, query: str) -> Iterator[tuple[list[str], Iterator[pa.RecordBatch]]]:
        kind = _parts(self.uri)["kind"]
        if kind not in _DRIVERS:
            hint = f"one of {', '.join(f'{name}://' for name in _DRIVERS)}"
            raise UsageError("no kind of database that is known", where="--uri", hint=hint)
        manager = _DRIVERS[kind](self.uri, query)
        opened = _said(manager.__enter__)
        try:
            yield opened
        finally:
            manager.__exit__(None, None, None)


class QueryPath(type(Path())):  # type: ignore[misc]
    """A query where the code has a path, for commands that do nothing but read: it is run at each pass."""

    source: SqlSource

    def __new__(cls, source: SqlSource) -> QueryPath:
        """Of a source."""
        self: QueryPath = super().__new__(cls, WHERE)
        self.source = source
        return self

    def __init__(self, source: SqlSource) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(WHERE)


def sql_source(query: str, uri: str, settings: NotesSettings) -> SqlSource:
    """The rows of a query in the order of their ids. Raises as `SqlSource`, and InputError without a column of ids."""
    source = SqlSource(query, uri)
    return source.sorted_by(resolve(source.names, settings, WHERE).columns.note_id)


def copy_notes(source: SqlSource, folder: Path) -> None:
    """Write all rows as part files, from one reading of the database; the same rows give the same files.

    Raises InputError where there are none, or as `SqlSource`.
    """
    import pyarrow.parquet as pq

    size = number = rows = 0
    writer = None
    folder.mkdir(mode=0o700)
    try:
        for batch in source.read(source.names):
            rows += batch.num_rows
            if writer is None:
                writer = pq.ParquetWriter(folder / f"part-{number:05}.parquet", batch.schema, compression="zstd")
            writer.write_batch(batch)
            size += batch.nbytes
            if size >= PART_BYTES:
                writer.close()
                writer, size, number = None, 0, number + 1
    finally:
        if writer is not None:
            writer.close()
    if not rows:
        raise InputError("the query gives no rows", where=WHERE, hint=_SHELL)


def _refuse_password(uri: str) -> None:
    found = _parts(uri)
    user, sign, _ = found["who"].rpartition("@")
    if (sign and ":" in user) or "password" in (found["query"] or "").lower():
        what = "a password stands in the address, where all users of the machine can see it"
        raise UsageError(what, where="--uri", hint=f"leave it out, and {_CAME}")


def _parts(uri: str) -> dict[str, str]:
    found = _URI.fullmatch(uri)
    if not found:
        hint = "such as postgresql://host/db, duckdb:///notes.duckdb or sqlite:///notes.db"
        raise UsageError("no address of a database", where="--uri", hint=hint)
    return found.groupdict()


def _bare(query: str) -> str:
    return query.strip().rstrip(";")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _said(action: Callable[[], Any]) -> Any:
    """What an action gives; errors of a database in our words. Raises InputError."""
    try:
        return action()
    except ClinveilError:
        raise
    except Exception as error:  # noqa: BLE001  each library has errors of its own, and their words may be data
        state = str(getattr(error, "sqlstate", None) or "")
        words = " ".join(str(error).lower().split())
        for pattern, what, hint in _SAID:
            of_state, _, _ = pattern.partition("|")
            if (state and re.match(of_state, state)) or (not state and re.search(pattern, words)):
                raise InputError(what, where=WHERE, hint=hint) from None
        raise InputError(f"the database refused it{f' ({state})' * bool(state)}", where=WHERE, hint=_SHELL) from None


Rows = tuple[list[str], Iterator[pa.RecordBatch]]


@contextmanager
def _postgres(uri: str, query: str) -> Iterator[Rows]:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtra("adbc-driver-postgresql", "sql") from None
    with closing(dbapi.connect(uri)) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(query)
        reader = cursor.fetch_record_batch()
        yield reader.schema.names, iter(reader)


@contextmanager
def _duckdb(uri: str, query: str) -> Iterator[Rows]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("duckdb", "sql") from None
    # Else it would fetch extensions from its makers when a query names what it does not know.
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with closing(duckdb.connect(str(_file(uri)), read_only=True, config=offline)) as connection:
        done = connection.sql(query)  # a relation streams; what `execute` gives is held whole
        read = done.to_arrow_reader if hasattr(done, "to_arrow_reader") else done.fetch_arrow_reader
        reader = read(BATCH_ROWS)
        yield reader.schema.names, iter(reader)


@contextmanager
def _sqlite(uri: str, query: str) -> Iterator[Rows]:
    """A column of SQLite may hold a number here and a text there, so all values come as text."""
    import sqlite3

    with closing(sqlite3.connect(f"{_file(uri).absolute().as_uri()}?mode=ro", uri=True)) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        yield names, _as_text(names, cursor)


def _as_text(names: list[str], cursor: Any) -> Iterator[pa.RecordBatch]:
    while rows := cursor.fetchmany(BATCH_ROWS):
        if any(isinstance(value, bytes) for row in rows for value in row):
            raise InputError("a column holds bytes", where=WHERE, hint="leave it out, or CAST it AS TEXT")
        texts = ([None if value is None else str(value) for value in column] for column in zip(*rows, strict=True))
        yield pa.record_batch([pa.array(column, pa.large_string()) for column in texts], names=names)


def _file(uri: str) -> Path:
    """The file of a database: `sqlite:///notes.db` beside us, `sqlite:////data/notes.db` from the root."""
    found = _parts(uri)
    path = Path(found["who"] + found["path"][1:] if not found["who"] else found["who"] + found["path"])
    if not path.is_file():
        raise InputError("no such database file", where=path.name, hint="check --uri: three slashes, then the path")
    return path


_DRIVERS: dict[str, Callable[[str, str], AbstractContextManager[Rows]]] = {
    "postgresql": _postgres,
    "postgres": _postgres,
    "duckdb": _duckdb,
    "sqlite": _sqlite,
}
