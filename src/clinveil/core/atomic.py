"""Atomic outputs with private modes: write to a temporary name, rename at the end."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from clinveil.core.errors import UsageError, check_interrupt
from clinveil.core.files import PART, Maker, locked, refuse_existing, remove

OLD = ".old"


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """Yield a new private folder next to OUT for unfinished output; it is always removed at the end.

    It is named `.OUT.<8 hex digits>.part` and contains a locked file while the run is alive. The next run with the same
    OUT removes the folder of a killed run, and restores an earlier OUT from it. Only a folder with such a name that
    belongs to this user, has mode 0700 and contains an unlocked lock file is treated this way.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(out)
    # Lock it before renaming it, so that no other run mistakes it for the folder of a killed run.
    fresh = Path(tempfile.mkdtemp(prefix=".clinveil-", dir=out.parent))
    try:
        with (fresh / f"{out.name}.lock").open("xb") as lock:
            with suppress(OSError):  # without support for locks, no run can take another's lock either
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = fresh.rename(out.with_name(f".{out.name}.{token_hex(4)}{PART}"))
            try:
                yield folder
            finally:
                _clear(folder, out)
    finally:
        remove(fresh)


def _clear_leftovers(out: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}{re.escape(PART)}")
    for folder in [p for p in out.parent.iterdir() if pattern.fullmatch(p.name)]:
        # A locked folder is in use; one that has disappeared belonged to another run, which has ended.
        with suppress(UsageError, FileNotFoundError):
            status, lock = folder.lstat(), folder / f"{out.name}.lock"
            private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
            if private and status.st_uid == os.geteuid() and lock.is_file():
                with locked(lock):
                    _clear(folder, out)


def _clear(folder: Path, out: Path) -> None:
    old = folder / (out.name + OLD)
    if old.exists() and not out.exists():
        old.replace(out)
    remove(folder)


@contextmanager
def atomic(out: Path, *, force: bool = False, maker: Maker | None = None) -> Iterator[Path]:
    """Yield a temporary path next to OUT that becomes OUT on success and is removed on failure.

    The caller creates a file or a folder there; a folder gets the marker of `maker`. An existing OUT is refused, or
    with `force` kept until success. The output is readable by its owner only. Raises UsageError like `refuse_existing`,
    at the start or at the end.
    """
    refuse_existing(out, force=force, maker=maker)
    with workplace(out) as folder:
        refuse_existing(out, force=force, maker=maker)  # `workplace` may have restored what a killed run had moved
        part = folder / out.name
        yield part
        if maker and part.is_dir():
            maker.mark(part)
        for item in [part, *(part.rglob("*") if part.is_dir() else ())]:
            item.chmod(0o700 if item.is_dir() else 0o600)
        check_interrupt()
        refuse_existing(out, force=force, maker=maker)
        if maker and out.exists() and part.is_dir():
            maker.refuse_foreign(out)
        if out.exists():
            out.replace(part.with_name(out.name + OLD))
        part.replace(out)
