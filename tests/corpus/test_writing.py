"""Writing under source names: kept types, what a format cannot carry, and a disk that fills."""

from __future__ import annotations

import datetime
import errno
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import InputError, NotesSettings
from clinveil.corpus import ROLE_FIELDS, Columns, Writer, memory_corpus, open_corpus, write_corpus
from clinveil.corpus.corpus import Rebatcher, rebatch, text_bytes

PLAIN = Columns(text="text", note_id="note_id", order=("note_id", "text"))


def notes(*texts: str | None, kept: pa.Array | None = None) -> pa.RecordBatch:
    ids = [str(i) for i in range(len(texts))]
    arrays = [pa.array(ids), pa.array(ids), pa.array(texts, pa.large_string())]
    schema = pa.schema([*ROLE_FIELDS, *([pa.field("kept", kept.type)] if kept is not None else [])])
    return pa.record_batch([*arrays, *([kept] if kept is not None else [])], schema=schema)


def with_kept(**more: str) -> Columns:
    return Columns(
        text="text", note_id="note_id", keep=("kept",), order=("note_id", "kept", "text"), **more
    )


KEPT = [
    pa.array([1, None]),
    pa.array([1.5, None]),
    pa.array([True, None]),
    pa.array([datetime.datetime(2020, 1, 2, 3, 4, 5), None]),
    pa.array([datetime.date(1899, 12, 31), None]),
    pa.array([["a", "b"], []]),
    pa.array([b"\xff", None]),
]


@pytest.mark.parametrize("kept", KEPT, ids=lambda a: str(a.type))
def test_parquet_keeps_types(kept: pa.Array, tmp_path: Path) -> None:
    write_corpus([notes("x", "y", kept=kept)], tmp_path / "a.parquet", with_kept(), ".parquet")
    corpus = open_corpus(tmp_path / "a.parquet", keep=("kept",))
    assert next(corpus.batches()).column(3).equals(kept)
    write_corpus(corpus.batches(), tmp_path / "b.parquet", corpus.columns, corpus.suffix)
    assert pq.read_table(tmp_path / "b.parquet").equals(pq.read_table(tmp_path / "a.parquet"))


def test_parquet_is_zstd_in_row_groups_of_about_2000(tmp_path: Path) -> None:
    small = [notes(*["some text"] * 70) for _ in range(100)]
    assert write_corpus(small, tmp_path / "a.parquet", PLAIN, ".parquet") == 7000
    facts = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert [facts.row_group(i).num_rows for i in range(facts.num_row_groups)] == [
        2000,
        2000,
        2000,
        1000,
    ]
    assert facts.row_group(0).column(1).compression == "ZSTD"


JSON_VALUES = [
    ["a", "", None, "b"],
    [1, 2, None, -3],
    [True, False, None, True],
    [1.5, 2.0, None, 1e300],
    [1, 2.0, "x", None],
    [1, True, None, 0],
    [2**70, 1, None, 3],
    [["a", 1], {"b": None}, None, "c"],
    [None, None, None, None],
    ["\ud800", "a", None, "b"],
]


@pytest.mark.parametrize("values", JSON_VALUES, ids=str)
def test_jsonl_keeps_values_of_any_type(values: list[object], tmp_path: Path) -> None:
    lines = [json.dumps({"kept": v, "note_id": str(i), "text": "x"}) for i, v in enumerate(values)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    corpus = open_corpus(tmp_path / "a.jsonl", keep=("kept",))
    write_corpus(corpus.batches(), tmp_path / "b.jsonl", corpus.columns, corpus.suffix)
    back = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [list(r) for r in back] == [["kept", "note_id", "text"]] * len(values)
    assert [json.dumps(r["kept"]) for r in back] == [json.dumps(v) for v in values]


def test_a_type_that_changes_far_down_the_file(tmp_path: Path) -> None:
    lines = [
        json.dumps({"note_id": i, "text": "x", "kept": None if i < 5000 else i})
        for i in range(5001)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    batches = list(open_corpus(tmp_path / "a.jsonl", keep=("kept",)).batches())
    assert {str(b.schema.field("kept").type) for b in batches} == {"int64"}
    assert batches[-1].column(3).to_pylist()[-1] == 5000


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".csv.gz"])
def test_no_rows_make_a_file_with_a_header(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    assert write_corpus([], path, with_kept(), suffix) == 0
    with pytest.raises(InputError, match=r"no notes|empty"):
        list(open_corpus(path, keep=("kept",)).batches())


def test_csv_text_is_quoted_and_numbers_are_not(tmp_path: Path) -> None:
    write_corpus(
        [notes("007", "", None, kept=pa.array([1, 2, None]))],
        tmp_path / "a.csv",
        with_kept(),
        ".csv",
    )
    assert (
        tmp_path / "a.csv"
    ).read_bytes() == b'"note_id","kept","text"\n"0",1,"007"\n"1",2,""\n"2",,\n'


def test_awkward_column_names(tmp_path: Path) -> None:
    columns = Columns(text='the "text",\n', note_id=" id", order=('the "text",\n', " id"))
    for suffix in (".csv", ".tsv", ".parquet", ".jsonl"):
        path = tmp_path / f"a{suffix}"
        write_corpus([notes("x")], path, columns, suffix)
        corpus = open_corpus(path, NotesSettings(text='the "text",\n', id=" id"))
        assert corpus.columns == columns
        assert next(corpus.batches()).column(2).to_pylist() == ["x"]


NUL = r"row 3 .*: the text contains a NUL character"
# The suffix, the texts, the kept column, and what the refusal contains.
NOT_CARRIED = [
    (".csv", ["x"], pa.array([["a"]]), "kept: a column of lists"),
    (".tsv.gz", ["x"], pa.array([["a"]]), "kept: a column of lists"),
    (".jsonl", ["x"], pa.array([b"x"]), "NaN or bytes"),
    (".jsonl", ["x"], pa.array([float("nan")]), "NaN or bytes"),
    (".csv", ["x", None, "zyzzyva\0"], None, NUL),
    (".tsv", ["x", None, "zyzzyva\0"], None, NUL),
    ("", ["x", "", "zyzzyva\0"], None, NUL),
    ("", [None], None, "a null text"),
    ("", ["x"], pa.array(["k"]), "1 columns besides"),
]


@pytest.mark.parametrize(("suffix", "texts", "kept", "message"), NOT_CARRIED)
def test_what_a_format_cannot_carry_is_refused(
    suffix: str, texts: list[str | None], kept: pa.Array | None, message: str, tmp_path: Path
) -> None:
    columns = PLAIN if kept is None else with_kept()
    with pytest.raises(InputError, match=message) as caught:
        write_corpus([notes(*texts, kept=kept)], tmp_path / "a", columns, suffix)
    assert "zyzzyva" not in str(caught.value)


@pytest.mark.parametrize(
    "note_id", ["../x", "/etc/x", "a//b", "a/./b", ".", "..", "a/", "n\0", "x" * 300]
)
def test_an_id_that_is_no_file_name(note_id: str, tmp_path: Path) -> None:
    [batch] = memory_corpus([(note_id, "p", "x")]).batches()
    with pytest.raises(InputError, match="the id") as caught:
        write_corpus([batch], tmp_path / "a" / "b", PLAIN, "")
    assert note_id not in str(caught.value) or note_id in ".."
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_two_notes_of_one_file(tmp_path: Path) -> None:
    [batch] = memory_corpus([("x", "p", "1"), ("x", "p", "2")]).batches()
    with pytest.raises(InputError, match="row 2 of the output: the file of this id exists already"):
        write_corpus([batch], tmp_path / "a", PLAIN, "")


def test_times_of_files_do_not_give_the_order_away(tmp_path: Path) -> None:
    rows = [("z", "p", "1"), ("w/b", "p", "2"), ("a", "p", "3"), ("w/v/a", "p", "4")]
    write_corpus(memory_corpus(rows).batches(), tmp_path / "a", PLAIN, "")
    written = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert len(written) == 1 + len(rows) + 2
    day = datetime.datetime(1980, 1, 1, tzinfo=datetime.UTC).timestamp()
    assert {(p.stat().st_mtime, p.stat().st_mtime_ns) for p in written} == {(day, int(day) * 10**9)}


def test_parquet_column_names_with_dots(tmp_path: Path) -> None:
    table = pa.table(
        {"note.id": ["1"], "note.text": ["x"], "note": [{"text": "y"}], "note.text.b": ["z"]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = open_corpus(tmp_path / "a.parquet", NotesSettings(text="note.text", id="note.id"))
    assert next(corpus.batches()).to_pydict() == {
        "note_id": ["1"],
        "patient_id": ["1"],
        "text": ["x"],
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".csv.gz", ".jsonl"])
def test_a_full_disk_is_told_by_its_own_error(suffix: str) -> None:
    """The command line turns this errno into exit 5 and one line."""
    texts = [f"{i * 7919} text that does not compress well {hash(str(i))}" for i in range(20_000)]
    with pytest.raises(OSError, match=r".") as caught:
        write_corpus([notes(*texts)], Path("/dev/full"), PLAIN, suffix)
    assert caught.value.errno == errno.ENOSPC


def test_an_error_of_the_caller_passes_through_the_writer(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Writer(tmp_path / "a.parquet", PLAIN, ".parquet") as writer:
        writer.write(notes("x"))
        raise KeyError


# --- batches
# ---------------------------------------------------------------------------------------


def test_rebatching_keeps_rows_and_fills_batches() -> None:
    sizes = [1, 2500, 0, 1999, 4000, 3]
    batches = [notes(*[f"{i}:{j}" for j in range(n)]) for i, n in enumerate(sizes)]
    out = list(rebatch(batches))
    assert [b.num_rows for b in out] == [2000, 2000, 2000, 2000, 503]
    expected = [t for b in batches for t in b.column(2).to_pylist()]
    assert [t for b in out for t in b.column(2).to_pylist()] == expected


def test_long_notes_make_small_batches() -> None:
    rebatcher = Rebatcher(rows=10, max_bytes=100)
    lengths = [30, 30, 30, 30, 250, 5, 100, 1, None, 99, 1]
    batch = notes(*[None if n is None else "x" * n for n in lengths])
    assert text_bytes(batch).tolist() == [n or 0 for n in lengths]
    out = [*rebatcher.push(batch), *rebatcher.flush()]
    assert [text_bytes(b).tolist() for b in out] == [
        [30, 30, 30],
        [30],
        [250],
        [5],
        [100],
        [1, 0, 99],
        [1],
    ]
    assert not list(rebatcher.flush())


def test_bytes_are_counted_in_slices_too() -> None:
    assert text_bytes(notes("a", "bbb", "é").slice(1)).tolist() == [3, 2]
