"""Files and folders of a run: private modes, locks, and what may be replaced.

`--force` replaces only what the same command wrote, and nothing with files of somebody else in it: a folder has a
marker, a small JSON file that names command and files. A single file has no room for one, and is replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO

from clinveil.core.errors import UsageError
from clinveil.core.locations import files_of, is_pattern
from clinveil.core.remote import RemotePath

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = ".part"
MARKER, SCHEMA = ".clinveil.json", "clinveil.output/1"
REMEDY = "name another place, or move it away; --force replaces only what the same command wrote"


@dataclass(frozen=True)
class Maker:
    """A command that writes folders, each known by the JSON file `marker` in it.

    That file says what stands in `says` (else our schema and the command) and lists all `files` but those `beside`.
    """

    command: str
    marker: str = MARKER
    says: Mapping[str, str] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    def mark(self, folder: Path, run: str = "") -> None:
        """Write the marker, with a name for this run if there is one, unless the command wrote its own."""
        if not (folder / self.marker).exists():
            said = {**self._known_by(), **({"run": run} if run else {}), "files": sorted(files_in(folder))}
            (folder / self.marker).write_text(json.dumps(said, indent=1) + "\n", encoding="ascii")

    def refuse_foreign(self, place: Path) -> None:
        """Raise UsageError for all but a folder of this command with its own files only."""
        if not place.is_dir():
            raise UsageError("is a file, and a folder is to be written", where=place.name, hint=REMEDY)
        if not any(place.iterdir()):
            return
        said = read_json(place / self.marker)
        listed: Any = said.get("files") if isinstance(said, dict) else None
        fits = isinstance(listed, list | dict) and all(isinstance(name, str) for name in listed)
        if not fits or any(said.get(key) != value for key, value in self._known_by().items()):
            raise UsageError(f"is no folder of clinveil {self.command}", where=place.name, hint=REMEDY)
        refuse_more(place, files_in(place), {self.marker, *self.beside, *listed})

    def _known_by(self) -> Mapping[str, str]:
        return self.says or {"schema": SCHEMA, "command": self.command}


def files_in(folder: Path) -> set[str]:
    """The relative names of all that is in a folder but folders; of an empty folder its own name, with a slash."""
    found = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_dir():
            found.add(name)
        elif not any(path.iterdir()):
            found.add(f"{name}/")
    return found


def refuse_more(place: Path, files: Iterable[str], own: Iterable[str]) -> None:
    """Raise UsageError, with their number, if some files of a folder are none of its own."""
    if more := len(set(files) - set(own)):
        what = f"{more} files" if more > 1 else "a file"
        hint = "move them away, or name another place"
        raise UsageError(f"holds {what} that clinveil did not write", where=place.name, hint=hint)


@contextmanager
def owner_only() -> Iterator[None]:
    """Files that are made in the block are for their owner only, as the command line has it; then as it was before.

    The mask is the process's: of runs in several threads the last to end sets it back.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def default_vault(out: Path) -> Path:
    """Where secrets go unless `--vault` names a folder: OUT.vault beside OUT. Raises UsageError for no usable name."""
    refuse_nameless(out)
    return out.with_name(out.name + ".vault")


def refuse_nameless(out: Path) -> None:
    """Raise UsageError for an OUT such as `.`, `..` or `/`, beside which nothing can be put, or of a broken name."""
    try:
        out.name.encode()
    except UnicodeEncodeError:
        raise UsageError("the name of OUT is no UTF-8", hint="name another place") from None
    if out.name in ("", ".."):
        raise UsageError("OUT is a folder that has no name of its own here", hint="name a new file or folder")


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter (0700), and its parents; return it.

    An existing folder must be private already or empty: others may need what lies in it, so it is not shut to them.
    Raises UsageError for any other one, for one that all may write to (such as /tmp), and for a file.
    """
    if path.exists():
        if not path.is_dir():
            raise UsageError("is no folder", where=path.name, hint="name another place")
        mode = path.stat().st_mode
        if mode & stat.S_ISVTX or (mode & 0o077 and any(path.iterdir())):
            hint = "name a new folder, or one that only you can enter (chmod 700)"
            raise UsageError("is a folder that others can enter, and is in use", where=path.name, hint=hint)
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stat.S_IMODE(path.stat().st_mode) != 0o700:
        path.chmod(0o700)
    return path


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


def read_json(path: Path) -> Any:
    """What a JSON file says; None where it cannot be read or is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def refuse_existing(out: Path, *, force: bool, maker: Maker | None = None) -> None:
    """Raise UsageError if OUT is taken and `--force` was not given, or is nothing that `--force` may replace.

    `maker`: the command, where OUT may be a folder; a folder is replaced only if the same command wrote all of it.
    """
    refuse_nameless(out)
    if not out.exists():
        return
    if not force:
        raise UsageError("is there already", where=out.name, hint="name another place, or use --force")
    if out.is_dir() and maker is None:
        raise UsageError("is a folder, and a file is to be written", where=out.name, hint=REMEDY)
    if maker and (out.is_dir() or not out.suffix):  # with a suffix it may be a file that is to be written
        maker.refuse_foreign(out)


def refuse_nested(**places: Path | None) -> None:
    """Raise UsageError for places that are the same or lie inside one another, symbolic links resolved.

    They come by the name that the message gives them, such as `OUT`; None for one that is not used.
    """
    here = {role: path for role, path in places.items() if path is not None and not isinstance(path, RemotePath)}
    plain = {role: path for role, path in here.items() if not is_pattern(path)}
    for role, path in here.items():
        for file in files_of(path) if is_pattern(path) else ():
            refuse_nested(**plain, **{role: file})
    given = [(role.replace("_", " "), path.resolve()) for role, path in plain.items()]
    for (role, path), (outer_role, outer) in permutations(given, 2):
        if _same(path, outer):
            raise UsageError(f"{role} and {outer_role} are the same place", where=path.name, hint="name another one")
        if any(_same(parent, outer) for parent in path.parents):
            what = f"{role} lies inside {outer_role}"
            raise UsageError(what, where=path.name, hint="name a place outside it")


def _same(one: Path, other: Path) -> bool:
    # The second test knows hard links, and names that differ only in case on a disk that does not tell them apart.
    return one == other or (one.exists() and other.exists() and one.samefile(other))


def refuse_places(
    out: Path,
    maker: Maker,
    *,
    force: bool,
    vault: Path | None = None,
    vault_maker: Maker | None = None,
    read: Mapping[str, Path | None],
    apart: bool = False,
) -> None:
    """`refuse_nested` and `refuse_existing` for a run: it destroys nothing that it reads, or that others wrote.

    `read` is what it reads, by the name that the message gives it (`apart`: apart from one another too); `vault` the
    folder of secrets, with a `vault_maker` where it may not be there already, but for `force`.
    """
    for places in [read] if apart else [{name: path} for name, path in read.items()]:
        refuse_nested(OUT=out, the_vault=vault, **places)
    refuse_existing(out, force=force, maker=maker)
    if vault and vault_maker:
        refuse_existing(vault, force=force, maker=vault_maker)


@contextmanager
def locked(path: Path, of: Path | None = None) -> Iterator[None]:
    """Hold a lock file for as long as the block runs, against other processes; it is removed at the end.

    Raises UsageError, with the name of the place `of` (the lock's folder), where another run holds it, where the disk
    knows no locks, and for a lock file that is a link or holds anything: it is somebody else's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    place = (of or path.parent).absolute().name
    busy = UsageError("another run is at work here", where=place, hint="wait for it to end")
    descriptor = _open_lock(path, place)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        except OSError:
            raise UsageError("the disk cannot lock files", where=place, hint="name a place on another") from None
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
    foreign = UsageError(f"holds a {path.name} that clinveil did not write", where=place, hint="move it away")
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
