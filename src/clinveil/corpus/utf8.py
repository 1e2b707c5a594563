"""The encoding of lists: UTF-8 only."""

from __future__ import annotations

from pathlib import Path

from clinveil.core import InputError


def refuse_other_encoding(path: Path) -> None:
    """Raise InputError for a text file that exists and is not UTF-8."""
    if path.suffix.lower() == ".parquet" or not path.is_file():
        return
    try:
        with path.open(encoding="utf-8") as file:
            while file.read(1 << 20):
                """Only decoded."""
    except UnicodeDecodeError:
        raise InputError(
            "is not UTF-8 text", where=path.name, hint="save the list as UTF-8"
        ) from None
