"""Every broken input gives one line that names file, row and remedy, exit code 3, and none of its
text.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.core import ClinveilError, InputError, NotesSettings, UsageError
from clinveil.corpus import open_corpus, write_corpus

SECRET = "zyzzyvasecret"
HEADER = "note_id,patient_id,text\n"


def refusal(
    path: Path,
    settings: NotesSettings | None = None,
    *,
    kind: type[ClinveilError] = InputError,
    keep: tuple[str, ...] = (),
) -> str:
    """The message of the error that a whole pass raises: one line, no note text, nothing chained
    that prints text.
    """
    with pytest.raises(kind) as caught:
        for _ in open_corpus(path, settings or NotesSettings(), keep=keep).batches():
            pass
    message = str(caught.value)
    assert SECRET not in message
    assert "\n" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caught.value.exit_code == (3 if kind is InputError else 2)
    return message


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


Write = Callable[[str, str | bytes], Path]
GOOD = "1,p,fine\n"
LARGE = NotesSettings(max_note_bytes=60_000_000)


# --- delimited
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "a.csv.zst", "a.jsonl", "a.jsonl.gz", "a.parquet"]
)
def test_an_empty_file(write: Write, name: str) -> None:
    assert f"{name}: the file is empty" in refusal(write(name, b""))


def test_an_empty_gzip(write: Write) -> None:
    assert "the file is empty" in refusal(write("a.csv.gz", gzip.compress(b"")))


@pytest.mark.parametrize("header", [HEADER, HEADER.strip(), HEADER + "\n\r\n"])
def test_a_header_without_notes(write: Write, header: str) -> None:
    assert "a.csv: contains no notes" in refusal(write("a.csv", header))


def test_a_parquet_without_rows(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"note_id": pa.array([], pa.string()), "text": pa.array([], pa.string())}),
        tmp_path / "a.parquet",
    )
    assert "contains no notes" in refusal(tmp_path / "a.parquet")


@pytest.mark.parametrize("row", [f"2,{SECRET}\n", f"2,p,{SECRET},more\n", f"2,p,{SECRET},\n"])
def test_a_ragged_row(write: Write, row: str) -> None:
    message = refusal(write("a.csv", HEADER + GOOD + "\n" + row + "3,p,x\n"))
    assert "a.csv, row 2:" in message
    assert "fields for 3 columns" in message


@pytest.mark.parametrize("end", ["", "\n", "\n3,p,no quote here\n"])
def test_a_quote_that_never_closes(write: Write, end: str) -> None:
    message = refusal(write("a.csv", HEADER + GOOD + f'2,p,"{SECRET}' + end))
    assert message.startswith("a.csv, row 2: a quote is never closed")


def test_a_lost_quote_does_not_melt_two_notes(write: Write) -> None:
    """pyarrow reads this as one row of three fields; the second note would be inside the first."""
    message = refusal(write("a.csv", HEADER + GOOD + f'2,p,"{SECRET}\n3,p,"other"\n'))
    assert "a.csv, row 2: a quote is not closed, or closed too early" in message


def test_text_after_a_closed_quote(write: Write) -> None:
    assert "a.csv, row 1: a quote is not closed" in refusal(
        write("a.csv", HEADER + f'1,p,"a"{SECRET}\n')
    )


def test_a_never_closed_quote_is_found_in_bounded_memory(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clinveil.corpus.streams.ROW_BYTES", 1 << 20)
    monkeypatch.setattr("clinveil.corpus.formats.delimited.CHUNK_BYTES", 1 << 18)
    body = HEADER + GOOD + '2,p,"' + "word, word\n" * 500_000
    assert "a.csv, row 2: a row exceeds 1 MB" in refusal(write("a.csv", body))


def test_duplicate_column_names(write: Write) -> None:
    assert "a.csv, header: duplicate column name" in refusal(
        write("a.csv", "note_id,text,text\n1,a,b\n")
    )


def test_duplicate_column_names_in_parquet(tmp_path: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["1"]), pa.array(["x"]), pa.array(["y"])], names=["note_id", "text", "text"]
    )
    pq.write_table(table, tmp_path / "a.parquet")
    assert "duplicate column name" in refusal(tmp_path / "a.parquet")


def test_cp1252_bytes_are_refused_and_mended_by_the_flag(write: Write) -> None:
    rows = HEADER + GOOD + f"2,p,{SECRET} café “quoted”\n"
    path = write("a.csv", rows.encode("cp1252"))
    message = refusal(path)
    assert (
        message == "a.csv, row 2: not valid utf-8 (pass the encoding of the file, for example --set"
        " encoding=cp1252)"
    )
    [batch] = open_corpus(path, NotesSettings(encoding="cp1252")).batches()
    assert batch.column(2).to_pylist() == ["fine", f"{SECRET} café “quoted”"]


def test_cp1252_bytes_in_a_column_that_is_dropped_do_no_harm(write: Write) -> None:
    path = write("a.csv", b"note_id,text,other\n1,fine,caf\xe9\n")
    [batch] = open_corpus(path).batches()
    assert batch.column(2).to_pylist() == ["fine"]


def test_bytes_that_the_named_encoding_does_not_have(write: Write) -> None:
    path = write("a.csv", HEADER.encode() + b"1,p,fine\n2,p,\x81\n")
    assert "a.csv, about line 3: not valid cp1252" in refusal(
        path, NotesSettings(encoding="cp1252")
    )


@pytest.mark.parametrize("name", ["nonsense", "base64", "rot13", ""])
def test_an_unknown_encoding(write: Write, name: str) -> None:
    message = refusal(write("a.csv", HEADER + GOOD), NotesSettings(encoding=name), kind=UsageError)
    assert "--set notes.encoding=" in message


def test_utf16_is_named_and_read(write: Write) -> None:
    path = write("a.csv", (HEADER + "1,p,漢字😀\n").encode("utf-16"))
    assert "a.csv: the file is UTF-16 (pass --set notes.encoding=utf-16)" in refusal(path)
    [batch] = open_corpus(path, NotesSettings(encoding="utf-16")).batches()
    assert batch.column(2).to_pylist() == ["漢字😀"]


def test_utf16_without_a_mark_is_seen_by_its_nul_bytes(write: Write) -> None:
    path = write("a.csv", (HEADER + GOOD).encode("utf-16-le"))
    assert "a NUL byte" in refusal(path)
    [batch] = open_corpus(path, NotesSettings(encoding="utf-16-le")).batches()
    assert batch.column(2).to_pylist() == ["fine"]


def test_a_nul_byte(write: Write) -> None:
    assert "a.csv, row 3: contains a NUL byte" in refusal(
        write("a.csv", HEADER + GOOD + f'2,p,"x\ny"\n3,p,{SECRET}\0\n')
    )


def test_a_byte_order_mark_is_taken_off(write: Write) -> None:
    for name, body in (
        ("a.csv", "note_id,text\n1,x\n"),
        ("a.jsonl", '{"note_id": 1, "text": "x"}'),
    ):
        corpus = open_corpus(write(name, "\ufeff" + body))
        assert corpus.columns.note_id == "note_id"
        assert next(corpus.batches()).column(2).to_pylist() == ["x"]


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_truncated_gzip(write: Write, share: float) -> None:
    rows = HEADER + "".join(f"{i},p,{SECRET} {i * i}\n" for i in range(20_000))
    whole = gzip.compress(rows.encode())
    message = refusal(write("a.csv.gz", whole[: int(len(whole) * share)]))
    assert "a.csv.gz: the compressed file is truncated or damaged" in message


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zst", "a.jsonl.gz"])
def test_a_file_that_is_not_compressed(write: Write, name: str) -> None:
    assert "truncated or damaged" in refusal(write(name, HEADER + GOOD))


def test_a_gzip_of_several_members(write: Write) -> None:
    path = write(
        "a.csv.gz",
        gzip.compress(HEADER.encode()) + gzip.compress(b"1,p,one\n") + gzip.compress(b"2,p,two\n"),
    )
    assert next(open_corpus(path).batches()).column(2).to_pylist() == ["one", "two"]


# --- ids
# ---------------------------------------------------------------------------------------


def test_duplicate_ids_name_both_rows(write: Write) -> None:
    rows = "".join(f"n{i},p,x\n" for i in range(5000)) + "n17,p,y\n"
    message = refusal(write("a.csv", HEADER + rows))
    assert "a.csv, row 5001: duplicate id, already used in row 18" in message
    assert "--id" in message


@pytest.mark.parametrize("row", [",p,x", '"",p,x', "1,,x", '1,"",x'])
def test_a_null_or_empty_id(write: Write, row: str) -> None:
    message = refusal(write("a.csv", HEADER + "0,p,x\n" + row + "\n"))
    assert "a.csv, row 2:" in message
    assert "null or empty" in message


# --- JSON lines
# ---------------------------------------------------------------------------------------


def deep(depth: int) -> str:
    """So many lists and objects in each other."""
    opened = ['{"a": ', "["]
    return (
        "".join(opened[i % 2] for i in range(depth))
        + "1"
        + "".join("}]"[i % 2] for i in reversed(range(depth)))
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"{SECRET}", "not JSON"),
        (f'{{"note_id": "2", "text": "{SECRET}"', "not JSON"),
        (f'{{"note_id": "2", "text": "{SECRET}"}} trailing', "not JSON"),
        ('{"note_id": "2", "text": NaN}', "not JSON"),
        ("[" * 100_000, "nested more than 100 levels deep"),
        (f'{{"note_id": "2", "k": {"[" * 100_000}', "nested more than 100 levels deep"),
        (f'{{"note_id": "2", "text": "x", "k": {deep(100)}}}', "nested more than 100 levels deep"),
        (f'{{"note_id": "2", "text": "x", "k": {deep(900)}}}', "nested more than 100 levels deep"),
        (
            f'{{"note_id": "2", "text": "x", "\\ud800{SECRET}": 1}}',
            "a key contains a lone surrogate",
        ),
        (
            f'{{"note_id": "2", "text": "x", "{SECRET}\\udfff": {{}}}}',
            "a key contains a lone surrogate",
        ),
        (f'["{SECRET}"]', "not a JSON object"),
        (f'"{SECRET}"', "not a JSON object"),
        (f'{{"note_id": "2", "text": ["{SECRET}"]}}', "'text' is not text"),
        ('{"note_id": "2", "text": true}', "'text' is not text"),
        ('{"note_id": 2.5, "text": "x"}', "'note_id' is not text"),
        ('{"note_id": "2", "text": "\\ud800"}', "'text' is not text"),
        ('{"note_id": "2", "text": "a", "text": "b"}', "duplicate key"),
        ('{"text": "x"}', "null or empty"),
        ('{"note_id": null, "text": "x"}', "null or empty"),
    ],
)
def test_a_bad_json_line(write: Write, line: str, what: str) -> None:
    message = refusal(write("a.jsonl", '{"note_id": "1", "text": "fine"}\n\n' + line + "\n"))
    assert "a.jsonl, row 2:" in message
    assert what in message


def test_a_bad_key_or_a_deep_line_far_down_the_file_is_found_too(write: Write) -> None:
    good = "".join(f'{{"note_id": {i}, "text": "x"}}\n' for i in range(3000))
    for line, what in (
        ('{"\\ud800k": 1}', "a key contains a lone surrogate"),
        (deep(101), "nested more than 100 levels deep"),
    ):
        assert f"a.jsonl, row 3001: {'the line is ' * what.startswith('nested')}{what}" in refusal(
            write("a.jsonl", good + line + "\n")
        )


def test_brackets_in_a_text_are_no_nesting(write: Write) -> None:
    path = write("a.jsonl", json.dumps({"note_id": "1", "text": "[{" * 5000, "k": [[]] * 200}))
    assert next(open_corpus(path).batches()).column(2).to_pylist() == ["[{" * 5000]


def test_what_is_nested_as_deep_as_may_be_is_kept_and_written(write: Write, tmp_path: Path) -> None:
    path = write(
        "a.jsonl",
        f'{{"note_id": "1", "text": "x", "k": {deep(99)}, "\\ud83d\\ude00": "\\ud800"}}\n',
    )
    corpus = open_corpus(path, keep=("k", "😀"))
    write_corpus(corpus.batches(), tmp_path / "b.jsonl", corpus.columns, ".jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text()) == json.loads(path.read_text())


def test_keys_that_not_every_record_has_are_counted_not_listed(write: Write) -> None:
    """A record may be keyed by values: {"Quorbina SECRET": "coughs"}."""
    lines = [{"note_id": i, "text": "x", "ward": None, f"{SECRET} {i}": "coughs"} for i in range(3)]
    path = write("a.jsonl", "\n".join(json.dumps(line) for line in lines))
    columns = open_corpus(path).columns
    assert (columns.dropped, columns.other_dropped) == (("ward",), 3)
    assert SECRET not in repr(columns)
    assert "columns: note_id, text, ward and 3 of other names (column 4, 5, 6)" in refusal(
        path, keep=("x",)
    )
    kept = open_corpus(path, keep=(f"{SECRET} 1",))
    assert (kept.columns.dropped, kept.columns.other_dropped) == (("ward",), 2)
    assert next(kept.batches()).column(3).to_pylist() == [None, "coughs", None]


def test_other_formats_have_no_such_keys(write: Write, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"note_id": ["1"], "text": ["x"], "verdict": ["y"]}), tmp_path / "a.parquet"
    )
    for path in (write("a.csv", "note_id,text,verdict\n1,x,y\n"), tmp_path / "a.parquet"):
        columns = open_corpus(path).columns
        assert (columns.dropped, columns.other_dropped) == (("verdict",), 0)


def test_cp1252_in_json(write: Write) -> None:
    path = write("a.jsonl", b'{"note_id": 1, "text": "caf\xe9"}\n')
    assert "a.jsonl, row 1: not valid utf-8" in refusal(path)
    assert next(open_corpus(path, NotesSettings(encoding="latin-1")).batches()).column(
        2
    ).to_pylist() == ["café"]


def test_a_number_as_text_is_refused(write: Write) -> None:
    """An id may be a number; a text may not: it would be a column that was mistaken for the
    text.
    """
    assert "'text' is not text" in refusal(write("a.jsonl", '{"note_id": 1, "text": 5}\n'))


# --- Parquet
# ---------------------------------------------------------------------------------------


def parquet(folder: Path, **columns: pa.Array) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_not_a_parquet_file(write: Write) -> None:
    assert "a.parquet: not a Parquet file, or a damaged one" in refusal(
        write("a.parquet", SECRET * 100)
    )


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    path = parquet(tmp_path, note_id=pa.array(["1"]), text=pa.array([SECRET]))
    path.write_bytes(path.read_bytes()[:-20])
    assert "not a Parquet file, or a damaged one" in refusal(path)


def test_a_parquet_file_with_a_damaged_column_name(tmp_path: Path) -> None:
    path = parquet(tmp_path, note_id=pa.array(["1"]), text=pa.array([SECRET]))
    data = path.read_bytes()
    for names in range(1, data.count(b"text") + 1):  # in one or more of its copies
        path.write_bytes(data.replace(b"text", b"\xf5ext", names))
        assert "not a Parquet file, or a damaged one" in refusal(path)


def test_a_parquet_file_with_a_damaged_page(tmp_path: Path) -> None:
    texts = [f"{SECRET} {i * 7919}" for i in range(20_000)]
    path = parquet(
        tmp_path, note_id=pa.array([str(i) for i in range(20_000)]), text=pa.array(texts)
    )
    data = bytearray(path.read_bytes())
    data[100:20_000] = bytes(19_900)
    path.write_bytes(bytes(data))
    assert "a.parquet: not a Parquet file, or a damaged one" in refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        pa.array([1]),
        pa.array([1.5]),
        pa.array([b"x"]),
        pa.array([["x"]]),
        pa.array([True]),
        pa.array([None]),
    ],
)
def test_a_text_column_that_is_no_text(tmp_path: Path, text: pa.Array) -> None:
    message = refusal(parquet(tmp_path, note_id=pa.array(["1"]), text=text))
    assert "a.parquet: column 'text' contains" in message
    assert "--text" in message


@pytest.mark.parametrize(
    "ids", [pa.array([1.5]), pa.array([b"x"]), pa.array([True]), pa.array([["a"]])]
)
def test_an_id_column_that_holds_no_ids(tmp_path: Path, ids: pa.Array) -> None:
    assert "'note_id' contains" in refusal(parquet(tmp_path, note_id=ids, text=pa.array(["x"])))


def test_parquet_text_that_is_not_utf8(tmp_path: Path) -> None:
    """Parquet readers do not look: Arrow itself would hand the broken bytes on as a string."""
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xe9")
    )
    path = parquet(tmp_path, note_id=pa.array(["1", "2"]), text=broken)
    assert "a.parquet, row 2: not valid UTF-8" in refusal(path)


def test_null_ids_in_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path, note_id=pa.array(["1", None]), text=pa.array(["x", "y"]))
    assert "a.parquet, row 2: column 'note_id' is null or empty" in refusal(path)


def test_whole_numbers_that_became_floats_are_ids_again(tmp_path: Path) -> None:
    path = parquet(
        tmp_path, note_id=pa.array([1.0, 20000000.0]), text=pa.array(["x", "y"]).dictionary_encode()
    )
    assert next(open_corpus(path).batches()).column(0).to_pylist() == ["1", "20000000"]


# --- folders and paths
# ---------------------------------------------------------------------------------------


def test_nothing_there(tmp_path: Path) -> None:
    assert "gone.csv: no such file or folder" in refusal(tmp_path / "gone.csv")


@pytest.mark.parametrize("name", ["notes.xlsx", "notes", "notes.txt"])
def test_an_unknown_kind_of_file(write: Write, name: str) -> None:
    message = refusal(write(name, "x"))
    assert f"{name}: unknown file type" in message
    assert ".parquet" in message


def test_a_folder_without_notes(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("x")
    assert "contains no .txt file" in refusal(tmp_path)


def test_bad_bytes_in_a_folder_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fine")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    hint = "pass the encoding of the file, for example --set notes.encoding=cp1252"
    assert refusal(tmp_path).startswith(f"b.txt: not valid utf-8 ({hint}")
    texts = (
        next(open_corpus(tmp_path, NotesSettings(encoding="cp1252")).batches())
        .column(2)
        .to_pylist()
    )
    assert texts == ["fine", "café"]
    (tmp_path / "b.txt").write_bytes(b"a\0b")
    assert refusal(tmp_path).startswith("b.txt: contains a NUL byte")


def test_two_files_of_one_id(tmp_path: Path) -> None:
    (tmp_path / "a.TXT").write_text("x")
    (tmp_path / "a.txt").write_text("y")
    assert "row 2: duplicate id, already used in row 1" in refusal(tmp_path)


def test_subfolders_are_part_of_the_id(tmp_path: Path) -> None:
    (tmp_path / "w" / "v").mkdir(parents=True)
    (tmp_path / "w" / "v" / "1.x.txt").write_text("deep")
    (tmp_path / "1.txt").write_text("top")
    (tmp_path / "loop").symlink_to(tmp_path)
    batch = next(open_corpus(tmp_path).batches())
    assert dict(zip(batch.column(0).to_pylist(), batch.column(2).to_pylist(), strict=True)) == {
        "1": "top",
        "w/v/1.x": "deep",
    }


@pytest.mark.parametrize("inside", ["a.txt", "w/a.TXT", "w/deeper"])
def test_a_link_that_leads_out_of_the_folder(inside: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    elsewhere = tmp_path / f"{SECRET}.txt"
    (notes / "w").mkdir(parents=True)
    (notes / "0.txt").write_text("fine")
    target = elsewhere if inside.lower().endswith(".txt") else tmp_path / SECRET
    elsewhere.write_text("note of another")
    (tmp_path / SECRET).mkdir()
    (notes / inside).symlink_to(target)
    hint = "copy the notes or remove the link"
    assert refusal(notes) == f"{inside}: a link points outside the folder ({hint})"
    (notes / inside).unlink()
    (notes / inside).symlink_to(os.path.relpath(target, (notes / inside).parent))
    assert refusal(notes) == f"{inside}: a link points outside the folder ({hint})"


def test_links_that_lead_nowhere_or_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "0.txt").write_text("fine")
    for target in ("gone.txt", "a.txt"):
        (tmp_path / "a.txt").symlink_to(target)
        assert refusal(tmp_path).startswith("a.txt: a link points outside the folder")
        (tmp_path / "a.txt").unlink()
    (tmp_path / "a.md").symlink_to("/etc/hosts")  # no note, so it is not read either
    assert next(open_corpus(tmp_path).batches()).column(0).to_pylist() == ["0"]


def test_links_within_the_folder_and_to_it(tmp_path: Path) -> None:
    (tmp_path / "notes" / "w").mkdir(parents=True)
    (tmp_path / "notes" / "0.txt").write_text("fine")
    (tmp_path / "notes" / "w" / "1.txt").symlink_to("../0.txt")
    (tmp_path / "here").symlink_to("notes")
    for folder in ("notes", "here"):
        batch = next(open_corpus(tmp_path / folder).batches())
        assert batch.column(0).to_pylist() == ["0", "w/1"]
        assert batch.column(2).to_pylist() == ["fine", "fine"]


# --- what is odd and right
# ---------------------------------------------------------------------------------------


def test_null_text_stays_null_and_empty_text_empty(write: Write) -> None:
    path = write("a.csv", HEADER + '1,p,\n2,p,""\n3,p," "\n')
    assert next(open_corpus(path).batches()).column(2).to_pylist() == [None, "", " "]


def test_crlf_quotes_and_newlines_inside_fields(write: Write) -> None:
    path = write(
        "a.csv",
        'note_id,text\r\n1,"a\r\nb"\r\n2,"say ""hi"""\r\n3,5" needle, no\r\n'.replace(
            ", no", " no"
        ),
    )
    assert next(open_corpus(path).batches()).column(2).to_pylist() == [
        "a\r\nb",
        'say "hi"',
        '5" needle no',
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_row_ends(write: Write, end: str) -> None:
    path = write("a.csv", f"note_id,text{end or chr(10)}1,x{end}")
    assert next(open_corpus(path).batches()).column(2).to_pylist() == ["x"]


def test_values_that_look_like_numbers_stay_as_they_stand(write: Write) -> None:
    path = write(
        "a.csv", 'note_id,patient_id,text,code,empty\n007,1.0,1e5,007,\n08,0x1,true,1.0,""\n'
    )
    batch = next(open_corpus(path, keep=("code", "empty")).batches())
    assert batch.to_pydict() == {
        "note_id": ["007", "08"],
        "patient_id": ["1.0", "0x1"],
        "text": ["1e5", "true"],
        "code": ["007", "1.0"],
        "empty": [None, ""],
    }


def test_json_ids_may_be_numbers_and_missing_keys_are_null(write: Write) -> None:
    path = write(
        "a.jsonl",
        '{"note_id": 7, "text": "x", "k": 1}\n{"note_id": "08", "text": null}\n{"note_id": 9}\n',
    )
    batch = next(open_corpus(path, keep=("k",)).batches())
    assert batch.column(0).to_pylist() == ["7", "08", "9"]
    assert batch.column(2).to_pylist() == ["x", None, None]
    assert batch.column(3).to_pylist() == [1, None, None]


# --- a note of 50 MB
# ---------------------------------------------------------------------------------------

BIG = 50_000_000


def big_note() -> str:
    line = 'He said ""take 5"", then left;\r\nand came back. '
    return line * (BIG // len(line) + 1)


def test_a_50_mb_note_in_csv(write: Write) -> None:
    body = big_note()
    path = write("a.csv", HEADER + GOOD + f'2,p,"{body}"\n3,p,after\n')
    rows = [
        r
        for b in open_corpus(path, LARGE).batches()
        for r in zip(*(b.column(i).to_pylist() for i in (0, 2)), strict=True)
    ]
    assert [r[0] for r in rows] == ["1", "2", "3"]
    assert rows[1][1] == body.replace('""', '"')
    assert rows[2][1] == "after"


def test_a_50_mb_note_in_jsonl(write: Write) -> None:
    body = big_note()
    lines = [
        json.dumps({"note_id": i, "text": t})
        for i, t in (("1", "fine"), ("2", body), ("3", "after"))
    ]
    path = write("a.jsonl", "\n".join(lines))
    batches = list(open_corpus(path, LARGE).batches())
    assert [t for b in batches for t in b.column(2).to_pylist()] == ["fine", body, "after"]
    assert all(b.num_rows <= 2 for b in batches), "a big note does not share its batch with many"
