"""Delimiters of CSV files, and several text columns in one run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import InputError, NotesSettings, UsageError, load_settings
from clinveil.corpus import open_corpus, rows, rows_with
from clinveil.corpus.formats.delimited import sniffed

CELLS = [
    ["id", "patient", "text"],
    ["1", "p1", 'Seen; "stable", well | fine\nnext line'],
    ["2", "p1", "a, b, c"],
    ["3", "p2", ""],
]


def delimited(sign: str) -> str:
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in CELLS[1:]]
    return "\n".join(sign.join(row) for row in [CELLS[0], *quoted]) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_is_recognised(sign: str, name: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(delimited(sign).encode(encoding))
    notes = list(rows(open_corpus(path, NotesSettings(encoding=encoding))))
    assert [tuple(note) for note in notes] == [tuple(row) for row in CELLS[1:]]


@pytest.mark.parametrize(
    ("data", "usual", "delimiter"),
    [
        (b"id,text\n1,a;b\n", ",", ","),
        (b"id,text;more,x\n1,a;b,c\n2,a;b,c\n", ",", ","),
        (b"id;text, free;patient\n1;a;p\n2;b, c;p\n", ",", ";"),
        (b"text\nonly one; column\n", ",", ","),
        (b"id;text\n", ",", ";"),
        (b'id;text\n1;"a\n', ",", ";"),
        (b"", "\t", "\t"),
        (b"id\ttext\n1\ta,b\n", ",", "\t"),
        (b"id|text\n1|a\n", "\t", "|"),
    ],
)
def test_sniffing(data: bytes, usual: str, delimiter: str) -> None:
    assert sniffed(data, usual) == delimiter


@pytest.mark.parametrize(("setting", "sign"), [("~", "~"), ("tab", "\t"), (";", ";")])
def test_a_given_delimiter_is_used(setting: str, sign: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(delimited(sign), encoding="utf-8")
    settings = load_settings(NotesSettings, {}, sets=[f"delimiter={setting}"])
    assert [note.note_id for note in rows(open_corpus(path, settings))] == ["1", "2", "3"]
    with pytest.raises(InputError):
        open_corpus(path, NotesSettings(delimiter=":"))


@pytest.mark.parametrize("wrong", ["", "ab", '"', "é"])
def test_a_wrong_delimiter_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="delimiter: pass one ASCII character, tab or auto"):
        load_settings(NotesSettings, {"delimiter": wrong})


# --- several text columns
# ---------------------------------------------------------------------------------------

ROWS = {
    "visit": [7, 8],
    "patient": ["p1", "p2"],
    "history": ["Mr. John Okwuosa came.", None],
    "plan": ["Call Okwuosa on 3/4/2021.", "Rest."],
    "site": ["north", "south"],
}
NOTES = [
    ("7-history", "p1", "history", "Mr. John Okwuosa came."),
    ("7-plan", "p1", "plan", "Call Okwuosa on 3/4/2021."),
    ("8-plan", "p2", "plan", "Rest."),
]


def as_file(name: str, folder: Path) -> Path:
    path = folder / name
    table = pa.table(ROWS)
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    elif name.endswith(".jsonl"):
        path.write_text(
            "".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8"
        )
    else:
        lines = [
            ";".join(ROWS),
            *(";".join(str(v or "") for v in row.values()) for row in table.to_pylist()),
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
    return path


SETTINGS = NotesSettings(text=("history", "plan"), id="visit")


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.csv"])
@pytest.mark.parametrize("parts", [False, True])
def test_each_row_gives_one_note_per_column(name: str, parts: bool, tmp_path: Path) -> None:
    path = as_file(name, tmp_path)
    corpus = open_corpus(tmp_path if parts else path, SETTINGS, keep=("site",))
    read = [(*note[:2], column, note.text) for note, (column,) in rows_with(corpus, "text_column")]
    assert read == NOTES
    assert corpus.columns.keep == ("site", "text_column")
    assert sum(batch.num_rows for batch in corpus.batches()) == 4  # one text is null


def test_without_a_patient_column_a_row_is_a_patient(tmp_path: Path) -> None:
    table = pa.table(ROWS).drop_columns(["patient"])
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = open_corpus(tmp_path / "a.parquet", SETTINGS)
    assert [note.patient_id for note in rows(corpus)] == ["7", "7", "8"]
    assert corpus.columns.patient_id == "source_row_id"


def test_messages_count_rows_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,a,b\n1,x,y\n2,x,y\n1,x,y\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a.csv, row 3: duplicate id, already used in row 1"):
        list(open_corpus(path, NotesSettings(text=("a", "b"))).batches())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("history", "plans"), "no column 'plans'"),
        (("history", "visit2"), "no column 'visit2'"),
    ],
)
def test_a_missing_column_is_named(texts: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = as_file("a.parquet", tmp_path)
    with pytest.raises(InputError, match=message):
        open_corpus(path, SETTINGS.but(text=texts))


def test_a_column_of_numbers_and_a_reserved_name_are_refused(tmp_path: Path) -> None:
    path = as_file("a.parquet", tmp_path)
    with pytest.raises(InputError, match="column 'visit' contains int64, not text"):
        list(open_corpus(path, NotesSettings(text=("history", "visit"), id="site")).batches())
    pq.write_table(pa.table(ROWS).append_column("text_column", pa.array(["x", "y"])), path)
    with pytest.raises(InputError, match="'text_column' is reserved"):
        open_corpus(path, SETTINGS)


def test_one_column_given_as_a_list_is_one_column() -> None:
    assert NotesSettings(text=("history",)).text == "history"
    with pytest.raises(UsageError, match="text: pass the names of different columns"):
        load_settings(NotesSettings, {"text": ("a", "a")})
    assert load_settings(NotesSettings, {}, sets=["text=a", "text=b"]).text == ("a", "b")


def test_deidentify_propagates_names_between_the_columns(tmp_path: Path) -> None:
    path = as_file("a.csv", tmp_path)
    out = tmp_path / "out.csv"
    arguments = [
        "--text",
        "history",
        "--text",
        "plan",
        "--id",
        "visit",
        "--set",
        "identifiers.mode=tag",
    ]
    assert main(["deidentify", str(path), "-o", str(out), "--workers", "1", "-q", *arguments]) == 0
    written = open_corpus(out, NotesSettings(id="visit"), keep=("text_column",))
    notes = [(column, note.text) for note, (column,) in rows_with(written, "text_column")]
    assert notes == [
        ("history", "Mr. [NAME] came."),
        ("plan", "Call [NAME] on [DATE]."),
        ("plan", "Rest."),
    ]
