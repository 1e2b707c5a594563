"""One contract for all formats: what is written reads back, whatever the text."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clinveil.core import NotesSettings
from clinveil.corpus import BATCH_ROWS, ROLE_FIELDS, Columns, open_corpus, write_corpus

Note = tuple[str, str, str | None, str | None]  # id, patient, text, kept

SOURCE = Columns(
    text="TEXT body",
    note_id="doc_id",
    patient_id="who",
    keep=("kept",),
    order=("kept", "TEXT body", "doc_id", "who"),
)
OPTIONS = NotesSettings(text="TEXT body", id="doc_id", patient="who")
SCHEMA = pa.schema([*ROLE_FIELDS, pa.field("kept", pa.string())])

AWKWARD = [
    "", " ", " leading", "trailing ", "\t", "\n", "\r\n", "\r", "a\r\nb\nc\rd", '"', '""',
    '"quoted"', 'a "b" c', ",", ",,", "a,b", "null", "NULL", "NA", "nan", "None", "007", "1.0",
    "1e5", "true", "2020-01-01", "\\", "\\N", "\\n", "'", "''", "\u200b", "zero\u200bwidth",
    "\ufeffmark", "\u2028", "\u2029", "\x85", "\x0b\x0c\x1c", "e\u0301", "é", "Zoë", "😀",
    "\U0001f468\u200d\U0001f469", "漢字", "Привет", "\ud7ff\ue000", "\uffff", "\U0010ffff",
    '{"a": 1}', "[1]", "#", "x" * 70_000,
]  # fmt: skip
ANY_TEXT = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.text(st.sampled_from("ab \r\n\",\t\\'\u200b\ufeff"), max_size=30),
)


def batch_of(notes: Sequence[Note]) -> pa.RecordBatch:
    columns = list(zip(*notes, strict=True)) or [(), (), (), ()]
    return pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[tuple[str | None, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


class FormatContract:
    """What every format promises. A subclass names its suffix, and what it cannot carry."""

    suffix: str
    carries_columns = True
    carries_null = True

    @property
    def columns(self) -> Columns:
        return (
            SOURCE
            if self.carries_columns
            else Columns(text="text", note_id="note_id", order=("note_id", "text"))
        )

    @property
    def options(self) -> dict[str, Any]:
        return {"settings": OPTIONS, "keep": ("kept",)} if self.carries_columns else {}

    def expected(self, notes: Sequence[Note]) -> list[tuple[str | None, ...]]:
        return list(notes) if self.carries_columns else [(n[0], n[0], n[2]) for n in notes]

    def batches(self, notes: Sequence[Note], size: int = 3) -> list[pa.RecordBatch]:
        parts = [batch_of(notes[i : i + size]) for i in range(0, len(notes), size)]
        return (
            parts
            if self.carries_columns
            else [part.select(["note_id", "patient_id", "text"]) for part in parts]
        )

    def usable(self, text: str | None) -> str | None:
        return text if self.carries_null or text is not None else ""

    def there_and_back(self, notes: Sequence[Note], folder: Path) -> list[tuple[str | None, ...]]:
        path = folder / f"notes{self.suffix}"
        assert write_corpus(self.batches(notes), path, self.columns, self.suffix) == len(notes)
        corpus = open_corpus(path, **self.options)
        first = rows_of(corpus.batches())
        assert rows_of(corpus.batches()) == first, "iterating twice gives the same rows"
        assert corpus.suffix == self.suffix
        return first

    # Each format is an executor of its own, by intent.
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.differing_executors],
    )
    @given(
        data=st.lists(st.tuples(st.none() | ANY_TEXT, st.none() | ANY_TEXT), min_size=1, max_size=8)
    )
    def test_any_text_reads_back(self, data: list[tuple[str | None, str | None]]) -> None:
        notes = [
            (f"n{i:04}", f"p{i % 3}", self.usable(text), kept)
            for i, (text, kept) in enumerate(data)
        ]
        with tempfile.TemporaryDirectory() as folder:
            assert self.there_and_back(notes, Path(folder)) == self.expected(notes)

    def test_awkward_texts_read_back(self, tmp_path: Path) -> None:
        notes = [(f"n{i:04}", "p", self.usable(text), text) for i, text in enumerate(AWKWARD)]
        assert self.there_and_back(notes, tmp_path) == self.expected(notes)

    def test_null_is_not_empty(self, tmp_path: Path) -> None:
        if not self.carries_null:
            pytest.skip("a folder has no null: its writer refuses one (test_writing)")
        notes: list[Note] = [("1", "p", None, ""), ("2", "p", "", None)]
        assert self.there_and_back(notes, tmp_path) == notes

    def test_ids_stay_text_and_order_is_kept(self, tmp_path: Path) -> None:
        ids = ["007", "0.10", "1e3", "00", "true", "NA"]
        if not self.carries_columns:
            ids = sorted(ids)  # a folder has the order of its names
        notes = [(i, "0" + i, "t", None) for i in ids]
        assert self.there_and_back(notes, tmp_path) == self.expected(notes)

    def test_many_rows_come_in_batches_of_about_2000(self, tmp_path: Path) -> None:
        notes: list[Note] = [(f"{i:05}", f"{i % 9}", f"note {i}", "k") for i in range(2500)]
        assert self.there_and_back(notes, tmp_path) == self.expected(notes)
        corpus = open_corpus(tmp_path / f"notes{self.suffix}", **self.options)
        assert [b.num_rows for b in corpus.batches()] == [BATCH_ROWS, 500]

    def test_roles_source_names_and_order_are_restored(self, tmp_path: Path) -> None:
        path = tmp_path / f"notes{self.suffix}"
        write_corpus(self.batches([("1", "p", "t", "k")]), path, self.columns, self.suffix)
        corpus = open_corpus(path, **self.options)
        [batch] = corpus.batches()
        assert batch.schema.equals(SCHEMA if self.carries_columns else pa.schema(ROLE_FIELDS))
        assert corpus.columns == self.columns


class TestParquet(FormatContract):
    suffix = ".parquet"

    def test_nul_reads_back(self, tmp_path: Path) -> None:
        notes: list[Note] = [("1", "p", "a\0b", "\0")]
        assert self.there_and_back(notes, tmp_path) == notes


class TestCsv(FormatContract):
    suffix = ".csv"


class TestCsvGzip(FormatContract):
    suffix = ".csv.gz"


class TestTsvZstd(FormatContract):
    suffix = ".tsv.zst"


class TestTsv(FormatContract):
    suffix = ".tsv"


class TestJsonl(FormatContract):
    suffix = ".jsonl"

    def test_nul_reads_back(self, tmp_path: Path) -> None:
        notes: list[Note] = [("1", "p", "a\0b", "\0")]
        assert self.there_and_back(notes, tmp_path) == notes


class TestNdjsonGzip(FormatContract):
    suffix = ".ndjson.gz"


class TestTextFolder(FormatContract):
    suffix = ""
    carries_columns = False
    carries_null = False


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv.gz", ".jsonl.gz"])
def test_without_a_patient_column_none_is_written(suffix: str, tmp_path: Path) -> None:
    columns = Columns(text="note", note_id="id", order=("note", "id"))
    path = tmp_path / f"x{suffix}"
    write_corpus([batch_of([("1", "1", "t", None)]).select([0, 1, 2])], path, columns, suffix)
    corpus = open_corpus(path)
    assert corpus.columns == columns
    assert not corpus.columns.has_patients
    assert rows_of(corpus.batches()) == [("1", "1", "t")]


@pytest.mark.parametrize("suffix", [".parquet", ".csv.gz", ".csv.zst", ".jsonl.gz"])
def test_the_same_rows_make_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    """No time of day and no file name reaches the file."""
    for name in ("a", "another"):
        write_corpus([batch_of([("1", "p", "t", "k")])], tmp_path / name, SOURCE, suffix)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "another").read_bytes()


class TestI2b2Xml(FormatContract):
    suffix = ".xml"
    carries_columns = False
    carries_null = False

    def usable(self, text: str | None) -> str:
        """What XML has a place for: its writer refuses other characters (test_gold_formats)."""
        return "".join(c for c in text or "" if c in "\t\n\r" or " " <= c not in "\ufffe\uffff")
