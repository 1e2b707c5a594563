"""`--from-sql QUERY --uri URI` in place of NOTES, for every command that reads notes.

A command that makes something reads several times: it gets a copy of the rows, made in one reading, in a private folder
beside what it makes; the folder is gone at the end, or, after a kill, with the next run. So the database is asked once,
and all passes see the same rows. A command that makes nothing runs the query at each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from clinveil.core.errors import UsageError
from clinveil.core.remote import RemotePath
from clinveil.core.settings import NotesSettings

FromSql = Annotated[str | None, typer.Option("--from-sql", help="In place of NOTES: the rows of this query.")]
Uri = Annotated[
    str | None, typer.Option("--uri", help="The database: postgresql://host/db, duckdb:///FILE, sqlite:///FILE.")
]
COPY = "query"


@contextmanager
def with_notes(arguments: dict[str, Any], settings: object) -> Iterator[dict[str, Any]]:
    """The arguments of a command, with its notes: a path, or the rows of the query. Raises UsageError without one."""
    query, uri = arguments.pop("from_sql", None), arguments.pop("uri", None)
    if query is None and uri is None:
        if arguments.get("notes") is None:
            raise UsageError("Missing argument 'NOTES'", hint="a path, or --from-sql QUERY --uri URI")
        yield arguments
        return
    if not query or not uri or arguments.get("notes") is not None:
        raise UsageError("--from-sql QUERY and --uri URI go together, in place of NOTES")
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
        hint = "--vault FOLDER, on this machine"
        raise UsageError("where OUT is in a store, the vault must be named", where="--from-sql", hint=hint)
    if here is None:
        yield QueryPath(source)
        return
    refuse_nameless(here)
    with workplace(here) as folder:
        with owner_only():
            copy_notes(source, folder / COPY)
        yield folder / COPY
