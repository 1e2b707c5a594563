"""Delta tables: the current version is read, and nothing of an earlier one."""

import sys

import pyarrow as pa
import pytest

from clinveil.core import InputError, MissingExtra
from clinveil.corpus import open_corpus, rows

deltalake = pytest.importorskip("deltalake")


def ids(corpus) -> list[str]:
    return sorted(note.note_id for note in rows(corpus))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "notes"
    first = {"note_id": ["n1", "n2"], "text": ["a", "b"], "unit": ["A /1", "B"]}
    deltalake.write_deltalake(path, pa.table(first), partition_by=["unit"])
    more = {"note_id": ["n3"], "text": ["c"], "unit": ["B"], "score": [1.5]}
    deltalake.write_deltalake(path, pa.table(more), mode="append", schema_mode="merge")
    return path


def test_the_current_version_is_read_with_partitions_and_columns_that_came_later(table):
    assert ids(open_corpus(table)) == ["n1", "n2", "n3"]
    deltalake.DeltaTable(table).delete("note_id = 'n1'")
    assert len(list(table.rglob("*.parquet"))) == 3  # the file of the deleted note is still there
    corpus = open_corpus(table, keep=("unit", "score"))
    assert ids(corpus) == ["n2", "n3"]
    found = pa.Table.from_batches(list(corpus.batches())).to_pylist()
    assert {row["note_id"]: (row["unit"], row["score"]) for row in found} == {
        "n2": ("B", None),
        "n3": ("B", 1.5),
    }
    assert {one.name for one in corpus.parts} == {"notes (part 1 of 2)", "notes (part 2 of 2)"}


def test_partition_values_are_those_of_the_log(table):
    found = pa.Table.from_batches(list(open_corpus(table, keep=("unit",)).batches())).to_pylist()
    assert {row["note_id"]: row["unit"] for row in found} == {"n1": "A /1", "n2": "B", "n3": "B"}


def test_files_of_a_table_are_not_read_past_its_log(table):
    for path in (
        table.parent,
        table / "*" / "*.parquet",
        table / "unit=B",
        table / "unit=B" / "*.parquet",
    ):
        with pytest.raises(InputError, match="the files belong to a Delta table"):
            open_corpus(path)


def test_without_the_library_nothing_is_read(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingExtra, match=r"pip install 'clinveil\[delta\]'"):
        open_corpus(table)


def test_tables_that_cannot_be_read(table, tmp_path):
    log = sorted((table / "_delta_log").glob("*.json"))[-1]
    log.write_text('{"commitInfo": no JSON')
    with pytest.raises(InputError, match="the Delta log cannot be read"):
        open_corpus(table)
    (tmp_path / "none" / "_delta_log").mkdir(parents=True)
    with pytest.raises(InputError, match="the Delta log cannot be read"):
        open_corpus(tmp_path / "none")
    deltalake.write_deltalake(tmp_path / "empty", pa.table({"note_id": ["a"], "text": ["b"]}))
    deltalake.DeltaTable(tmp_path / "empty").delete()
    with pytest.raises(InputError, match="the table is empty"):
        open_corpus(tmp_path / "empty")


def test_a_file_of_the_table_that_is_gone_is_named(table):
    next(table.rglob("*.parquet")).unlink()
    with pytest.raises(InputError, match=r"no such file or folder"):
        ids(open_corpus(table))


@pytest.mark.parametrize("broken", ["vectors", "mapping"])
def test_rows_that_only_the_log_knows_as_deleted_are_not_read(table, monkeypatch, broken):
    real = deltalake.DeltaTable

    class Told(real):
        def protocol(self):
            return real.protocol(self)._replace(reader_features=["deletionVectors"])

        def deletion_vectors(self):
            return pa.table({"filepath": ["x"]})

        def metadata(self):
            found = real.metadata(self)
            if broken == "mapping":
                return type(
                    "M",
                    (),
                    {
                        "configuration": {"delta.columnMapping.mode": "name"},
                        "partition_columns": [],
                    },
                )
            return found

    if broken == "mapping":
        Told.protocol = real.protocol
    monkeypatch.setattr(deltalake, "DeltaTable", Told)
    with pytest.raises(
        InputError,
        match="still contain deleted rows" if broken == "vectors" else "uses column mapping",
    ):
        open_corpus(table)


def test_a_table_in_a_store(table):
    from stores import store

    with pytest.MonkeyPatch.context() as patch, store(patch) as server:
        for file in table.rglob("*"):
            if file.is_file():
                with server.files.open_output_stream(
                    f"notes/{file.relative_to(table.parent)}", compression=None
                ) as out:
                    out.write(file.read_bytes())
        corpus = open_corpus("s3://notes/notes", keep=("unit",))
        assert ids(corpus) == ["n1", "n2", "n3"]
        with pytest.raises(InputError, match="the files belong to a Delta table"):
            open_corpus("s3://notes/notes/**/*.parquet")
