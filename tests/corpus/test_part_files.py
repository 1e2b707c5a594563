"""Notes in part files: folders and patterns, what their folders' names say, and parts that do not
fit together.
"""

import gzip
import json
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import InputError, InputWarning, UsageError, fingerprint, refuse_nested
from clinveil.corpus import NotesCorpus, PartedCorpus, hashes, open_corpus, rows


def part(folder: Path, name: str, first: int, n: int = 3, **more: list) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    columns = {
        "note_id": [f"n{first + i}" for i in range(n)],
        "text": [f"note number {first + i}" for i in range(n)],
        **more,
    }
    pq.write_table(pa.table(columns), path)
    return path


def three(folder: Path) -> Path:
    for number in range(3):
        part(folder, f"part-{number}.parquet", 3 * number)
    return folder


def ids(corpus) -> list[str]:
    return [note.note_id for note in rows(corpus)]


def ids_of_part(corpus) -> list[str]:
    return ids(corpus)


def test_a_folder_of_parts_is_read_in_the_order_of_names_without_what_is_no_data(tmp_path):
    folder = three(tmp_path / "notes")
    for name in (
        "_SUCCESS",
        "_metadata",
        ".part-0.parquet.crc",
        "part-0.parquet.crc",
        ".hidden.parquet",
    ):
        (folder / name).write_bytes(b"x")
    part(folder / "_temporary", "part-9.parquet", 90)
    corpus = open_corpus(folder)
    assert isinstance(corpus, PartedCorpus)
    assert corpus.suffix == ".parquet"
    assert [one.name for one in corpus.parts] == [
        "part-0.parquet",
        "part-1.parquet",
        "part-2.parquet",
    ]
    assert ids(corpus) == [f"n{i}" for i in range(9)]
    assert corpus.guessed == ("text", "id")


def test_a_pattern_means_the_files_that_fit(tmp_path):
    folder = three(tmp_path / "notes")
    part(folder, "other.parquet", 90)
    corpus = open_corpus(str(folder / "part-*.parquet"))
    assert ids(corpus) == [f"n{i}" for i in range(9)]
    assert ids(open_corpus(tmp_path / "*" / "part-[01].parquet")) == [f"n{i}" for i in range(6)]
    assert len(ids(open_corpus(tmp_path / "**" / "*.parquet"))) == 12
    with pytest.raises(InputError, match="no file matches the pattern"):
        open_corpus(folder / "*.csv")
    os.rename(folder / "other.parquet", folder / "what[1].parquet")
    assert isinstance(open_corpus(folder / "what[1].parquet"), NotesCorpus)  # a name, not a pattern


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_parts_of_every_table_format(kind, packed, tmp_path):
    for number in range(2):
        note_id = f"n{number}"
        text = "one, two"
        line = (
            json.dumps({"id": note_id, "text": text}) if kind == "jsonl" else f'{note_id}\t"{text}"'
        )
        data = (line if kind == "jsonl" else f"id\ttext\n{line}").encode() + b"\n"
        data = data.replace(b"\t", b",") if kind == "csv" else data
        path = tmp_path / f"part-{number}.{kind}{packed}"
        with (
            pa.CompressedOutputStream(str(path), "zstd")
            if packed == ".zst"
            else (gzip.open(path, "wb") if packed else path.open("wb")) as file
        ):
            file.write(data)
    corpus = open_corpus(tmp_path)
    assert corpus.suffix == f".{kind}{packed}"
    assert [(n.note_id, n.text) for n in rows(corpus)] == [("n0", "one, two"), ("n1", "one, two")]


def test_keys_of_folders_are_columns(tmp_path):
    part(tmp_path / "year=2020" / "unit=A%20%2F1", "data.parquet", 0)
    part(tmp_path / "year=2021" / "unit=__HIVE_DEFAULT_PARTITION__", "data.parquet", 3)
    corpus = open_corpus(tmp_path, keep=("year", "unit"))
    found = pa.Table.from_batches(list(corpus.batches()))
    assert found.column("year").to_pylist() == ["2020"] * 3 + ["2021"] * 3
    assert found.column("unit").to_pylist() == ["A /1"] * 3 + [None] * 3
    assert [one.name for one in corpus.parts] == [
        "data.parquet (part 1 of 2)",
        "data.parquet (part 2 of 2)",
    ]
    assert "2020" not in str([one.name for one in corpus.parts])  # the names of folders may be data
    assert set(open_corpus(tmp_path).columns.dropped) == {"year", "unit"}
    one_year = open_corpus(tmp_path / "year=2020" / "*" / "*.parquet", keep=("unit",))
    assert ids(one_year) == ["n0", "n1", "n2"]


def test_keys_of_folders_that_do_not_fit(tmp_path):
    part(tmp_path / "a" / "year=2020", "a.parquet", 0)
    part(tmp_path / "a" / "month=1", "b.parquet", 3)
    with pytest.raises(InputError, match=r"a.parquet: its folder names have other keys"):
        open_corpus(tmp_path / "a")
    part(tmp_path / "b" / "text=x", "a.parquet", 0)
    with pytest.raises(InputError, match="a column has the same name as a key of the folder"):
        open_corpus(tmp_path / "b")


def test_a_part_is_read_in_another_process(tmp_path):
    part(tmp_path / "year=2020", "a.parquet", 0)
    part(tmp_path / "year=2021", "b.parquet", 3)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.jsonl").write_text('{"id": 1, "text": "a", "k": 1}\n')
    (tmp_path / "c" / "b.jsonl").write_text('{"id": 2, "text": "b", "k": "x"}\n')
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(ids_of_part, open_corpus(tmp_path / "y*", keep=("year",)).parts)) == [
            ["n0", "n1", "n2"],
            ["n3", "n4", "n5"],
        ]
        assert list(pool.map(ids_of_part, open_corpus(tmp_path / "c", keep=("k",)).parts)) == [
            ["1"],
            ["2"],
        ]
    assert ids(pickle.loads(pickle.dumps(open_corpus(tmp_path / "c")))) == ["1", "2"]


def test_parts_with_other_columns_are_refused_with_the_part_and_how(tmp_path):
    three(tmp_path)
    part(tmp_path, "part-1.parquet", 3, sex=["f"] * 3)
    with pytest.raises(
        InputError, match=r"part-1.parquet: has 1 column that part-0.parquet lacks \(columns: sex\)"
    ):
        open_corpus(tmp_path)
    (tmp_path / "part-1.parquet").unlink()
    pq.write_table(pa.table({"note_id": ["n4"], "Smith": ["x"]}), tmp_path / "part-2.parquet")
    with pytest.raises(
        InputError, match=r"part-2.parquet: lacks 1 column of part-0.parquet \(columns: text\)"
    ) as caught:
        open_corpus(tmp_path)
    assert "Smith" not in str(caught.value)  # a part without a header has words there


def test_the_type_of_a_kept_column_is_one(tmp_path):
    part(tmp_path, "a.parquet", 0, age=[1, 2, 3])
    part(tmp_path, "b.parquet", 3, age=pa.nulls(3))
    part(tmp_path, "c.parquet", 6, n=0, age=pa.array([], pa.int64()))
    corpus = open_corpus(tmp_path, keep=("age",))
    assert pa.Table.from_batches(list(corpus.batches())).column("age").to_pylist() == [
        1,
        2,
        3,
        None,
        None,
        None,
    ]
    part(tmp_path, "d.parquet", 9, age=["1", "2", "3"])
    assert len(ids(open_corpus(tmp_path))) == 9  # not kept: it does not matter
    with pytest.raises(
        InputError, match=r"d.parquet: a kept column has type string here and int64 in a.parquet"
    ):
        open_corpus(tmp_path, keep=("age",))


def test_json_lines_of_a_part_may_lack_a_kept_key_but_no_role(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "a", "k": 1}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2, "text": "b"}\n')
    (tmp_path / "c.jsonl").write_text('{"id": 3, "text": "c", "k": "x"}\n')
    found = pa.Table.from_batches(list(open_corpus(tmp_path, keep=("k",)).batches()))
    assert found.column("k").to_pylist() == ["1", None, '"x"']
    (tmp_path / "b.jsonl").write_text('{"id": 2, "words": "b"}\n')
    with pytest.raises(InputError, match=r"b.jsonl: has no text column, unlike other parts"):
        open_corpus(tmp_path)


def test_an_id_in_two_parts_names_both(tmp_path):
    three(tmp_path)
    part(tmp_path, "part-2.parquet", 1, n=2)
    corpus = open_corpus(tmp_path)
    said = r"part-2.parquet, row 1: duplicate id, already used in part-0.parquet, row 2"
    with pytest.raises(InputError, match=said):
        list(corpus.batches())
    with pytest.raises(InputError, match=said):
        corpus.refuse_repeats([hashes(ids) for part in corpus.parts for ids in part.ids()])


def test_a_damaged_part_says_so_when_it_is_read_and_the_others_can_be(tmp_path):
    three(tmp_path)
    (tmp_path / "part-1.parquet").write_bytes(b"PAR1 no more")
    corpus = open_corpus(tmp_path)
    first, damaged, last = corpus.parts
    assert ids(first) + ids(last) == ["n0", "n1", "n2", "n6", "n7", "n8"]
    with pytest.raises(InputError, match=r"part-1.parquet: not a Parquet file, or a damaged one"):
        ids(pickle.loads(pickle.dumps(damaged)))
    with pytest.raises(InputError, match=r"part-1.parquet: not a Parquet file"):
        ids(corpus)
    for number in (0, 2):
        (tmp_path / f"part-{number}.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"part-0.parquet: the file is empty"):
        open_corpus(tmp_path)


def test_parts_without_rows(tmp_path):
    part(tmp_path, "a.parquet", 0)
    pq.write_table(
        pa.table({"note_id": pa.array([], pa.string()), "text": pa.array([], pa.string())}),
        tmp_path / "b.parquet",
    )
    assert ids(open_corpus(tmp_path)) == ["n0", "n1", "n2"]
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InputError, match="contains no notes"):
        ids(open_corpus(tmp_path))


def test_several_formats_and_other_files(tmp_path):
    three(tmp_path)
    (tmp_path / "read.me").write_text("x")
    with pytest.warns(InputWarning, match="skipped 1 file of other types"):
        open_corpus(tmp_path)
    (tmp_path / "more.csv").write_text("id,text\n1,a\n")
    with (
        pytest.raises(InputError, match=r"files of several formats: .csv, .parquet"),
        pytest.warns(InputWarning),
    ):
        open_corpus(tmp_path)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    outside = part(tmp_path / "else", "x.parquet", 9)
    folder = three(tmp_path / "notes")
    (folder / "part-3.parquet").symlink_to(outside)
    with pytest.raises(InputError, match="a link points outside the folder"):
        open_corpus(folder)


def test_folders_of_a_file_a_note_stay_so(tmp_path):
    three(tmp_path)
    (tmp_path / "a.txt").write_text("a note")
    corpus = open_corpus(tmp_path)
    assert isinstance(corpus, NotesCorpus)
    assert ids(corpus) == ["a"]
    (tmp_path / "a.txt").unlink()
    part(tmp_path, "notes.parquet", 70)
    assert ids(open_corpus(tmp_path)) == ["n70", "n71", "n72"]


def test_the_fingerprint_of_a_pattern_and_places_beside_it(tmp_path):
    pattern = three(tmp_path) / "part-*.parquet"
    before = fingerprint(pattern)
    assert len(before) == 64
    part(tmp_path, "part-1.parquet", 3, n=2)
    assert fingerprint(pattern) != before
    refuse_nested(OUT=tmp_path / "out", NOTES=pattern)
    with pytest.raises(UsageError, match="OUT and NOTES are the same path"):
        refuse_nested(OUT=tmp_path / "part-1.parquet", NOTES=pattern)
    with pytest.raises(UsageError, match="NOTES is inside OUT"):
        refuse_nested(OUT=tmp_path, NOTES=pattern)
