"""Whole-or-nothing outputs with private modes: write to a temporary name, rename at the end."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import permutations
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO

from clinveil.core.errors import UsageError
from clinveil.core.outputs import REMEDY, Maker
from clinveil.core.stopping import heed

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = ".part"
OLD = ".old"
PARTNER = ".partner"


def default_vault(out: Path) -> Path:
    """Where secrets go unless `--vault` names a folder: OUT.vault beside OUT. Raises UsageError for no usable name."""
    refuse_nameless(out)
    return out.with_name(out.name + ".vault")


def refuse_nameless(out: Path) -> None:
    """Raise UsageError for an OUT such as `.`, `..` or `/`, beside which nothing can be put, or of a broken name."""
    try:
        out.name.encode()
    except UnicodeEncodeError:
        raise UsageError("the name of OUT is no UTF-8", remedy="name another place") from None
    if out.name in ("", ".."):
        raise UsageError("OUT is a folder that has no name of its own here", remedy="name a new file or folder")


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter (0700), and its parents; return it.

    An existing folder must be private already or empty: others may need what lies in it, so it is not shut to them.
    Raises UsageError for any other one, for one that all may write to (such as /tmp), and for a file.
    """
    if path.exists():
        _refuse_shared(path)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stat.S_IMODE(path.stat().st_mode) != 0o700:
        path.chmod(0o700)
    return path


def _refuse_shared(path: Path) -> None:
    if not path.is_dir():
        raise UsageError("is no folder", where=path.name, remedy="name another place")
    mode = path.stat().st_mode
    if mode & stat.S_ISVTX or (mode & 0o077 and any(path.iterdir())):
        remedy = "name a new folder, or one that only you can enter (chmod 700)"
        raise UsageError("is a folder that others can enter, and is in use", where=path.name, remedy=remedy)


def private_text(path: Path, text: str) -> None:
    """Write a file that only its owner can read (0600), whole or not at all."""
    part = path.with_name(f".{token_hex(4)}{PART}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array of one or more dimensions as `.npy`, in C order. Raises OSError as `write_array` does."""
    import numpy as np

    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        write_array(file, array)


def write_array(file: BinaryIO, array: NDArray[Any]) -> None:
    """Write the bytes of an array, in C order.

    Unlike `numpy.save` and `tofile`, which hide it, a failure keeps its cause: OSError with ENOSPC on a full disk.
    """
    import numpy as np

    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def refuse_existing(out: Path, *, force: bool, maker: Maker | None = None) -> None:
    """Raise UsageError if OUT is taken and `--force` was not given, or is nothing that `--force` may replace.

    Args:
        maker: the command, where OUT may be a folder; a folder is replaced only if the same command wrote all of it.
    """
    refuse_nameless(out)
    if not out.exists():
        return
    if not force:
        raise UsageError("is there already", where=out.name, remedy="name another place, or use --force")
    if out.is_dir():
        if maker is None:
            raise UsageError("is a folder, and a file is to be written", where=out.name, remedy=REMEDY)
        maker.refuse_foreign(out)
    elif maker and not out.suffix:  # with one it may be a file that is to be written
        maker.refuse_foreign(out)


def refuse_nested(**places: Path | None) -> None:
    """Refuse places that would destroy or hold one another: each must lie outside all others, symbolic links resolved.

    Args:
        places: paths by the name that the message gives them, such as `OUT`; None for one that is not used.

    Raises:
        UsageError: two of them are the same, or one lies inside the other.
    """
    given = [(role.replace("_", " "), path.resolve()) for role, path in places.items() if path is not None]
    for (role, path), (outer_role, outer) in permutations(given, 2):
        if _same(path, outer):
            raise UsageError(f"{role} and {outer_role} are the same place", where=path.name, remedy="name another one")
        if any(_same(parent, outer) for parent in path.parents):
            remedy = "name a place outside it"
            raise UsageError(f"{role} lies inside {outer_role}", where=path.name, remedy=remedy)


def refuse_places(
    out: Path,
    maker: Maker,
    *,
    force: bool,
    vault: Path | None = None,
    vault_maker: Maker | None = None,
    read: Mapping[str, Path | None],
) -> None:
    """Refuse places where a run would destroy what it reads, or anything but what an earlier run of its kind wrote.

    Args:
        vault: the folder of secrets; `vault_maker` where it may not be there already, but for `force`.
        read: what the run reads, by the name that the message gives it.

    Raises:
        UsageError: as `refuse_nested` and `refuse_existing`.
    """
    for name, path in read.items():
        refuse_nested(OUT=out, the_vault=vault, **{name: path})
    refuse_existing(out, force=force, maker=maker)
    if vault is not None and vault_maker is not None:
        refuse_existing(vault, force=force, maker=vault_maker)


def _same(one: Path, other: Path) -> bool:
    # The second test knows hard links, and names that differ in letter case where the disk does not tell them apart.
    return one == other or (one.exists() and other.exists() and one.samefile(other))


@contextmanager
def locked(path: Path, of: Path | None = None) -> Iterator[None]:
    """Hold a lock file for as long as the block runs, against other processes; it is removed at the end.

    Raises UsageError, which names the place `of` (the lock's folder), where another run holds it, where the disk knows
    no locks, and for a lock file that is a link or holds anything: it is somebody else's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    place = (of or path.parent).absolute().name
    busy = UsageError("another run is at work here", where=place, remedy="wait for it to end")
    descriptor = _open_lock(path, place)
    try:
        _flock(descriptor, busy)
        # The run before may have removed the file between our opening it and our lock on it.
        if not path.exists() or not os.path.samestat(path.stat(), os.fstat(descriptor)):
            raise busy
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # or a forked worker would hold on to it
    finally:
        os.close(descriptor)


def _open_lock(path: Path, place: str) -> int:
    foreign = UsageError(f"holds a {path.name} that clinveil did not write", where=place, remedy="move it away")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        if path.is_symlink() or path.exists():
            raise foreign from None
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and not found.st_size:
        return descriptor
    os.close(descriptor)
    raise foreign


def _flock(descriptor: int, busy: UsageError) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy from None
    except OSError:
        raise UsageError("the disk cannot lock files", where=busy.where, remedy="name a place on another") from None


@contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """Yield a new private folder beside OUT for what is half done; it is removed at the end, come what may.

    Its name is `.OUT.<8 hex digits>.part`, and it holds a lock file that is locked while the run lives. What a killed
    run left is removed by the next run with the same OUT, and an earlier OUT that stood in there is put back. A folder
    counts as left only if it has such a name, belongs to this user, is 0700, and holds a lock file that no process
    holds; all else beside OUT is left alone.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    _clear_left(out)
    # Locked before it gets its name, so that no other run takes it for one that was left.
    fresh = Path(tempfile.mkdtemp(prefix=".clinveil-", dir=out.parent))
    try:
        with _lock_of(fresh, out).open("xb") as lock:
            with suppress(OSError):  # where the disk cannot lock, no run can take the lock of another either
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder = fresh.rename(out.with_name(f".{out.name}.{token_hex(4)}{PART}"))
            try:
                yield folder
            finally:
                _clear(folder, out)
    finally:
        remove(fresh)


def _lock_of(folder: Path, out: Path) -> Path:
    return folder / f"{out.name}.lock"


def _clear_left(out: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}{re.escape(PART)}")
    for folder in [p for p in out.parent.iterdir() if pattern.fullmatch(p.name)]:
        # One that is locked is in use; one that has just gone is another run's work, done.
        with suppress(UsageError, FileNotFoundError):
            found, lock = folder.lstat(), _lock_of(folder, out)
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
    try:
        said = json.loads(note.read_text(encoding="utf-8"))
        return str(said["run"]) in Path(said["marker"]).read_text(encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextmanager
def whole(out: Path, *, force: bool = False, maker: Maker | None = None) -> Iterator[Path]:
    """Yield a temporary path, in a `workplace` beside OUT, that becomes OUT on success and is removed on failure.

    The caller makes a file or a folder there; a folder gets the marker of `maker`. An existing OUT is refused, or with
    `force` kept aside until success. Everything made there is readable by its owner only.

    Raises:
        UsageError: as `refuse_existing`, at the start or at the end.
    """
    refuse_existing(out, force=force, maker=maker)
    with workplace(out) as folder:
        refuse_existing(out, force=force, maker=maker)  # one that a killed run had set aside may be back
        part = folder / out.name
        yield part
        _ready(part, out, force=force, maker=maker)
        if out.exists():
            out.replace(folder / (out.name + OLD))
        part.replace(out)


@contextmanager
def whole_pair(
    vault: Path, out: Path, *, force: bool = False, vault_maker: Maker, maker: Maker
) -> Iterator[tuple[Path, Path]]:
    """As `whole`, for a vault (a folder) and the OUT that was made with it: both are the old ones, or both the new.

    The vault's rename decides. Whatever stops the run before it, the old ones come back; after it, the new OUT goes
    in: at once, or after a kill with the next run at the same places.
    """
    places = ((vault, vault_maker), (out, maker))
    for place, made_by in places:
        refuse_existing(place, force=force, maker=made_by)
    with workplace(vault) as safe, workplace(out) as folder:
        for place, made_by in places:
            refuse_existing(place, force=force, maker=made_by)
        secret, part = safe / vault.name, folder / out.name
        yield secret, part
        run = token_hex(16)
        _ready(secret, vault, force=force, maker=vault_maker, run=run)
        _ready(part, out, force=force, maker=maker)
        note = {"run": run, "marker": str(vault.absolute() / vault_maker.marker)}
        private_text(folder / (out.name + PARTNER), json.dumps(note))
        for place, beside in ((out, folder), (vault, safe)):
            if place.exists():
                place.replace(beside / (place.name + OLD))
        secret.replace(vault)
        part.replace(out)


def _ready(part: Path, out: Path, *, force: bool, maker: Maker | None, run: str = "") -> None:
    """Mark and shut what was made; a last look at the place where it goes."""
    if maker and part.is_dir():
        maker.mark(part, run)
    _only_owner(part)
    heed()
    refuse_existing(out, force=force, maker=maker)
    if maker and out.exists() and part.is_dir():
        maker.refuse_foreign(out)


def _only_owner(path: Path) -> None:
    for item in [path, *(path.rglob("*") if path.is_dir() else ())]:
        item.chmod(0o700 if item.is_dir() else 0o600)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
