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


def texts_of(path: Path, settings: NotesSettings | None = None) -> list[str | None]:
    """All texts of a file."""
    batches = open_corpus(path, settings or NotesSettings()).batches()
    return [text for batch in batches for text in batch.column(2).to_pylist()]


LARGE = NotesSettings(max_note_bytes=60_000_000)


# --- delimited
# ---------------------------------------------------------------------------------------


ROWS = HEADER + GOOD
# The name of a file, its bytes, the settings, and what the message contains.
REFUSED: list[tuple[str, str | bytes, dict[str, str], tuple[str, ...]]] = [
    *(
        (name, b"", {}, (f"{name}: the file is empty",))
        for name in (
            "a.csv", "a.tsv", "a.csv.gz", "a.csv.zst", "a.jsonl", "a.jsonl.gz", "a.parquet"
        )
    ),
    ("a.csv.gz", gzip.compress(b"", mtime=0), {}, ("the file is empty",)),
    ("a.csv", HEADER, {}, ("a.csv: contains no notes",)),
    ("a.csv", HEADER.strip(), {}, ("a.csv: contains no notes",)),
    ("a.csv", HEADER + "\n\r\n", {}, ("a.csv: contains no notes",)),
    *(
        ("a.csv", f"{ROWS}\n{row}3,p,x\n", {}, ("a.csv, row 2:", "fields for 3 columns"))
        for row in (f"2,{SECRET}\n", f"2,p,{SECRET},more\n", f"2,p,{SECRET},\n")
    ),
    *(
        ("a.csv", f'{ROWS}2,p,"{SECRET}{end}', {}, ("a.csv, row 2: a quote is never closed",))
        for end in ("", "\n", "\n3,p,no quote here\n")
    ),
    # pyarrow reads this as one row of three fields; the second note would be inside the first.
    (
        "a.csv",
        f'{ROWS}2,p,"{SECRET}\n3,p,"other"\n',
        {},
        ("a.csv, row 2: a quote is not closed, or closed too early",),
    ),
    ("a.csv", f'{HEADER}1,p,"a"{SECRET}\n', {}, ("a.csv, row 1: a quote is not closed",)),
    ("a.csv", "note_id,text,text\n1,a,b\n", {}, ("a.csv, header: duplicate column name",)),
    (
        "a.csv",
        HEADER.encode() + b"1,p,fine\n2,p,\x81\n",
        {"encoding": "cp1252"},
        ("a.csv, about line 3: not valid cp1252",),
    ),
    (
        "a.csv",
        f'{ROWS}2,p,"x\ny"\n3,p,{SECRET}\0\n',
        {},
        ("a.csv, row 3: contains a NUL byte",),
    ),
    *(
        (name, ROWS, {}, ("truncated or damaged",))
        for name in ("a.csv.gz", "a.csv.zst", "a.jsonl.gz")
    ),
    *(
        ("a.csv", f"{HEADER}0,p,x\n{row}\n", {}, ("a.csv, row 2:", "null or empty"))
        for row in (",p,x", '"",p,x', "1,,x", '1,"",x')
    ),
    # An id may be a number; a text may not: the wrong column would be taken for the text.
    ("a.jsonl", '{"note_id": 1, "text": 5}\n', {}, ("'text' is not text",)),
    ("a.parquet", SECRET * 100, {}, ("a.parquet: not a Parquet file, or a damaged one",)),
    *(
        (name, "x", {}, (f"{name}: unknown file type", ".parquet"))
        for name in ("notes.xlsx", "notes", "notes.txt")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "settings", "messages"), REFUSED)
def test_a_bad_file_is_refused(
    write: Write,
    name: str,
    content: str | bytes,
    settings: dict[str, str],
    messages: tuple[str, ...],
) -> None:
    message = refusal(write(name, content), NotesSettings.model_validate(settings))
    for part in messages:
        assert part in message


def test_a_never_closed_quote_is_found_in_bounded_memory(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clinveil.corpus.streams.ROW_BYTES", 1 << 20)
    monkeypatch.setattr("clinveil.corpus.formats.delimited.CHUNK_BYTES", 1 << 18)
    body = HEADER + GOOD + '2,p,"' + "word, word\n" * 500_000
    assert "a.csv, row 2: a row exceeds 1 MB" in refusal(write("a.csv", body))


# The name of a file, its bytes, the message without settings, the encoding, and the last text.
ENCODED = [
    (
        "a.csv",
        f"{ROWS}2,p,{SECRET} café “quoted”\n".encode("cp1252"),
        "a.csv, row 2: not valid utf-8 (pass the encoding of the file, for example --set"
        " notes.encoding=cp1252)",
        "cp1252",
        f"{SECRET} café “quoted”",
    ),
    (
        "a.csv",
        f"{HEADER}1,p,漢字😀\n".encode("utf-16"),
        "a.csv: the file is UTF-16 (pass --set notes.encoding=utf-16)",
        "utf-16",
        "漢字😀",
    ),
    ("a.csv", ROWS.encode("utf-16-le"), "a NUL byte", "utf-16-le", "fine"),
    (
        "a.jsonl",
        b'{"note_id": 1, "text": "caf\xe9"}\n',
        "a.jsonl, row 1: not valid utf-8",
        "latin-1",
        "café",
    ),
]


@pytest.mark.parametrize(("name", "content", "message", "encoding", "text"), ENCODED)
def test_another_encoding_is_refused_and_read_with_the_setting(
    write: Write, name: str, content: bytes, message: str, encoding: str, text: str
) -> None:
    path = write(name, content)
    assert message in refusal(path)
    assert texts_of(path, NotesSettings(encoding=encoding))[-1] == text


@pytest.mark.parametrize("name", ["nonsense", "base64", "rot13", ""])
def test_an_unknown_encoding(write: Write, name: str) -> None:
    message = refusal(write("a.csv", HEADER + GOOD), NotesSettings(encoding=name), kind=UsageError)
    assert "--set notes.encoding=" in message


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_truncated_gzip(write: Write, share: float) -> None:
    rows = HEADER + "".join(f"{i},p,{SECRET} {i * i}\n" for i in range(20_000))
    whole = gzip.compress(rows.encode())
    message = refusal(write("a.csv.gz", whole[: int(len(whole) * share)]))
    assert "a.csv.gz: the compressed file is truncated or damaged" in message


def test_duplicate_ids_name_both_rows(write: Write) -> None:
    rows = "".join(f"n{i},p,x\n" for i in range(5000)) + "n17,p,y\n"
    message = refusal(write("a.csv", HEADER + rows))
    assert "a.csv, row 5001: duplicate id, already used in row 18" in message
    assert "--id" in message


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


# --- Parquet
# ---------------------------------------------------------------------------------------


def parquet(folder: Path, **columns: pa.Array) -> Path:
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


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


ID = pa.array(["1"])
NO_TEXT = pa.array([], pa.string())
# Parquet readers do not check: Arrow itself would pass the broken bytes on as a string.
NOT_UTF8 = pa.StringArray.from_buffers(
    2, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xe9")
)
# The names and values of the columns, and what the message contains.
REFUSED_TABLES: list[tuple[list[str], list[pa.Array], tuple[str, ...]]] = [
    *(
        (["note_id", "text"], [ID, text], ("a.parquet: column 'text' contains", "--text"))
        for text in (
            pa.array([1]),
            pa.array([1.5]),
            pa.array([b"x"]),
            pa.array([["x"]]),
            pa.array([True]),
            pa.array([None]),
        )
    ),
    *(
        (["note_id", "text"], [ids, pa.array(["x"])], ("'note_id' contains",))
        for ids in (pa.array([1.5]), pa.array([b"x"]), pa.array([True]), pa.array([["a"]]))
    ),
    (
        ["note_id", "text"],
        [pa.array(["1", "2"]), NOT_UTF8],
        ("a.parquet, row 2: not valid UTF-8",),
    ),
    (
        ["note_id", "text"],
        [pa.array(["1", None]), pa.array(["x", "y"])],
        ("a.parquet, row 2: column 'note_id' is null or empty",),
    ),
    (["note_id", "text", "text"], [ID, ID, ID], ("duplicate column name",)),
    (["note_id", "text"], [NO_TEXT, NO_TEXT], ("contains no notes",)),
]


@pytest.mark.parametrize(("names", "arrays", "messages"), REFUSED_TABLES)
def test_a_bad_table_is_refused(
    tmp_path: Path, names: list[str], arrays: list[pa.Array], messages: tuple[str, ...]
) -> None:
    pq.write_table(pa.Table.from_arrays(arrays, names=names), tmp_path / "a.parquet")
    message = refusal(tmp_path / "a.parquet")
    for part in messages:
        assert part in message


def test_whole_numbers_that_became_floats_are_ids_again(tmp_path: Path) -> None:
    path = parquet(
        tmp_path, note_id=pa.array([1.0, 20000000.0]), text=pa.array(["x", "y"]).dictionary_encode()
    )
    assert next(open_corpus(path).batches()).column(0).to_pylist() == ["1", "20000000"]


# --- folders and paths
# ---------------------------------------------------------------------------------------


def test_nothing_there(tmp_path: Path) -> None:
    assert "gone.csv: no such file or folder" in refusal(tmp_path / "gone.csv")


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


# The name of a file, its bytes, and the texts that it contains.
MEMBERS = (HEADER.encode(), b"1,p,one\n", b"2,p,two\n")
READ = [
    ("a.csv", HEADER + '1,p,\n2,p,""\n3,p," "\n', [None, "", " "]),
    (
        "a.csv",
        'note_id,text\r\n1,"a\r\nb"\r\n2,"say ""hi"""\r\n3,5" needle no\r\n',
        ["a\r\nb", 'say "hi"', '5" needle no'],
    ),
    *(
        ("a.csv", f"note_id,text{end or chr(10)}1,x{end}", ["x"])
        for end in ("\n", "\r\n", "\r", "")
    ),
    # Bytes of another encoding in a column that is dropped are harmless.
    ("a.csv", b"note_id,text,other\n1,fine,caf\xe9\n", ["fine"]),
    ("a.csv", "\ufeffnote_id,text\n1,x\n", ["x"]),
    ("a.jsonl", '\ufeff{"note_id": 1, "text": "x"}', ["x"]),
    (
        "a.csv.gz",
        b"".join(gzip.compress(part, mtime=0) for part in MEMBERS),
        ["one", "two"],
    ),
    # Brackets in a text are not nesting.
    (
        "a.jsonl",
        json.dumps({"note_id": "1", "text": "[{" * 5000, "k": [[]] * 200}),
        ["[{" * 5000],
    ),
]


@pytest.mark.parametrize(("name", "content", "texts"), READ)
def test_an_odd_file_is_read(
    write: Write, name: str, content: str | bytes, texts: list[str | None]
) -> None:
    path = write(name, content)
    assert texts_of(path) == texts
    assert open_corpus(path).columns.note_id == "note_id"


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
