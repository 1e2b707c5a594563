"""Notes from a database: Postgres, DuckDB and SQLite, read in order, never written, and no word of
an error's data.
"""

import sqlite3
import sys

import pytest
from servers import PASSWORD, postgres

from clinveil.cli import main
from clinveil.core import InputError, MissingExtra, NotesSettings, UsageError
from clinveil.corpus import QueryPath, copy_notes, open_corpus, rows, sql_source

ROWS = [(3, 7, "Seen by Dr. Miller, café."), (1, 7, 'Well, no "fever".'), (2, 8, "Rest.")]
TABLE = "CREATE TABLE notes (id BIGINT, patient_id BIGINT, note TEXT);"
INSERT = TABLE + "".join(f"INSERT INTO notes VALUES ({i}, {p}, '{t}');" for i, p, t in ROWS)
QUERY = "SELECT id, patient_id, note FROM notes;"
HOW = NotesSettings()


@pytest.fixture(scope="module")
def server():
    with postgres() as made:
        made.sql(INSERT)
        yield made


@pytest.fixture(params=["postgres", "duckdb", "sqlite"])
def uri(request, tmp_path):
    """The address of a database with the notes."""
    if request.param == "postgres":
        return request.getfixturevalue("server").uri
    if request.param == "sqlite":
        with sqlite3.connect(tmp_path / "notes.db") as made:
            made.executescript(INSERT)
        made.close()
        return f"sqlite:///{tmp_path / 'notes.db'}"
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "notes.duckdb")) as made:
        made.execute(INSERT)
    return f"duckdb:///{tmp_path / 'notes.duckdb'}"


def read(query: str, uri: str, **how) -> list[tuple]:
    settings = HOW.but(**how)
    return [
        tuple(note)
        for note in rows(open_corpus(QueryPath(sql_source(query, uri, settings)), settings))
    ]


def test_rows_come_in_the_order_of_their_ids_at_every_pass(uri):
    corpus = open_corpus(QueryPath(sql_source(QUERY, uri, HOW)))
    once = [tuple(note) for note in rows(corpus)]
    assert once == [(str(i), str(p), t) for i, p, t in sorted(ROWS)]
    assert [tuple(note) for note in rows(corpus)] == once
    assert (
        read("WITH a AS (SELECT * FROM notes) SELECT * FROM a WHERE id > 1 -- late", uri)
        == once[1:]
    )


def test_a_copy_is_the_same_each_time(uri, tmp_path):
    for name in ("a", "b"):
        copy_notes(sql_source("SELECT * FROM notes", uri, HOW), tmp_path / name)
    assert (tmp_path / "a" / "part-00000.parquet").read_bytes() == (
        tmp_path / "b" / "part-00000.parquet"
    ).read_bytes()
    assert [note.note_id for note in rows(open_corpus(tmp_path / "a"))] == ["1", "2", "3"]
    with pytest.raises(InputError, match="the query returns no rows"):
        copy_notes(sql_source("SELECT * FROM notes WHERE id > 9", uri, HOW), tmp_path / "c")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT patient_id, note FROM notes", "cannot tell which column is the id"),
        ("SELECT id, note FROM Miller", "unknown table in the query"),
        ("SELECT id, Miller FROM notes", "unknown column in the query"),
        ("SELECT FROM WHERE Miller", "invalid SQL query"),
        ("DELETE FROM notes WHERE note = 'Miller'", "invalid SQL query"),
        ("", "invalid SQL query"),
    ],
)
def test_a_query_that_does_not_fit_is_one_line_without_its_words(uri, query, said):
    with pytest.raises(InputError, match=said) as caught:
        read(query, uri)
    assert "Miller" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__cause__ is None
    assert len(read(QUERY, uri)) == 3  # nothing was written


def test_an_error_while_rows_come_shows_no_data(server):
    with pytest.raises(InputError, match="the database rejected the query") as caught:
        read(
            "SELECT id, note FROM notes WHERE note::int > 0", server.uri
        )  # Postgres quotes the note
    assert "Miller" not in str(caught.value)


def test_a_column_name_that_stands_twice(server):
    with pytest.raises(InputError, match="duplicate column name"):
        read("SELECT id, id, note FROM notes", server.uri)


def test_a_database_is_only_read(server, tmp_path):
    server.sql(
        "CREATE FUNCTION spoil() RETURNS BIGINT AS 'DELETE FROM notes RETURNING id' LANGUAGE SQL"
    )
    with pytest.raises(InputError, match="the query needs write access"):
        read("SELECT spoil() AS id, 'x' AS text", server.uri)
    assert len(read(QUERY, server.uri)) == 3


def test_a_wrong_password_and_a_lost_server(server, monkeypatch, capfd):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert len(read(QUERY, server.by_tcp)) == 3
    monkeypatch.setenv("PGPASSWORD", "wrong-" + PASSWORD)
    run = ["inspect", "--from-sql", QUERY, "--uri", server.by_tcp]
    assert main(run) == 3
    said = capfd.readouterr().err
    assert "denied access to this user" in said
    assert PASSWORD not in said
    with pytest.raises(InputError, match="the database does not exist"):
        read(QUERY, server.uri.replace("/postgres?", "/nothing?"))
    with pytest.raises(InputError, match="cannot be reached"):
        read(QUERY, "postgresql://reader@127.0.0.1:1/postgres")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("postgresql://me:hunter2@host/db", "contains a password"),
        ("postgresql://me@host/db?password=hunter2", "contains a password"),
        ("oracle://hunter2/db", "unsupported database URI"),
        ("hunter2", "not a database URI"),
    ],
)
def test_an_address_that_is_refused_is_not_shown(uri, said):
    with pytest.raises(UsageError, match=said) as caught:
        sql_source(QUERY, uri, HOW)
    assert "hunter2" not in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"none.db: database file not found"):
        sql_source(QUERY, f"sqlite:///{tmp_path / 'none.db'}", HOW)
    (tmp_path / "text.db").write_text("no database at all" * 99)
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(InputError, match="the file is not a database of this type"):
            sql_source(QUERY, f"{kind}:///{tmp_path / 'text.db'}", HOW)


def test_without_the_driver(monkeypatch, tmp_path):
    (tmp_path / "a.duckdb").write_bytes(b"x")
    for module, uri in (
        ("duckdb", f"duckdb:///{tmp_path}/a.duckdb"),
        ("adbc_driver_postgresql", "postgresql://h/d"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtra, match=r"pip install 'clinveil\[sql\]'"):
            sql_source(QUERY, uri, HOW)


def test_commands_take_a_query_in_place_of_notes(uri, tmp_path, capfd):
    asked = ["--from-sql", "SELECT * FROM notes", "--uri", uri]
    assert main(["inspect", *asked]) == 0
    out = tmp_path / "free.csv"
    assert main(["deidentify", *asked, "-o", str(out), "--workers", "1", "-q", "--keep-ids"]) == 0
    assert [note.note_id for note in rows(open_corpus(out))] == ["1", "2", "3"]
    assert "Miller" not in out.read_text()
    left = {item.name for item in tmp_path.iterdir()} - {"notes.db", "notes.duckdb"}
    assert left == {"free.csv", "free.csv.vault"}  # the copy of the rows is gone
    assert main(["deidentify", "-o", str(tmp_path / "x.csv")]) == 2
    assert main(["deidentify", "a.csv", *asked, "-o", str(tmp_path / "x.csv")]) == 2
    assert main(["inspect", *asked[:2]]) == 2
    assert "NOTES" in capfd.readouterr().err


def test_a_server_that_goes_away_is_one_line():
    with postgres() as made:
        made.sql(INSERT)
        corpus = open_corpus(QueryPath(sql_source(QUERY, made.uri, HOW)))
        made.stop()
        with pytest.raises(InputError, match="cannot be reached, or the connection was lost"):
            list(corpus.batches())
