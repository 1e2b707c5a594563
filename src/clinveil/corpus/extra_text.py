"""Additional text for training only: notes in any format, or plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import BATCH_ROWS, ROLE_FIELDS, Corpus, MemoryCorpus
from clinveil.corpus.open import open_corpus
from clinveil.corpus.streams import ROW_BYTES, ByteReader, too_long, wrong_encoding

LINES = (".txt", ".txt.gz", ".txt.zst")


def open_text(path: Path) -> Corpus:
    """Open notes in any supported format, or a file of lines (.txt, also compressed), one text per line.

    Raises InputError for a missing, empty or damaged file, or invalid UTF-8; for lines when they are read.
    """
    if path.is_dir() or not path.name.lower().endswith(LINES):
        return open_corpus(path, NotesSettings())
    if not path.is_file():
        raise InputError("no such file or folder", where=path.name, hint="check the path")
    return MemoryCorpus(lambda: _batches(path))


def joined(notes: Corpus, more: Corpus) -> Corpus:
    """Return the texts of one corpus followed by those of another; kept columns may differ."""

    def both() -> Iterator[pa.RecordBatch]:
        yield from notes.batches()
        yield from more.batches()

    return MemoryCorpus(both)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    texts: list[str] = []
    n_lines = 0
    for line in _lines(path):
        n_lines += 1
        texts.append(line)
        if len(texts) == BATCH_ROWS:
            yield _batch(texts, n_lines)
            texts = []
    if not n_lines:
        raise InputError("the file is empty", where=path.name, hint="use a file with one text per line")
    yield _batch(texts, n_lines)


def _batch(texts: list[str], end: int) -> pa.RecordBatch:
    ids = [f"line {n}" for n in range(end - len(texts) + 1, end + 1)]
    columns = zip((ids, ids, texts), ROLE_FIELDS, strict=True)
    return pa.record_batch([pa.array(column, field.type) for column, field in columns], schema=pa.schema(ROLE_FIELDS))


def _lines(path: Path) -> Iterator[str]:
    rest = b""
    with ByteReader(path) as stream:
        while data := stream.read():
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > ROW_BYTES:
                raise too_long("a line", ROW_BYTES, path.name)
            yield from (_text(line, path.name) for line in lines)
    if rest:
        yield _text(rest, path.name)


def _text(line: bytes, name: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise wrong_encoding(name, "utf-8") from None
