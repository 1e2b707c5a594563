"""A folder of i2b2/n2c2 de-identification XML: one note a file, its id the path inside the folder without .xml.

Notes are written without tags: what was found in them is secret.
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
    """The .xml files of a folder with its subfolders, or one file; what its `<TEXT>` holds is the note.

    Raises:
        InputError: no .xml file in it; while reading: no well-formed file of this form, a document type or entity, a
            file of more than `row_bytes`, a link that leads out of the folder.
    """

    path: Path
    row_bytes: int = ROW_BYTES
    names: tuple[str, ...] = field(init=False, default=(NOTE_ID, TEXT))
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """All files, as the columns named (of note_id and text)."""
        names = list(dict.fromkeys((*ids, *texts, *kept)))
        return (batch.select(names) for batch in self._read(with_text=TEXT in names))

    def _read(self, *, with_text: bool) -> Iterator[pa.RecordBatch]:
        from clinveil.corpus.gold.i2b2 import read_text, xml_files

        found: list[tuple[str, str]] = []
        size = 0
        for file, note_id in xml_files(self.path):
            if with_text and file.stat().st_size > self.row_bytes:
                raise too_long("a note", self.row_bytes, file.name)
            found.append((note_id, read_text(file) if with_text else ""))
            size += len(found[-1][1])
            if len(found) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(found)
                found, size = [], 0
        if found:
            yield _batch(found)


def _batch(found: list[tuple[str, str]]) -> pa.RecordBatch:
    ids, texts = zip(*found, strict=True)
    return pa.record_batch([pa.array(ids, pa.string()), pa.array(texts, pa.large_string())], names=[NOTE_ID, TEXT])


class XmlSink:
    """Writes one file a note, named by its id, with no tags; times of change as in a folder of .txt.

    Raises:
        InputError: more columns than id and text, a null text, a character that XML has not, an unfit id.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        if len(schema) != 2:
            extra = f"{len(schema) - 2} columns besides id and text find no place in a folder of .xml"
            raise InputError(extra, hint="write .parquet, .csv or .jsonl")
        self._path, self._rows = path, 0
        path.mkdir(parents=True, exist_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a file for each row."""
        from clinveil.corpus.gold.i2b2 import document
        from clinveil.corpus.gold.places import note_file

        for note_id, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            self._rows += 1
            where = f"row {self._rows} of the folder to write"
            if text is None:
                raise InputError("a null text finds no place in a folder of .xml", where=where, hint="write .parquet")
            data = document(text, (), where=where)
            try:
                file = note_file(self._path, note_id, ".xml")
                file.write_bytes(data)
            except OSError as error:
                if error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST):
                    what = "its id cannot be a file name, or is one already"
                    raise InputError(what, where=where, hint="write .parquet") from None
                raise
            os.utime(file, (_TIME, _TIME))

    def close(self) -> None:
        """Give the folders the time of change that the files have."""
        for folder, _, _ in os.walk(self._path):
            os.utime(folder, (_TIME, _TIME))


def _source(path: Path, how: Reading) -> XmlSource:
    return XmlSource(path, how.row_bytes)


formats.register("i2b2-xml")(FileFormat((".xml",), _source, XmlSink, folder=True))
