"""`--from-sql QUERY --uri URI` in place of NOTES, for every command that reads notes.

A command with an output reads notes several times. It gets a copy of the rows in a private folder next to the output,
so the query runs once and all passes read the same rows. The folder is removed at the end, or by the next run after a
kill. A command without an output runs the query in each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.core.errors import UsageError
from clinveil.core.locations import RemotePath
from clinveil.core.settings import NotesSettings

FromSql = Annotated[str | None, typer.Option("--from-sql", help="Read notes with an SQL query instead of NOTES.")]
Uri = Annotated[
    str | None, typer.Option("--uri", help="Database: postgresql://host/db, duckdb:///FILE or sqlite:///FILE.")
]
COPY = "query"


@contextmanager
def with_notes(arguments: dict[str, Any], settings: object) -> Iterator[dict[str, Any]]:
    """Yield arguments with the path of the notes, or of the rows of the query. Raises UsageError without either."""
    query, uri = arguments.pop("from_sql", None), arguments.pop("uri", None)
    if query is None and uri is None:
        if arguments.get("notes") is None:
            raise UsageError("Missing argument 'NOTES'", hint="pass a path, or --from-sql QUERY --uri URI")
        yield arguments
        return
    if not query or not uri or arguments.get("notes") is not None:
        raise UsageError("--from-sql and --uri require each other and replace NOTES")
    with _rows(query, uri, getattr(settings, "notes", NotesSettings()), arguments) as notes:
        yield {**arguments, "notes": notes}


@contextmanager
def _rows(query: str, uri: str, how: NotesSettings, arguments: Mapping[str, Any]) -> Iterator[Path]:
    from clinveil.core.atomic import workplace
    from clinveil.core.files import owner_only, refuse_nameless
    from clinveil.corpus.sql import QueryPath, copy_notes, sql_source

    source = sql_source(query, uri, how)
    places = [arguments[name] for name in ("out", "vault") if isinstance(arguments.get(name), Path)]
    here = next((place for place in places if not isinstance(place, RemotePath)), None)
    if here is None and places:
        hint = "pass --vault FOLDER on this machine"
        raise UsageError("a remote OUT requires a local vault", where="--from-sql", hint=hint)
    if here is None:
        yield QueryPath(source)
        return
    refuse_nameless(here)
    with workplace(here) as folder:
        with owner_only():
            copy_notes(source, folder / COPY)
        yield folder / COPY
