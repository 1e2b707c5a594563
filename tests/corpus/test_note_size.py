"""A note longer than `max_note_bytes` is refused before it is looked at, whatever it comes in."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinveil.cli import main
from clinveil.core import InputError, NotesSettings
from clinveil.corpus import open_corpus
from clinveil.corpus.streams import _open as real_open

LONG = "word " * 1_000


def put(folder, kind, text):
    """Two notes, the second with this text."""
    path = folder / f"notes{kind}"
    if kind == "":
        path.mkdir()
        (path / "1.txt").write_text("short")
        (path / "2.txt").write_text(text)
    elif kind == ".parquet":
        pq.write_table(pa.table({"id": ["1", "2"], "text": ["short", text]}), path)
    elif kind == ".jsonl":
        path.write_text(f'{{"id": "1", "text": "short"}}\n{{"id": "2", "text": "{text}"}}\n')
    else:
        path.write_text(f"id,text\n1,short\n2,{text}\n")
    return path


@pytest.mark.parametrize("kind", ["", ".parquet", ".jsonl", ".csv"])
def test_the_limit_is_the_notes_own_size(tmp_path, kind):
    path = put(tmp_path, kind, LONG)
    with pytest.raises(InputError, match="row 2: the note has more than 4,999 bytes"):
        list(open_corpus(path, NotesSettings(max_note_bytes=4_999)).batches())
    assert (
        sum(b.num_rows for b in open_corpus(path, NotesSettings(max_note_bytes=5_000)).batches())
        == 2
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_bomb_of_one_row_is_refused_early(tmp_path, capsys, monkeypatch, kind):
    start = b'id,text\n1,"' if kind == "csv" else b'{"id": "1", "text": "'
    path = tmp_path / f"bomb.{kind}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(40):
            file.write(b"word " * 200_000)
    read = []
    monkeypatch.setattr(
        "clinveil.corpus.streams._open", lambda path: Counted(real_open(path), read)
    )
    assert main(["inspect", str(path), "--set", "notes.max_note_bytes=1000000"]) == 3
    said = capsys.readouterr().err
    assert "exceeds 4 MB" in said and "--set notes.max_note_bytes=" in said and "word" not in said
    assert 0 < sum(read) < 20_000_000


class Counted:
    """A file that counts the bytes read."""

    def __init__(self, file, read):
        self._file = file
        self._read = read

    def read(self, size):
        data = self._file.read(size)
        self._read.append(len(data))
        return data

    def close(self):
        self._file.close()
