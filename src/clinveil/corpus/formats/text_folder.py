"""A folder of .txt files: one note per file; its id is the relative path without the suffix."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.file_format import FileFormat, Reading, formats
from clinveil.corpus.note_files import FolderSink, FolderSource
from clinveil.corpus.streams import ByteReader, decoded, too_long

_BOM = "\ufeff"


def _text(how: Reading, file: Path) -> str:
    """Read a note. Raises InputError for NUL bytes, invalid bytes in the encoding, or too many bytes."""
    with ByteReader(file, how.encoding) as stream:
        data = b""
        while part := stream.read():
            data += part
            if len(data) > how.row_bytes:
                raise too_long("a note", how.row_bytes, file.name)
    if b"\0" in data:
        raise InputError("contains a NUL byte", where=file.name, hint="use a text file, or try another --encoding")
    return decoded(data, file.name)


def _data(text: str, where: str) -> bytes:
    if "\0" in text:
        raise InputError("the text contains a NUL character", where=where, hint="remove it from the note")
    # A text that begins with a byte order mark gets another one, because reading removes one.
    return (_BOM * text.startswith(_BOM) + text).encode()


def _source(path: Path, how: Reading) -> FolderSource:
    return FolderSource(path, ".txt", partial(_text, how))


def _sink(path: Path, schema: pa.Schema, suffix: str) -> FolderSink:
    return FolderSink(path, schema, ".txt", _data)


formats.register("text-folder")(FileFormat(("",), _source, _sink, folder=True))
