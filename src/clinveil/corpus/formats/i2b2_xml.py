"""A folder of i2b2/n2c2 de-identification XML: one note per file; its id is the relative path without .xml.

The note is the content of `<TEXT>`. Notes are written without tags, because detected identifiers are secret.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from clinveil.corpus.file_format import FileFormat, Reading, formats
from clinveil.corpus.note_files import FolderSink, FolderSource
from clinveil.corpus.streams import too_long


def _text(row_bytes: int, file: Path) -> str:
    from clinveil.corpus.gold.i2b2 import read_text

    if file.stat().st_size > row_bytes:
        raise too_long("a note", row_bytes, file.name)
    return read_text(file)


def _data(text: str, where: str) -> bytes:
    from clinveil.corpus.gold.i2b2 import document

    return document(text, where)


def _source(path: Path, how: Reading) -> FolderSource:
    return FolderSource(path, ".xml", partial(_text, how.row_bytes))


def _sink(path: Path, schema: pa.Schema, suffix: str) -> FolderSink:
    return FolderSink(path, schema, ".xml", _data)


formats.register("i2b2-xml")(FileFormat((".xml",), _source, _sink, folder=True))
