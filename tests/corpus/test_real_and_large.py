"""Real files, files larger than memory should notice, and rows as Python's own reader sees them."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinveil.core import InputError, NotesSettings
from clinveil.corpus import ROLE_FIELDS, Columns, Writer, open_corpus, write_corpus
from clinveil.corpus.formats.delimited import DelimitedSource

REAL = {
    "notes/mtsamples.csv.gz": (
        NotesSettings(text="transcription", id="doc_id"),
        {"label": ("doc_type",)},
        1796,
    ),
    "notes/aci_bench.csv.gz": (
        NotesSettings(text="note", id="id"),
        {"keep": ("patient_firstname", "cc")},
        87,
    ),
    "classification/ohsumed_train.csv.gz": (
        NotesSettings(text="text", id="doc_id"),
        {"label": ("label",)},
        3357,
    ),
    "classification/imdb_train.csv.gz": (
        NotesSettings(text="text", id="doc_id"),
        {"label": ("label",)},
        24999,
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_read_as_python_reads_them(
    name: str, real_data: Callable[[str], Path], tmp_path: Path
) -> None:
    path = real_data(name)
    options, kept, rows = REAL[name]
    corpus = open_corpus(path, options, **kept)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        expected = [(r[options.id], r[options.text]) for r in csv.DictReader(file)]
    found = [
        pair
        for b in corpus.batches()
        for pair in zip(b.column(0).to_pylist(), b.column(2).to_pylist(), strict=True)
    ]
    assert len(found) == rows
    assert [(i, t or "") for i, t in found] == expected
    for suffix in (".parquet", ".csv.zst", ".jsonl.gz") if rows < 5000 else (".csv",):
        assert (
            write_corpus(corpus.batches(), tmp_path / f"x{suffix}", corpus.columns, suffix) == rows
        )
        again = open_corpus(tmp_path / f"x{suffix}", options, **kept)
        assert all(a.equals(b) for a, b in zip(again.batches(), corpus.batches(), strict=True))


def test_a_real_file_with_ids_that_stand_twice(real_data: Callable[[str], Path]) -> None:
    """MTS-Dialog numbers its training and its validation notes from 0."""
    path = real_data("notes/mts_dialog.csv.gz")
    corpus = open_corpus(
        path, NotesSettings(text="section_text", id="ID"), label=("section_header",)
    )
    with pytest.raises(
        InputError, match=r"mts_dialog.csv.gz, row 1202: duplicate id, already used in row 1"
    ):
        list(corpus.batches())


# --- rows
# ---------------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None, database=None)
@given(st.text(st.sampled_from('a,"\n\r '), max_size=14))
def test_rows_and_fields_are_those_of_pythons_strict_reader(text: str) -> None:
    """Pyarrow converts the rows; a text that the strict reader refuses is refused."""
    data = "h,i\n" + text + "\n"
    try:
        rows = [row for row in csv.reader(io.StringIO(data, newline=""), strict=True) if row]
    except csv.Error:
        rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(data, encoding="utf-8", newline="")
        if any(len(row) != 2 for row in rows) or not rows:
            with pytest.raises(InputError, match=r"a quote is|fields for 2 columns"):
                list(DelimitedSource(path).read(["h", "i"]))
            return
        batches = list(DelimitedSource(path).read(["h", "i"]))
    read = [list(row.values()) for batch in batches for row in batch.to_pylist()]
    assert [[value or "" for value in row] for row in read] == rows[1:]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.data())
def test_any_chunk_size_gives_the_same_rows(size: int, data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(st.text(st.sampled_from('a,"\r\n é😀'), max_size=10), min_size=1, max_size=6)
    )
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([("id", "text"), *enumerate(texts)])
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(buffer.getvalue().encode())
        patch.setattr("clinveil.corpus.formats.delimited.CHUNK_BYTES", size)
        batches = list(open_corpus(path).batches())
        path.write_bytes(buffer.getvalue().encode("utf-16"))
        recoded = list(open_corpus(path, NotesSettings(encoding="utf-16")).batches())
    assert [t for b in batches for t in b.column(2).to_pylist()] == texts
    assert [t for b in recoded for t in b.column(2).to_pylist()] == texts


# --- memory
# ---------------------------------------------------------------------------------------

PASS = """
import resource, sys
from pathlib import Path
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import write_corpus
source, target, suffix = sys.argv[1:]
corpus = open_corpus(Path(source))
rows = write_corpus(corpus.batches(), Path(target), corpus.columns, suffix)
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak(source: Path, suffix: str) -> tuple[int, int]:
    """Rows and peak megabytes of a process that reads a file and writes it again."""
    command = [sys.executable, "-c", PASS, str(source), str(source.with_name("copy")), suffix]
    rows, megabytes = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.split()
    return int(rows), int(megabytes)


def write_notes(path: Path, n: int, suffix: str) -> None:
    columns = Columns(
        text="text",
        note_id="note_id",
        patient_id="patient_id",
        order=("note_id", "patient_id", "text"),
    )
    texts = [
        f"{i} a small note about {i * 7919 % 100_003} and nothing else. " * 6 for i in range(2000)
    ]
    with Writer(path, columns, suffix) as writer:
        for start in range(0, n, 2000):
            ids = [str(i) for i in range(start, start + 2000)]
            writer.write(pa.record_batch([pa.array(ids), pa.array(ids), pa.array(texts,
                pa.large_string())],
                                         schema=pa.schema(ROLE_FIELDS)))  # fmt: skip


@pytest.mark.parametrize("suffix", [".csv.zst", ".jsonl", ".parquet"])
@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(suffix: str, tmp_path: Path) -> None:
    """Ten times the notes, 30 to 60 MB more text, and no more than 20 MB more memory."""
    peaks = []
    fewer = 2 if suffix == ".jsonl" else 1  # a slow format; the sum is the same
    for n in (20_000 // fewer, 200_000 // fewer):
        path = tmp_path / f"n{n}{suffix}"
        write_notes(path, n, suffix)
        rows, megabytes = peak(path, suffix)
        assert rows == n
        peaks.append(megabytes)
    assert peaks[1] - peaks[0] < 20, peaks


@pytest.mark.slow
def test_a_row_group_is_not_read_whole(tmp_path: Path) -> None:
    """Other programs write row groups of a million rows; a pass holds some of one only."""
    texts = [f"{i} {i * 7919} {i * 104729} " * 40 for i in range(40_000)]
    table = pa.table({"note_id": [str(i) for i in range(40_000)], "text": texts})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10**6, use_dictionary=False)
    size = table.nbytes // 2**20
    del table
    _, megabytes = peak(tmp_path / "a.parquet", ".parquet")
    baseline = peak(small(tmp_path), ".parquet")[1]
    assert megabytes - baseline < size / 2, (megabytes, baseline, size)


def small(folder: Path) -> Path:
    write_notes(folder / "s.parquet", 2000, ".parquet")
    return folder / "s.parquet"
