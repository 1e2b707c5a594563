"""Places that are more than one file: patterns such as `notes/*.parquet`, folders, and stores of objects."""

from __future__ import annotations

import os
from glob import has_magic
from pathlib import Path

from clinveil.core import remote
from clinveil.core.remote import RemotePath


def is_pattern(path: Path) -> bool:
    """Whether a path is a pattern (`*`, `?`, `[…]`, `**`) and not the name of something that is there."""
    if isinstance(path, RemotePath):
        return path.pattern
    return has_magic(str(path)) and not path.exists()


def root_of(pattern: Path) -> Path:
    """The folder that a pattern looks in: the parts of it before the first that is one."""
    if isinstance(pattern, RemotePath):
        return remote.root_of(pattern)
    plain = []
    for part in pattern.parts[:-1]:
        if has_magic(part):
            break
        plain.append(part)
    return Path(*plain)


def below(file: Path, root: Path) -> str:
    """The path of a file below a folder, with slashes."""
    if isinstance(file, RemotePath) and isinstance(root, RemotePath):
        return file.below(root)
    return file.relative_to(root).as_posix()


def files_of(place: Path) -> list[Path]:
    """All files of a folder, or those that fit a pattern (of a folder that fits, all of it), in order of their paths.

    Below the folder, or where the pattern looks, names that begin with `.` or `_` are passed over: they are no data.
    """
    root = root_of(place) if is_pattern(place) else place
    if isinstance(place, RemotePath):
        found: set[Path] = {file for file, *_ in remote.files_of(place)}
    else:
        matched = root.glob(str(place.relative_to(root))) if is_pattern(place) else [place]
        found = {file for one in matched for file in ([one] if one.is_file() else _in_folder(one))}
    return sorted((file for file in found if _is_data(below(file, root))), key=lambda file: below(file, root))


def _in_folder(folder: Path) -> list[Path]:
    return [Path(at, name) for at, _, names in os.walk(folder) for name in names if Path(at, name).is_file()]


def _is_data(name: str) -> bool:
    return not any(part.startswith((".", "_")) for part in name.split("/"))
