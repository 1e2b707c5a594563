"""Places that are more than one file: patterns such as `notes/*.parquet`."""

from __future__ import annotations

import os
from glob import has_magic
from pathlib import Path


def is_pattern(path: Path) -> bool:
    """Whether a path is a pattern (`*`, `?`, `[…]`, `**`) and not the name of something that is there."""
    return has_magic(str(path)) and not path.exists()


def root_of(pattern: Path) -> Path:
    """The folder that a pattern looks in: the parts of it before the first that is one."""
    plain = []
    for part in pattern.parts[:-1]:
        if has_magic(part):
            break
        plain.append(part)
    return Path(*plain)


def files_of(place: Path) -> list[Path]:
    """All files of a folder, or those that fit a pattern (of a folder that fits, all of it), in order of their paths.

    Below the folder, or where the pattern looks, names that begin with `.` or `_` are passed over: they are no data.
    """
    root = root_of(place) if is_pattern(place) else place
    found = root.glob(str(place.relative_to(root))) if is_pattern(place) else [place]
    files = {file for one in found for file in ([one] if one.is_file() else _below(one))}
    return sorted((file for file in files if _is_data(file.relative_to(root))), key=lambda file: file.as_posix())


def _below(folder: Path) -> list[Path]:
    return [Path(at, name) for at, _, names in os.walk(folder) for name in names if Path(at, name).is_file()]


def _is_data(below: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in below.parts)
