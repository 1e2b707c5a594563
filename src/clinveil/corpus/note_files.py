"""Folders with one file per note; the id of a note is the relative path of its file without the suffix."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.corpus.corpus import BATCH_BYTES, BATCH_ROWS, NOTE_ID, TEXT

_TIME = 315_532_800  # 1980-01-01, the earliest time that every archive format supports


def note_files(folder: Path, suffix: str, root: Path | None = None) -> Iterator[tuple[Path, str]]:
    """Yield all files with a suffix in a folder and its subfolders, sorted by name, each with its note id.

    Raises InputError for links that leave the folder or are broken, and for file names that are not UTF-8.
    """
    root = root or folder
    for item in sorted(folder.iterdir(), key=lambda p: p.name):
        is_note = item.suffix.lower() == suffix
        if item.is_symlink() and (item.is_dir() or is_note):
            _refuse_way_out(item, root)
        if item.is_dir() and not item.is_symlink():  # a link may be circular
            yield from note_files(item, suffix, root)
        elif is_note and item.is_file():
            name = item.relative_to(root).as_posix()[: -len(suffix)]
            try:
                name.encode()
            except UnicodeEncodeError:
                raise InputError("a file name is not UTF-8", where=root.name, hint="rename it") from None
            yield item, name


def _refuse_way_out(link: Path, root: Path) -> None:
    """Reject links that leave the folder or are broken, instead of silently skipping them."""
    target = Path(os.path.realpath(link))  # unlike Path.resolve, it terminates on circular links
    if not target.exists() or not target.is_relative_to(os.path.realpath(root)):
        name = link.relative_to(root).as_posix().encode("utf-8", "replace").decode()
        raise InputError("a link points outside the folder", where=name, hint="copy the notes or remove the link")


def write_note_file(folder: Path, note_id: str, suffix: str, data: bytes, where: str) -> Path:
    """Write the new file of a note; ids with slashes create subfolders. Raises InputError for an unusable id."""
    parts = PurePosixPath(note_id).parts
    plain = note_id == "/".join(parts) and parts and not note_id.startswith("/") and not {"..", "."} & set(parts)
    if not plain or "\0" in note_id:
        raise InputError("the id is not a valid file name", where=where, hint="write .parquet, .csv or .jsonl")
    file = folder.joinpath(*parts[:-1], parts[-1] + suffix)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("xb") as out:
            out.write(data)
    except (FileExistsError, NotADirectoryError):
        raise InputError("the file of this id exists already", where=where, hint="ids must be unique") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError("the id is too long for a file name", where=where, hint="write .parquet") from None
        raise
    return file


@dataclass(frozen=True)
class FolderSource:
    """The files of a folder with a suffix, or one such file, as a source of notes.

    `text_of` reads the text of a file. Raises InputError if there is no file, and while reading like `note_files`.
    """

    path: Path
    suffix: str
    text_of: Callable[[Path], str] = field(repr=False)
    names: tuple[str, ...] = field(init=False, default=(NOTE_ID, TEXT))
    optional_keys: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        if next(self._files(), None) is None:
            what, hint = (
                f"the folder contains no {self.suffix} file",
                f"use a file, or a folder with {self.suffix} files",
            )
            raise InputError(what, where=self.path.name, hint=hint)

    def _files(self) -> Iterator[tuple[Path, str]]:
        if not self.path.is_dir():
            return iter([(self.path, self.path.name[: -len(self.suffix)])])
        return note_files(self.path, self.suffix)

    def read(self, ids: Sequence[str], texts: Sequence[str] = (), kept: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield all files as the given columns (of note_id and text)."""
        names = list(dict.fromkeys((*ids, *texts, *kept)))
        notes: list[tuple[str, str]] = []
        size = 0
        for file, note_id in self._files():
            notes.append((note_id, self.text_of(file) if TEXT in names else ""))
            size += len(notes[-1][1])
            if len(notes) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _batch(notes).select(names)
                notes, size = [], 0
        if notes:
            yield _batch(notes).select(names)


def _batch(notes: list[tuple[str, str]]) -> pa.RecordBatch:
    ids, texts = zip(*notes, strict=True)
    return pa.record_batch([pa.array(ids, pa.string()), pa.array(texts, pa.large_string())], names=[NOTE_ID, TEXT])


class FolderSink:
    """Write one file per note, named by its id.

    All files and folders have the same modification time, because the true ones would disclose the source's order.

    Args:
        data_of: returns the bytes of a file for a text and its place in messages; may raise InputError.

    Raises:
        InputError: columns besides id and text, a null text, or an id that is not a valid file name.
    """

    def __init__(self, path: Path, schema: pa.Schema, suffix: str, data_of: Callable[[str, str], bytes]) -> None:
        if len(schema) != 2:
            what = f"{len(schema) - 2} columns besides id and text cannot be written as {suffix} files"
            raise InputError(what, hint="write .parquet, .csv or .jsonl")
        self._path, self._suffix, self._data_of, self._rows = path, suffix, data_of, 0
        path.mkdir(parents=True, exist_ok=True)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a file for each row."""
        for note_id, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            self._rows += 1
            where = f"row {self._rows} of the output"
            if text is None:
                what = f"a null text cannot be written as a {self._suffix} file"
                raise InputError(what, where=where, hint="write .parquet")
            file = write_note_file(self._path, note_id, self._suffix, self._data_of(text, where), where)
            os.utime(file, (_TIME, _TIME))

    def close(self) -> None:
        """Set the folders' modification times to that of the files."""
        for folder, _, _ in os.walk(self._path):
            os.utime(folder, (_TIME, _TIME))
