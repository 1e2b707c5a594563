"""List and create the files of a folder of annotated notes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from clinveil.core.errors import InputError


def files_of(folder: Path, suffix: str) -> Iterator[tuple[Path, str]]:
    """Yield all files with a suffix, sorted by name, each with its note id: its relative path without the suffix.

    Raises InputError for links that leave the folder, and for file names that are not UTF-8.
    """
    root = Path(os.path.realpath(folder))
    for file in sorted(item for item in folder.rglob("*") if item.suffix.lower() == suffix and item.is_file()):
        name = file.relative_to(folder).as_posix()
        if any(0xD800 <= ord(c) < 0xE000 for c in name):
            raise InputError("a file name is not UTF-8", where=folder.name, hint="rename it")
        if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(root):
            raise InputError("a link points outside the folder", where=name, hint="copy the file")
        yield file, name[: -len(suffix)]


def note_file(folder: Path, note_id: str, suffix: str) -> Path:
    """Return the path of a new file of a note and create its folder. Raises InputError for an unusable id."""
    parts = PurePosixPath(note_id).parts
    plain = note_id == "/".join(parts) and parts and not note_id.startswith("/") and not {"..", "."} & set(parts)
    if not plain or "\0" in note_id:
        raise InputError("an id is not a valid file name", where=folder.name, hint="write .jsonl")
    file = folder.joinpath(*parts[:-1], parts[-1] + suffix)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if file.exists():
        raise InputError("the file of a note exists already", where=folder.name, hint="ids must be unique")
    return file
