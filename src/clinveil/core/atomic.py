"""Atomic outputs with private modes: write to a temporary name, rename at the end."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from clinveil.core.errors import UsageError, check_interrupt
from clinveil.core.files import PART, Maker, locked, private_text, read_json, refuse_existing, remove

OLD, PARTNER = ".old", ".partner"


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
    old, new = folder / (out.name + OLD), folder / out.name
    if not out.exists():
        if new.exists() and _partner_is_in(folder / (out.name + PARTNER)):
            new.replace(out)
        elif old.exists():
            old.replace(out)
    remove(folder)


def _partner_is_in(note: Path) -> bool:
    """Return whether the vault that belongs to a new OUT is already in place; see `atomic_pair`."""
    pair = read_json(note)
    try:
        return str(pair["run"]) in Path(pair["marker"]).read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextmanager
def atomic(out: Path, *, force: bool = False, maker: Maker | None = None) -> Iterator[Path]:
    """Yield a temporary path next to OUT that becomes OUT on success and is removed on failure.

    The caller creates a file or a folder there; a folder gets the marker of `maker`. An existing OUT is refused, or
    with `force` kept until success. The output is readable by its owner only. Raises UsageError like `refuse_existing`,
    at the start or at the end.
    """
    with _parts([(out, maker)], force=force) as (part,):
        yield part
        _ready(part, out, force=force, maker=maker)
        _move_in((part, out))


@contextmanager
def atomic_pair(
    vault: Path, out: Path, *, force: bool = False, vault_maker: Maker, maker: Maker
) -> Iterator[tuple[Path, Path]]:
    """Replace a vault (a folder) and its OUT together, like `atomic`: both are old, or both are new.

    The vault's rename decides. If the run stops earlier, the old pair is restored. If it stops later, the new OUT is
    moved into place: at once, or after a kill by the next run with the same paths.
    """
    with _parts([(vault, vault_maker), (out, maker)], force=force) as (secret, part):
        yield secret, part
        run = token_hex(16)
        _ready(secret, vault, force=force, maker=vault_maker, run=run)
        _ready(part, out, force=force, maker=maker)
        note = {"run": run, "marker": str(vault.absolute() / vault_maker.marker)}
        private_text(part.with_name(out.name + PARTNER), json.dumps(note))
        _move_in((secret, vault), (part, out))


@contextmanager
def _parts(places: Sequence[tuple[Path, Maker | None]], *, force: bool) -> Iterator[list[Path]]:
    """Yield a temporary path for each output, in a `workplace` next to it. Raises UsageError like `refuse_existing`."""
    for place, maker in places:
        refuse_existing(place, force=force, maker=maker)
    with ExitStack() as stack:
        parts = [stack.enter_context(workplace(place)) / place.name for place, _ in places]
        for place, maker in places:  # an output that a killed run had moved may be restored
            refuse_existing(place, force=force, maker=maker)
        yield parts


def _ready(part: Path, out: Path, *, force: bool, maker: Maker | None, run: str = "") -> None:
    """Write the marker, set private modes, and check the destination once more."""
    if maker and part.is_dir():
        maker.mark(part, run)
    for item in [part, *(part.rglob("*") if part.is_dir() else ())]:
        item.chmod(0o700 if item.is_dir() else 0o600)
    check_interrupt()
    refuse_existing(out, force=force, maker=maker)
    if maker and out.exists() and part.is_dir():
        maker.refuse_foreign(out)


def _move_in(*moves: tuple[Path, Path]) -> None:
    """Move existing outputs out of the way, the last first; then move the new ones in."""
    for part, place in reversed(moves):
        if place.exists():
            place.replace(part.with_name(place.name + OLD))
    for part, place in moves:
        part.replace(place)
