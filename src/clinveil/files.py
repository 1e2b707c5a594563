"""Whole-or-nothing outputs with private modes: write to a temporary name, rename at the end."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clinveil.errors import UsageError

PART = ".part"
OLD = ".old"


def default_vault(out: Path) -> Path:
    """Where secrets go unless `--vault` names a folder: OUT.vault beside OUT."""
    return out.with_name(out.name + ".vault")


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter (0700), parents included; return it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    return path


def private_text(path: Path, text: str) -> None:
    """Write a file that only its owner can read (0600), whole or not at all."""
    part = path.with_name(path.name + PART)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def refuse_existing(out: Path, *, force: bool) -> None:
    """Raise UsageError if OUT is taken and `--force` was not given."""
    if out.exists() and not force:
        raise UsageError("is there already", where=out.name, remedy="name another place, or use --force")


@contextmanager
def whole(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside OUT that becomes OUT on success and is removed on failure.

    The caller makes a file or a folder there. An existing OUT is refused, or with `force` kept aside until success.
    Everything made there is readable by its owner only. Raises UsageError if OUT is taken.
    """
    refuse_existing(out, force=force)
    out.parent.mkdir(parents=True, exist_ok=True)
    part, old = out.with_name(out.name + PART), out.with_name(out.name + OLD)
    remove(part)
    try:
        yield part
        _only_owner(part)
        if out.exists():
            remove(old)
            out.replace(old)
        part.replace(out)
        remove(old)
    except BaseException:
        remove(part)
        if old.exists() and not out.exists():
            old.replace(out)
        raise


def _only_owner(path: Path) -> None:
    for item in [path, *(path.rglob("*") if path.is_dir() else ())]:
        item.chmod(0o700 if item.is_dir() else 0o600)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
