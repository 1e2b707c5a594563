"""Inputs of several files: patterns such as `notes/*.parquet`, folders, and object stores."""

from __future__ import annotations

import os
from glob import has_magic
from pathlib import Path

from clinveil.core import remote
from clinveil.core.remote import RemotePath


def is_pattern(path: Path) -> bool:
    """Return whether a path is a glob pattern (`*`, `?`, `[…]`, `**`) and not the name of an existing file."""
    if isinstance(path, RemotePath):
        return path.pattern
    return has_magic(str(path)) and not path.exists()


def root_of(pattern: Path) -> Path:
    """Return the folder that a pattern searches: its leading parts without wildcards."""
    if isinstance(pattern, RemotePath):
        return remote.root_of(pattern)
    plain = []
    for part in pattern.parts[:-1]:
        if has_magic(part):
            break
        plain.append(part)
    return Path(*plain)


def below(file: Path, root: Path) -> str:
    """Return the path of a file relative to a folder, with slashes."""
    if isinstance(file, RemotePath) and isinstance(root, RemotePath):
        return file.below(root)
    return file.relative_to(root).as_posix()


def files_of(place: Path) -> list[Path]:
    """Return all files of a folder or pattern, sorted by path; a folder that matches contributes all of its files.

    Names that begin with `.` or `_` below the folder are skipped: they are not data.
    """
    root = root_of(place) if is_pattern(place) else place
    if isinstance(place, RemotePath):
        paths: set[Path] = {file for file, *_ in remote.files_of(place)}
    else:
        matched = root.glob(str(place.relative_to(root))) if is_pattern(place) else [place]
        paths = {file for path in matched for file in ([path] if path.is_file() else _in_folder(path))}
    return sorted((file for file in paths if _is_data(below(file, root))), key=lambda file: below(file, root))


def _in_folder(folder: Path) -> list[Path]:
    paths = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return [path for path in paths if path.is_file()]


def _is_data(name: str) -> bool:
    return not any(part.startswith((".", "_")) for part in name.split("/"))
