"""Notes from a database: the rows of one query as a stream, sorted by id.

Postgres is read through ADBC, DuckDB and SQLite through their Python libraries. Databases are
opened read-only, by file mode or transaction. A database's error message may quote data, so it is
replaced with one of our own messages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinveil.core import ClinveilError, InputError, MissingExtra, NotesSettings, UsageError
from clinveil.corpus.columns import resolve
from clinveil.corpus.corpus import BATCH_ROWS

WHERE = "--from-sql"
PART_BYTES = 128 << 20
_URI = re.compile(
    r"(?P<kind>[a-z]+)://(?P<host>[^/?]*)(?P<path>/?[^?]*)(?:\?(?P<query>.*))?", re.DOTALL
)
_DAMAGED = "the file is not a database of this type, or is damaged"
_SHELL = "test the query in the database's own shell"
_CAME = "set PGPASSWORD or ~/.pgpass; see docs/large-data.md"
_REACH = "the database cannot be reached, or the connection was lost"
# Patterns for SQLSTATE or, without one, for the message; then our message and hint.
_ERRORS = (
    (r"^28|password|authentication", "the database denied access to this user", _CAME),
    (r"^3D000|database .* does not exist", "the database does not exist", "check --uri"),
    (
        r"^42501|^25006|permission denied|read-?only",
        "the query needs write access or other permissions",
        _SHELL,
    ),
    (
        r"^42P01|no such table|table with name|relation .* does not exist",
        "unknown table in the query",
        _SHELL,
    ),
    (
        r"^42703|no such column|referenced column|column .* does not exist",
        "unknown column in the query",
        _SHELL,
    ),
    (r"^42|syntax error|parser error|incomplete input", "invalid SQL query", _SHELL),
    (
        r"^08|^57P|connect|terminat|server closed|translate host|timeout",
        _REACH,
        "try again; nothing was written",
    ),
    (r"not a database|not a valid|malformed|corrupt", _DAMAGED, "check --uri"),
)


@dataclass(frozen=True)
class SqlSource:
    """The rows of a query, which runs again in each pass.

    Attributes:
        names: its columns. order: the column to sort by.

    Raises:
        UsageError: an unsupported URI, or one with a password. MissingExtra: its driver is not
            installed.
        InputError: the database rejects the query; the message is ours.
    """

    query: str = field(repr=False)
    uri: str = field(repr=False)
    order: str | None = None
    names: tuple[str, ...] = field(init=False)
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        parts = _parts(self.uri)
        user, sign, _ = parts["host"].rpartition("@")
        if (sign and ":" in user) or "password" in (parts["query"] or "").lower():
            problem = "the URI contains a password, which other users of this machine can see"
            raise UsageError(problem, where="--uri", hint=f"remove it and {_CAME}")
        with self._run(self._select("*") + " LIMIT 0") as (names, _):
            if len(set(names)) < len(names):
                raise InputError(
                    "duplicate column name in the query", where=WHERE, hint="rename one with AS"
                )
            object.__setattr__(self, "names", tuple(names))

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the given columns."""
        wanted = list(dict.fromkeys((*ids, *texts, *kept)))
        order = f" ORDER BY {_quoted(self.order)}" if self.order else ""
        with self._run(self._select(", ".join(map(_quoted, wanted)) or "*") + order) as (
            _,
            batches,
        ):
            while (batch := _translated(lambda: next(batches, None))) is not None:
                yield batch

    def _select(self, columns: str) -> str:
        return f"SELECT {columns} FROM (\n{self.query.strip().rstrip(';')}\n) AS clinveil_notes"

    @contextmanager
    def _run(self, query: str) -> Iterator[tuple[list[str], Iterator[pa.RecordBatch]]]:
        kind = _parts(self.uri)["kind"]
        if kind not in _DRIVERS:
            hint = f"use one of {', '.join(f'{name}://' for name in _DRIVERS)}"
            raise UsageError("unsupported database URI", where="--uri", hint=hint)
        with ExitStack() as stack:
            yield _translated(lambda: stack.enter_context(_DRIVERS[kind](self.uri, query)))


class QueryPath(type(Path())):  # type: ignore[misc]
    """A query used in place of a path, for read-only commands; it runs in each pass."""

    source: SqlSource

    def __new__(cls, source: SqlSource) -> QueryPath:
        """Create from a source."""
        self: QueryPath = super().__new__(cls, WHERE)
        self.source = source
        return self

    def __init__(self, source: SqlSource) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(WHERE)


def sql_source(query: str, uri: str, settings: NotesSettings) -> SqlSource:
    """Return the rows of a query sorted by id. Raises like `SqlSource`, and InputError without an
    id column.
    """
    source = SqlSource(query, uri)
    several = settings.text
    one_text = settings.but(text=several[0]) if isinstance(several, tuple) else settings
    return replace(source, order=resolve(source.names, one_text, WHERE).columns.note_id)


def copy_notes(source: SqlSource, folder: Path) -> None:
    """Write all rows as part files in one pass over the database; the same rows give the same
    files.

    Raises InputError for an empty result, and like `SqlSource`.
    """
    import pyarrow.parquet as pq

    size = number = rows = 0
    writer = None
    folder.mkdir(mode=0o700)
    try:
        for batch in source.read(source.names):
            rows += batch.num_rows
            if writer is None:
                writer = pq.ParquetWriter(
                    folder / f"part-{number:05}.parquet", batch.schema, compression="zstd"
                )
            writer.write_batch(batch)
            size += batch.nbytes
            if size >= PART_BYTES:
                writer.close()
                writer = None
                size = 0
                number = number + 1
    finally:
        if writer is not None:
            writer.close()
    if not rows:
        raise InputError("the query returns no rows", where=WHERE, hint=_SHELL)


def _parts(uri: str) -> dict[str, str]:
    match = _URI.fullmatch(uri)
    if not match:
        hint = "use for example postgresql://host/db, duckdb:///notes.duckdb or sqlite:///notes.db"
        raise UsageError("not a database URI", where="--uri", hint=hint)
    return match.groupdict()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _translated(action: Callable[[], Any]) -> Any:
    """Return the result of an action; turn a database's errors into InputError with our
    messages.
    """
    try:
        return action()
    except ClinveilError:
        raise
    # Each library has its own errors, and their messages may contain data.
    except Exception as error:  # noqa: BLE001
        state = str(getattr(error, "sqlstate", None) or "")
        words = " ".join(str(error).lower().split())
        for pattern, problem, hint in _ERRORS:
            of_state, _, _ = pattern.partition("|")
            if (state and re.match(of_state, state)) or (not state and re.search(pattern, words)):
                raise InputError(problem, where=WHERE, hint=hint) from None
        code = f" (SQLSTATE {state})" if state else ""
        raise InputError(
            f"the database rejected the query{code}", where=WHERE, hint=_SHELL
        ) from None


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
    # Otherwise DuckDB downloads extensions for unknown functions in a query.
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with closing(duckdb.connect(str(_file(uri)), read_only=True, config=offline)) as connection:
        # A relation is streamed; the result of `execute` is held in memory.
        relation = connection.sql(query)
        read = (
            relation.to_arrow_reader
            if hasattr(relation, "to_arrow_reader")
            else relation.fetch_arrow_reader
        )
        reader = read(BATCH_ROWS)
        yield reader.schema.names, iter(reader)


@contextmanager
def _sqlite(uri: str, query: str) -> Iterator[Rows]:
    """Run a query in SQLite; all values become text, because a column may mix numbers and text."""
    import sqlite3

    with closing(
        sqlite3.connect(f"{_file(uri).absolute().as_uri()}?mode=ro", uri=True)
    ) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        yield names, _as_text(names, cursor)


def _as_text(names: list[str], cursor: Any) -> Iterator[pa.RecordBatch]:
    while rows := cursor.fetchmany(BATCH_ROWS):
        if any(isinstance(value, bytes) for row in rows for value in row):
            raise InputError(
                "a column contains bytes", where=WHERE, hint="omit it, or CAST it AS TEXT"
            )
        texts = (
            [None if value is None else str(value) for value in column]
            for column in zip(*rows, strict=True)
        )
        yield pa.record_batch(
            [pa.array(column, pa.large_string()) for column in texts], names=names
        )


def _file(uri: str) -> Path:
    """Return the file of a database: `sqlite:///notes.db` is relative, `sqlite:////data/notes.db`
    absolute.
    """
    parts = _parts(uri)
    path = Path(parts["host"] + parts["path"] if parts["host"] else parts["path"][1:])
    if not path.is_file():
        raise InputError(
            "database file not found",
            where=path.name,
            hint="check --uri: three slashes, then the path",
        )
    return path


_DRIVERS: dict[str, Callable[[str, str], AbstractContextManager[Rows]]] = {
    "postgresql": _postgres,
    "postgres": _postgres,
    "duckdb": _duckdb,
    "sqlite": _sqlite,
}
