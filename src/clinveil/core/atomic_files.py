"""Atomic outputs with private modes: write to a temporary name, rename at the end."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from clinveil.core.errors import check_interrupt
from clinveil.core.files import OLD, PART, Maker, clear, clear_leftovers, refuse_existing


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """Yield a new private folder next to OUT for unfinished output; it is always removed at the
    end.

    It is named `.OUT.<8 hex digits>.part` and contains a locked file while the run is alive, so
    that `clear_leftovers` recognizes the folder of a killed run.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(out)
    while True:
        folder = out.with_name(f".{out.name}.{token_hex(4)}{PART}")
        if lock := _begun(folder, out):
            with lock:
                try:
                    yield folder
                finally:
                    clear(folder, out)
            return


def _begun(folder: Path, out: Path) -> BinaryIO | None:
    """Create and lock the folder; return None if another run took it for the folder of a killed run
    before that.
    """
    folder.mkdir(mode=0o700)
    path = folder / f"{out.name}.lock"
    try:
        lock = path.open("xb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        except OSError:
            """Without support for locks, no run can take another's lock either."""
        return lock if os.path.samestat(os.fstat(lock.fileno()), path.stat()) else None
    except FileNotFoundError:
        return None
    except OSError:
        folder.rmdir()
        raise


@contextmanager
def atomic(out: Path, *, force: bool = False, maker: Maker | None = None) -> Iterator[Path]:
    """Yield a temporary path next to OUT that becomes OUT on success and is removed on failure.

    The caller creates a file or a folder there; a folder gets the marker of `maker`. An existing
    OUT is refused, or with `force` kept until success. The output is readable by its owner only.
    Raises UsageError like `refuse_existing`, at the start or at the end.
    """
    refuse_existing(out, force=force, maker=maker)
    with workplace(out) as folder:
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
