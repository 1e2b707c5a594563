"""Folders with one note per file: .txt, or i2b2/n2c2 de-identification XML.

The id of a note is the relative path of its file without the suffix. The note of an XML file is the
content of `<TEXT>`; notes are written without tags, because detected identifiers are secret. The
XML parser rejects document types, entities and external references. XML normalises line breaks to
line feeds, so a carriage return is written as a character reference.
Source: Stubbs & Uzuner 2015, J. Biomed. Inform. 58:S20 (the 2014 corpus); 2016 CEGEMS N-GRID has
the same format.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from clinveil.core import InputError, Location
from clinveil.corpus.corpus import BATCH_BYTES, BATCH_ROWS, NOTE_ID, TEXT
from clinveil.corpus.file_format import FileFormat, ReadOptions
from clinveil.corpus.streams import ByteReader, decoded, too_long

_TIME = 315_532_800  # 1980-01-01, the earliest time that every archive format supports
_BOM = "\ufeff"
_ROOT = "deIdi2b2"
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# CDATA must be split at its end marker and at a carriage return, which parsers turn into a line
# feed.
_SPLIT = re.compile(r"(?<=\]\])>|\r")


def note_files(folder: Path, suffix: str, root: Path | None = None) -> Iterator[tuple[Path, str]]:
    """Yield all files with a suffix in a folder and its subfolders, sorted by name, each with its
    note id.

    Raises InputError for links that leave the folder or are broken, and for file names that are not
    UTF-8.
    """
    root = root or folder
    for item in sorted(folder.iterdir(), key=lambda p: p.name):
        is_note = item.suffix.lower() == suffix
        if item.is_symlink() and (item.is_dir() or is_note):
            # Unlike Path.resolve, it terminates on circular links.
            target = Path(os.path.realpath(item))
            if not target.exists() or not target.is_relative_to(os.path.realpath(root)):
                name = item.relative_to(root).as_posix().encode("utf-8", "replace").decode()
                hint = "copy the notes or remove the link"
                raise InputError("a link points outside the folder", where=name, hint=hint)
        if item.is_dir() and not item.is_symlink():  # a link may be circular
            yield from note_files(item, suffix, root)
        elif is_note and item.is_file():
            name = item.relative_to(root).as_posix()[: -len(suffix)]
            try:
                name.encode()
            except UnicodeEncodeError:
                raise InputError(
                    "a file name is not UTF-8", where=root.name, hint="rename it"
                ) from None
            yield item, name


@dataclass(frozen=True)
class FolderSource:
    """The files of a folder with a suffix, or one such file, as a source of notes.

    Raises InputError if there is no file; while reading like `note_files`, and for a damaged or too
    long note.
    """

    path: Path
    options: ReadOptions
    names: tuple[str, ...] = field(init=False, default=(NOTE_ID, TEXT))
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        if next(self._files(), None) is None:
            suffix = self._suffix
            problem = f"the folder contains no {suffix} file"
            hint = f"use a file, or a folder with {suffix} files"
            raise InputError(problem, where=self.path.name, hint=hint)

    @property
    def _suffix(self) -> str:
        return self.options.suffix or ".txt"

    def _files(self) -> Iterator[tuple[Path, str]]:
        if not self.path.is_dir():
            return iter([(self.path, self.path.name[: -len(self._suffix)])])
        return note_files(self.path, self._suffix)

    def read(
        self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield all files as the given columns (of note_id and text)."""
        names = list(dict.fromkeys((*ids, *texts, *kept)))
        notes: list[tuple[str, str]] = []
        size = 0
        for file, note_id in self._files():
            notes.append((note_id, self._text(file) if TEXT in names else ""))
            size += len(notes[-1][1])
            if len(notes) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(notes).select(names)
                notes = []
                size = 0
        if notes:
            yield _batch(notes).select(names)

    def _text(self, file: Path) -> str:
        if self.options.suffix:
            if file.stat().st_size > self.options.row_bytes:
                raise too_long("a note", self.options.row_bytes, file.name)
            return read_xml(file)[0]
        with ByteReader(file, self.options.encoding) as stream:
            data = b""
            while part := stream.read():
                data += part
                if len(data) > self.options.row_bytes:
                    raise too_long("a note", self.options.row_bytes, file.name)
        if b"\0" in data:
            hint = "use a text file, or pass its encoding, such as --set notes.encoding=utf-16-le"
            raise InputError("contains a NUL byte", where=file.name, hint=hint)
        return decoded(data, file.name)


def _batch(notes: list[tuple[str, str]]) -> pa.RecordBatch:
    ids, texts = zip(*notes, strict=True)
    return pa.record_batch(
        [pa.array(ids, pa.string()), pa.array(texts, pa.large_string())], names=[NOTE_ID, TEXT]
    )


def read_xml(file: Path) -> tuple[str, Any]:
    """Return the note of an i2b2 file and the root of its XML. Raises InputError."""
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(file.read_bytes(), forbid_dtd=True)
    except ParseError as error:
        line, _ = error.position
        hint = "check that it is an intact i2b2/n2c2 file"
        raise InputError(
            "not well-formed XML", where=f"{file.name}, line {line}", hint=hint
        ) from None
    except DefusedXmlException:
        hint = "remove the <!DOCTYPE …>"
        raise InputError(
            "document types and entities are not allowed", where=file.name, hint=hint
        ) from None
    except (ValueError, LookupError):
        raise InputError(
            "unknown encoding", where=file.name, hint="convert the file to UTF-8"
        ) from None
    texts = root.findall("TEXT")
    if len(texts) != 1 or len(texts[0]):
        hint = "use the format of i2b2 2014"
        raise InputError("must have exactly one <TEXT> without tags", where=file.name, hint=hint)
    return texts[0].text or "", root


class FolderSink:
    """Write one file per note, named by its id; ids with slashes create subfolders.

    All files and folders have the same modification time, because the true ones would disclose the
    source's order.

    Raises:
        InputError: columns besides id and text, a text that the format cannot store, or an id that
            is not a valid file name.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str) -> None:
        self._path = path
        self._suffix = suffix or ".txt"
        self._rows = 0
        if len(schema) != 2:
            problem = (
                f"{len(schema) - 2} columns besides id and text cannot be written as {self._suffix}"
                " files"
            )
            raise InputError(problem, hint="write .parquet, .csv or .jsonl")
        path.mkdir(parents=True, exist_ok=True)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a file for each row."""
        for note_id, text in zip(
            batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True
        ):
            self._rows += 1
            where = f"row {self._rows} of the output"
            if text is None:
                problem = f"a null text cannot be written as a {self._suffix} file"
                raise InputError(problem, where=where, hint="write .parquet")
            data = document(text, where) if self._suffix == ".xml" else _plain(text, where)
            self._create(note_id, data, where)

    def _create(self, note_id: str, data: bytes, where: str) -> None:
        parts = PurePosixPath(note_id).parts
        plain = (
            note_id == "/".join(parts)
            and parts
            and not note_id.startswith("/")
            and not {"..", "."} & set(parts)
        )
        if not plain or "\0" in note_id:
            raise InputError(
                "the id is not a valid file name",
                where=where,
                hint="write .parquet, .csv or .jsonl",
            )
        file = self._path.joinpath(*parts[:-1], parts[-1] + self._suffix)
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with file.open("xb") as out:
                out.write(data)
        except (FileExistsError, NotADirectoryError):
            raise InputError(
                "the file of this id exists already", where=where, hint="ids must be unique"
            ) from None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise InputError(
                    "the id is too long for a file name", where=where, hint="write .parquet"
                ) from None
            raise
        os.utime(file, (_TIME, _TIME))

    def close(self) -> None:
        """Set the folders' modification times to that of the files."""
        for folder, _, _ in os.walk(self._path):
            os.utime(folder, (_TIME, _TIME))


def _plain(text: str, where: str) -> bytes:
    if "\0" in text:
        raise InputError(
            "the text contains a NUL character", where=where, hint="remove it from the note"
        )
    # A text that begins with a byte order mark gets another one, because reading removes one.
    return (_BOM * text.startswith(_BOM) + text).encode()


def document(text: str, where: str = "") -> bytes:
    """Return a note as XML in UTF-8, without tags. Raises InputError for a character not allowed in
    XML.
    """
    if _ILLEGAL.search(text):
        problem = "a note contains a control character, which XML does not allow"
        raise InputError(problem, where=where, hint="write .jsonl or .parquet")
    safe = _SPLIT.sub(lambda match: f"]]>&#{ord(match[0])};<![CDATA[", text)
    head = f'<?xml version="1.0" encoding="UTF-8" ?>\n<{_ROOT}>\n'
    return f"{head}<TEXT><![CDATA[{safe}]]></TEXT>\n<TAGS>\n</TAGS>\n</{_ROOT}>\n".encode()


def _source(path: Location, options: ReadOptions) -> FolderSource:
    if not isinstance(path, Path):
        hint = "copy the folder to this machine"
        raise InputError("this format is not read from a store", where=path.name, hint=hint)
    return FolderSource(path, options)


FOLDERS = FileFormat(("", ".xml"), _source, FolderSink, folder=True)
