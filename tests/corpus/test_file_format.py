"""A file format is one file: what it registers is read, written, and named in messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from clinveil.core import InputError, UsageError
from clinveil.corpus import formats, open_corpus, rows, write_corpus
from clinveil.corpus.file_format import FileFormat
from clinveil.corpus.formats import format_of, suffix_of, suffixes


@dataclass
class Lines:
    """One note a line, `id text`: what a third party would write."""

    path: Path
    names = ("note_id", "text")
    optional_keys = frozenset()

    def read(self, ids, texts=(), kept=()) -> Iterator[pa.RecordBatch]:
        pairs = (line.split(" ", 1) for line in self.path.read_text().splitlines())
        yield pa.RecordBatch.from_pylist(
            [dict(zip(self.names, p, strict=True)) for p in pairs]
        ).select([*ids, *texts])


class LinesSink:
    def __init__(self, path, schema, suffix):
        self._file = path.open("w")

    def write_batch(self, batch):
        self._file.writelines(f"{row['note_id']} {row['text']}\n" for row in batch.to_pylist())

    def close(self):
        self._file.close()


@pytest.fixture
def registered(monkeypatch):
    lines = FileFormat((".lines",), lambda path, _: Lines(path), LinesSink)
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, lines))


def test_a_format_of_others(registered, tmp_path):
    path = tmp_path / "notes.lines"
    path.write_text("n1 as it was\nn2 well\n")
    assert suffix_of(path) == ".lines"
    corpus = open_corpus(path)
    assert [note[::2] for note in rows(corpus)] == [("n1", "as it was"), ("n2", "well")]
    again = tmp_path / "again.lines"
    assert write_corpus(corpus.batches(), again, corpus.columns, corpus.suffix) == 2
    assert again.read_text() == path.read_text()
    assert write_corpus(corpus.batches(), tmp_path / "a.csv", corpus.columns, ".csv") == 2


def test_all_formats_are_named_where_one_is_unknown(registered, tmp_path):
    (tmp_path / "notes.doc").touch()
    with pytest.raises(InputError) as caught:
        open_corpus(tmp_path / "notes.doc")
    assert all(f"{suffix}, " in str(caught.value) for suffix in suffixes())
    with pytest.raises(UsageError, match="unknown file type"):
        format_of(".doc")


def test_ours_come_first():
    assert suffixes()[:5] == (".parquet", ".csv", ".csv.gz", ".csv.zst", ".tsv")
    assert suffix_of(Path("a/B.CSV.GZ")) == ".csv.gz"
    assert suffix_of(Path("a/b")) == ""
