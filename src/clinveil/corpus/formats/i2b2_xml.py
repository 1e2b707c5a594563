"""A folder of i2b2/n2c2 de-identification XML: one note per file; its id is the relative path without .xml.

Notes are written without tags, because detected identifiers are secret.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import BATCH_BYTES, BATCH_ROWS, NOTE_ID, TEXT
from clinveil.corpus.file_format import FileFormat, Reading, formats
from clinveil.corpus.streams import ROW_BYTES, too_long

_TIME = 315_532_800  # 1980-01-01, as in a folder of .txt


@dataclass(frozen=True)
class XmlSource:
    """The .xml files of a folder and its subfolders, or one file; the note is the content of `<TEXT>`.

    Raises:
        InputError: no .xml file; while reading: not well-formed or not of this form, a document type or entity, a file
        of
            more than `row_bytes`, a link that leaves the folder.
    """

    path: Path
    row_bytes: int = ROW_BYTES
    names: tuple[str, ...] = field(init=False, default=(NOTE_ID, TEXT))
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield all files as the given columns (of note_id and text)."""
        names = list(dict.fromkeys((*ids, *texts, *kept)))
        return (batch.select(names) for batch in self._read(with_text=TEXT in names))

    def _read(self, *, with_text: bool) -> Iterator[pa.RecordBatch]:
        from clinveil.corpus.gold.i2b2 import read_text, xml_files

        notes: list[tuple[str, str]] = []
        size = 0
        for file, note_id in xml_files(self.path):
            if with_text and file.stat().st_size > self.row_bytes:
                raise too_long("a note", self.row_bytes, file.name)
            notes.append((note_id, read_text(file) if with_text else ""))
            size += len(notes[-1][1])
            if len(notes) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(notes)
                notes, size = [], 0
        if notes:
            yield _batch(notes)


def _batch(notes: list[tuple[str, str]]) -> pa.RecordBatch:
    ids, texts = zip(*notes, strict=True)
    return pa.record_batch([pa.array(ids, pa.string()), pa.array(texts, pa.large_string())], names=[NOTE_ID, TEXT])


class XmlSink:
    """Write one file per note, named by its id, without tags; modification times are fixed as for .txt.

    Raises:
        InputError: columns besides id and text, a null text, a character not allowed in XML, an id that is not a
            valid file name.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        if len(schema) != 2:
            what = f"{len(schema) - 2} columns besides id and text cannot be written as .xml files"
            raise InputError(what, hint="write .parquet, .csv or .jsonl")
        self._path, self._rows = path, 0
        path.mkdir(parents=True, exist_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a file for each row."""
        from clinveil.corpus.gold.i2b2 import document
        from clinveil.corpus.gold.places import note_file

        for note_id, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            self._rows += 1
            where = f"row {self._rows} of the output"
            if text is None:
                raise InputError("a null text cannot be written as a .xml file", where=where, hint="write .parquet")
            data = document(text, (), where=where)
            try:
                file = note_file(self._path, note_id, ".xml")
                file.write_bytes(data)
            except OSError as error:
                if error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST):
                    what = "the id is not a valid file name, or the file exists"
                    raise InputError(what, where=where, hint="write .parquet") from None
                raise
            os.utime(file, (_TIME, _TIME))

    def close(self) -> None:
        """Set the folders' modification times to that of the files."""
        for folder, _, _ in os.walk(self._path):
            os.utime(folder, (_TIME, _TIME))


def _source(path: Path, how: Reading) -> XmlSource:
    return XmlSource(path, how.row_bytes)


formats.register("i2b2-xml")(FileFormat((".xml",), _source, XmlSink, folder=True))
