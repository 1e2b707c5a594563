"""Whole-or-nothing outputs with private modes: write to a temporary name, rename at the end."""

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
    """Yield a new private folder beside OUT for what is half done; it is removed at the end, come what may.

    It is named `.OUT.<8 hex digits>.part` and holds a locked file while the run lives. The next run with the same OUT
    removes what a killed one left, and puts back an earlier OUT that stood in there. Left is only what has such a name,
    belongs to this user, is 0700, and holds a lock file that no process holds; all else is left alone.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    _clear_left(out)
    # Locked before it gets its name, so that no other run takes it for one that was left.
    fresh = Path(tempfile.mkdtemp(prefix=".clinveil-", dir=out.parent))
    try:
        with (fresh / f"{out.name}.lock").open("xb") as lock:
            with suppress(OSError):  # where the disk cannot lock, no run can take the lock of another either
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = fresh.rename(out.with_name(f".{out.name}.{token_hex(4)}{PART}"))
            try:
                yield folder
            finally:
                _clear(folder, out)
    finally:
        remove(fresh)


def _clear_left(out: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}{re.escape(PART)}")
    for folder in [p for p in out.parent.iterdir() if pattern.fullmatch(p.name)]:
        # One that is locked is in use; one that has just gone is another run's work, done.
        with suppress(UsageError, FileNotFoundError):
            found, lock = folder.lstat(), folder / f"{out.name}.lock"
            private = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700
            if private and found.st_uid == os.geteuid() and lock.is_file():
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
    """Whether the vault that a new OUT belongs to has taken its own place; see `whole_pair`."""
    said = read_json(note)
    try:
        return str(said["run"]) in Path(said["marker"]).read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextmanager
def atomic(out: Path, *, force: bool = False, maker: Maker | None = None) -> Iterator[Path]:
    """Yield a temporary path, in a `workplace` beside OUT, that becomes OUT on success and is removed on failure.

    The caller makes a file or a folder there; a folder gets the marker of `maker`. An existing OUT is refused, or with
    `force` kept aside until success. Everything made there is readable by its owner only. Raises UsageError as
    `refuse_existing` does, at the start or at the end.
    """
    with _parts([(out, maker)], force=force) as (part,):
        yield part
        _ready(part, out, force=force, maker=maker)
        _move_in((part, out))


@contextmanager
def atomic_pair(
    vault: Path, out: Path, *, force: bool = False, vault_maker: Maker, maker: Maker
) -> Iterator[tuple[Path, Path]]:
    """As `whole`, for a vault (a folder) and the OUT that was made with it: both are the old ones, or both the new.

    The vault's rename decides. Whatever stops the run before it, the old ones come back; after it, the new OUT goes
    in: at once, or after a kill with the next run at the same places.
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
    """A temporary path for each place, in a `workplace` beside it; refused as `refuse_existing` does."""
    for place, maker in places:
        refuse_existing(place, force=force, maker=maker)
    with ExitStack() as stack:
        parts = [stack.enter_context(workplace(place)) / place.name for place, _ in places]
        for place, maker in places:  # one that a killed run had set aside may be back
            refuse_existing(place, force=force, maker=maker)
        yield parts


def _ready(part: Path, out: Path, *, force: bool, maker: Maker | None, run: str = "") -> None:
    """Mark and shut what was made; a last look at the place where it goes."""
    if maker and part.is_dir():
        maker.mark(part, run)
    for item in [part, *(part.rglob("*") if part.is_dir() else ())]:
        item.chmod(0o700 if item.is_dir() else 0o600)
    check_interrupt()
    refuse_existing(out, force=force, maker=maker)
    if maker and out.exists() and part.is_dir():
        maker.refuse_foreign(out)


def _move_in(*moves: tuple[Path, Path]) -> None:
    """Put what stands in the places aside, the last first; then the new parts in."""
    for part, place in reversed(moves):
        if place.exists():
            place.replace(part.with_name(place.name + OLD))
    for part, place in moves:
        part.replace(place)
