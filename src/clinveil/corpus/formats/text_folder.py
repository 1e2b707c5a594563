"""A folder of .txt files: one note per file; its id is the relative path without the suffix."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import BATCH_BYTES, BATCH_ROWS, NOTE_ID, TEXT
from clinveil.corpus.file_format import FileFormat, Reading, formats
from clinveil.corpus.streams import ROW_BYTES, ByteReader, refuse_nul, too_long, wrong_encoding

_BOM = "\ufeff"
_TIME = 315_532_800  # 1980-01-01, the earliest time that every archive format supports


@dataclass(frozen=True)
class TextFolderSource:
    """The .txt files of a folder and its subfolders, sorted by name; other files are ignored.

    Raises:
        InputError: no .txt file; while reading: NUL bytes, invalid bytes in the encoding, a file name that is not
        UTF-8,
            a file of more than `row_bytes`, a link that leaves the folder.
    """

    path: Path
    encoding: str = "utf-8"
    row_bytes: int = ROW_BYTES
    names: tuple[str, ...] = field(init=False, default=(NOTE_ID, TEXT))
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        if next(_files(self.path, self.path), None) is None:
            hint = "use a file, or a folder with .txt files"
            raise InputError("the folder contains no .txt file", where=self.path.name, hint=hint)

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield all files as the given columns (of note_id and text)."""
        names = list(dict.fromkeys((*ids, *texts, *kept)))
        return (batch.select(names) for batch in self._read(with_text=TEXT in names))

    def _read(self, *, with_text: bool) -> Iterator[pa.RecordBatch]:
        ids: list[str] = []
        texts: list[str] = []
        size = 0
        for file in _files(self.path, self.path):
            ids.append(self._id(file))
            texts.append(self._text(file) if with_text else "")
            size += len(texts[-1])
            if len(ids) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(ids, texts)
                ids, texts, size = [], [], 0
        if ids:
            yield _batch(ids, texts)

    def _id(self, file: Path) -> str:
        name = file.relative_to(self.path).as_posix()[: -len(".txt")]
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InputError("a file name is not UTF-8", where=self.path.name, hint="rename it") from None
        return name

    def _text(self, file: Path) -> str:
        with ByteReader(file, self.encoding) as stream:
            data = b""
            while part := stream.read():
                data += part
                if len(data) > self.row_bytes:
                    raise too_long("a note", self.row_bytes, file.name)
        if b"\0" in data:
            raise InputError("contains a NUL byte", where=file.name, hint="use a text file, or try another --encoding")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise wrong_encoding(file.name, "utf-8") from None


def _files(folder: Path, root: Path) -> Iterator[Path]:
    for item in sorted(folder.iterdir(), key=lambda p: p.name):
        if item.is_symlink() and (item.is_dir() or _is_note(item)):
            _refuse_way_out(item, root)
        if item.is_dir() and not item.is_symlink():  # a link may be circular
            yield from _files(item, root)
        elif _is_note(item) and item.is_file():
            yield item


def _is_note(item: Path) -> bool:
    return item.suffix.lower() == ".txt"


def _refuse_way_out(link: Path, root: Path) -> None:
    """Reject links that leave the folder or are broken, instead of silently skipping them."""
    target = Path(os.path.realpath(link))  # unlike Path.resolve, it terminates on circular links
    if not target.exists() or not target.is_relative_to(os.path.realpath(root)):
        name = link.relative_to(root).as_posix().encode("utf-8", "replace").decode()
        raise InputError("a link points outside the folder", where=name, hint="copy the notes or remove the link")


def _batch(ids: list[str], texts: list[str]) -> pa.RecordBatch:
    arrays = [pa.array(ids, pa.string()), pa.array(texts, pa.large_string())]
    return pa.record_batch(arrays, names=[NOTE_ID, TEXT])


class TextFolderSink:
    """Write one file per note, named by its id; ids with slashes create subfolders.

    All files and folders have the same modification time, because the true ones would disclose the source's order.

    Raises:
        InputError: columns besides id and text, a null text, NUL, or an id that is not a valid file name.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        if len(schema) != 2:
            what = f"{len(schema) - 2} columns besides id and text cannot be written as .txt files"
            raise InputError(what, hint="write .parquet, .csv or .jsonl")
        self._path, self._rows = path, 0
        path.mkdir(parents=True, exist_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a file for each row."""
        refuse_nul(batch.column(1), "folder", self._rows)
        for note_id, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            self._rows += 1
            self._write(note_id, text)

    def _write(self, note_id: str, text: str | None) -> None:
        where = f"row {self._rows} of the output"
        if text is None:
            raise InputError("a null text cannot be written as a .txt file", where=where, hint="write .parquet")
        parts = PurePosixPath(note_id).parts
        plain = note_id == "/".join(parts) and not note_id.startswith("/") and not {"..", "."} & set(parts)
        if not plain or "\0" in note_id:
            raise InputError("the id is not a valid file name", where=where, hint="write .parquet, .csv or .jsonl")
        file = self._path.joinpath(*parts[:-1], parts[-1] + ".txt")
        # A text that begins with a byte order mark gets another one, because reading removes one.
        data = (_BOM * text.startswith(_BOM) + text).encode()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as out:
                out.write(data)
        except (FileExistsError, NotADirectoryError):
            raise InputError("the file of this id exists already", where=where, hint="ids must be unique") from None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise InputError("the id is too long for a file name", where=where, hint="write .parquet") from None
            raise
        os.utime(file, (_TIME, _TIME))

    def close(self) -> None:
        """Set the folders' modification times to that of the files."""
        for folder, _, _ in os.walk(self._path):
            os.utime(folder, (_TIME, _TIME))


def _source(path: Path, how: Reading) -> TextFolderSource:
    return TextFolderSource(path, how.encoding, how.row_bytes)


formats.register("text-folder")(FileFormat(("",), _source, TextFolderSink, folder=True))
