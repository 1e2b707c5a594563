"""Files and folders of a run: private modes, locks, and safe replacement.

`--force` replaces only the output of the same command, and never a folder that contains foreign
files. Each output folder contains a marker, a small JSON file with its command and files. A single
file has no marker and is replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO

from clinveil.core.errors import UsageError
from clinveil.core.locations import Location, RemotePath, is_pattern, local_files, refuse_remote

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART = ".part"
OLD = ".old"
MARKER = ".clinveil.json"
SCHEMA = "clinveil.output/1"
HINT = "use another path or move it; --force replaces only output of the same command"


@dataclass(frozen=True)
class Maker:
    """A command that writes folders, each with a marker that names the command and lists all other
    files.
    """

    command: str

    def mark(self, folder: Path) -> None:
        """Write the marker."""
        (folder / MARKER).write_bytes(mark(self.command, sorted(files_in(folder))))

    def refuse_foreign(self, folder: Path) -> None:
        """Raise UsageError unless the folder is empty or contains only files that this command
        wrote.
        """
        if not folder.is_dir():
            raise UsageError("the output folder exists as a file", where=folder.name, hint=HINT)
        if not any(folder.iterdir()):
            return
        marker = read_json(folder / MARKER)
        marker = marker if isinstance(marker, dict) else {}
        listed: Any = marker.get("files")
        fits = isinstance(listed, list) and all(isinstance(name, str) for name in listed)
        if not fits or (marker.get("schema"), marker.get("command")) != (SCHEMA, self.command):
            raise UsageError(
                f"not an output folder of clinveil {self.command}", where=folder.name, hint=HINT
            )
        refuse_more(folder, files_in(folder), {MARKER, *listed})


def mark(command: str, files: list[str]) -> bytes:
    """Return the marker of a folder: the command that wrote it, and the names of its files."""
    return json.dumps({"schema": SCHEMA, "command": command, "files": files}).encode()


def files_in(folder: Path) -> set[str]:
    """Return the relative names of all files below a folder; an empty folder is listed by its own
    name and a slash.
    """
    names = set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_dir():
            names.add(name)
        elif not any(path.iterdir()):
            names.add(f"{name}/")
    return names


def refuse_more(folder: Path, files: Iterable[str], expected: Iterable[str]) -> None:
    """Raise UsageError, with the number of files, if a folder contains files that are not in
    `expected`.
    """
    if extra := len(set(files) - set(expected)):
        problem = f"{extra} files" if extra > 1 else "a file"
        hint = "move them elsewhere or use another path"
        raise UsageError(
            f"contains {problem} that clinveil did not write", where=folder.name, hint=hint
        )


@contextmanager
def owner_only() -> Iterator[None]:
    """Create files for their owner only in this block, as the command line does.

    The file mode mask belongs to the process: with runs in several threads, the last to end
    restores it.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def default_vault(out: Path) -> Path:
    """Return the default folder of secrets: OUT.vault next to OUT. Raises UsageError for an
    unusable name.
    """
    refuse_nameless(out)
    return out.with_name(out.name + ".vault")


def refuse_nameless(out: Path) -> None:
    """Raise UsageError for an OUT such as `.`, `..` or `/`, which has no siblings, for a URL, and
    for a name that is not UTF-8.
    """
    refuse_remote(out)
    try:
        out.name.encode()
    except UnicodeEncodeError:
        raise UsageError("the name of OUT is not valid UTF-8", hint="use another path") from None
    if out.name in ("", ".."):
        raise UsageError(
            "OUT has no name of its own (., .. or /)", hint="use the path of a new file or folder"
        )


def private_folder(path: Path) -> Path:
    """Create a folder with mode 0700, and its parents; return it.

    An existing folder must be empty or already private, because other users may need its contents.
    Raises UsageError for any other folder, for one that everyone may write to (such as /tmp), for a
    file, and inside a release.
    """
    if any((above / "manifest.sig").exists() for above in path.absolute().parents):
        raise UsageError(
            "is inside a release, which is handed over", where=path.name, hint="use another path"
        )
    if path.exists():
        if not path.is_dir():
            raise UsageError("not a folder", where=path.name, hint="use another path")
        mode = path.stat().st_mode
        if mode & stat.S_ISVTX or (mode & 0o077 and any(path.iterdir())):
            hint = "use a new folder, or one that only you can open (chmod 700)"
            raise UsageError(
                "other users can open this folder, and it is in use", where=path.name, hint=hint
            )
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stat.S_IMODE(path.stat().st_mode) != 0o700:
        path.chmod(0o700)
    return path


def private_text(path: Path, text: str) -> None:
    """Write a file with mode 0600 atomically."""
    private_bytes(path, text.encode("utf-8"))


def private_bytes(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 atomically."""
    part = path.with_name(f".{token_hex(4)}{PART}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array of one or more dimensions as `.npy`, in C order. Raises OSError like
    `write_array`.
    """
    import numpy as np

    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        write_array(file, array)


def write_array(file: BinaryIO, array: NDArray[Any]) -> None:
    """Write the bytes of an array, in C order.

    Unlike with `numpy.save` and `tofile`, an error keeps its cause: OSError with ENOSPC on a full
    disk.
    """
    import numpy as np

    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; None if it cannot be read or is not valid JSON, and for a
    pipe or device.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def refuse_existing(out: Path, *, force: bool, maker: Maker | None = None) -> None:
    """Raise UsageError if OUT exists and `--force` is missing or may not replace it.

    `maker`: the command, if OUT may be a folder; a folder is replaced only if the same command
    wrote all of it. What a killed run left next to OUT is removed first.
    """
    refuse_nameless(out)
    clear_leftovers(out)
    if not out.exists():
        return
    if not force:
        raise UsageError("already exists", where=out.name, hint="use another path or --force")
    if out.is_dir() and maker is None:
        raise UsageError("the output file exists as a folder", where=out.name, hint=HINT)
    if maker and (out.is_dir() or not out.suffix):  # a path with a suffix may be a file
        maker.refuse_foreign(out)


def clear_leftovers(out: Path) -> None:
    """Remove what killed runs left next to OUT (see `atomic.workplace`), and restore an earlier OUT
    from it.

    Only a folder with such a name that belongs to this user, has mode 0700 and is empty or contains
    an unlocked lock file is treated this way.
    """
    pattern = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{8}}{re.escape(PART)}")
    for folder in [path for path in out.parent.glob(f".*{PART}") if pattern.fullmatch(path.name)]:
        # A locked folder is in use; one that has disappeared belonged to another run, which has
        # ended.
        with suppress(UsageError, OSError):
            status = folder.lstat()
            lock = folder / f"{out.name}.lock"
            private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
            if private and status.st_uid == os.geteuid() and lock.is_file():
                with locked(lock):
                    clear(folder, out)
            elif private and status.st_uid == os.geteuid():
                folder.rmdir()


def clear(folder: Path, out: Path) -> None:
    """Remove a folder of unfinished output; restore an earlier OUT from it if there is none."""
    old = folder / (out.name + OLD)
    if old.exists() and not out.exists():
        old.replace(out)
    remove(folder)


def refuse_nested(**paths: Location | None) -> None:
    """Raise UsageError for paths that are the same or nested, with symbolic links resolved.

    Each keyword is the path's name in the message, such as `OUT`; None for an unused path.
    """
    _refuse_nested({role.replace("_", " "): path for role, path in paths.items()})


def _refuse_nested(paths: Mapping[str, Location | None]) -> None:
    """Do as `refuse_nested`, with the names of the paths as keys."""
    here = {
        role: path
        for role, path in paths.items()
        if path is not None and not isinstance(path, RemotePath)
    }
    plain = {role: path for role, path in here.items() if not is_pattern(path)}
    for role, path in here.items():
        for file in sorted(local_files(path)) if is_pattern(path) else ():
            _refuse_nested({**plain, role: file})
    resolved = [(role, path.resolve()) for role, path in plain.items()]
    for (role, path), (outer_role, outer) in permutations(resolved, 2):
        if _same(path, outer):
            raise UsageError(
                f"{role} and {outer_role} are the same path",
                where=path.name,
                hint="use different paths",
            )
        if any(_same(parent, outer) for parent in path.parents):
            problem = f"{role} is inside {outer_role}"
            raise UsageError(problem, where=path.name, hint="use a path outside it")


def _same(left: Path, right: Path) -> bool:
    # The second test detects hard links, and names that differ only in case on a case-insensitive
    # disk.
    return left == right or (left.exists() and right.exists() and left.samefile(right))


def refuse_places(
    out: Path,
    maker: Maker,
    *,
    force: bool,
    vault: Path | None = None,
    read: Mapping[str, Location | None],
) -> None:
    """Check all paths of a run with `refuse_nested` and `refuse_existing`, before it overwrites
    anything.

    `read`: the paths that the run reads, by their names in messages. `vault`: the folder of
    secrets.
    """
    for name, path in read.items():
        _refuse_nested({"OUT": out, "the vault": vault, name: path})
    refuse_existing(out, force=force, maker=maker)


@contextmanager
def locked(path: Path, of: Path | None = None, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock file against other processes while the block runs; the file is removed at the
    end.

    wait: seconds to wait for another run.

    Raises UsageError, with the name of `of` (default: the lock's folder), if another run holds the
    lock, if the file system does not support locks, or if the lock file is a link or not empty,
    hence foreign.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder_name = (of or path.parent).absolute().name
    until = time.monotonic() + wait
    while (descriptor := _lock(path, folder_name)) is None:
        if time.monotonic() >= until:
            raise UsageError(
                "another run is using this folder", where=folder_name, hint="wait until it ends"
            )
        time.sleep(0.05)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked worker would keep the lock otherwise
        os.close(descriptor)


def _lock(path: Path, folder_name: str) -> int | None:
    """Return the descriptor of a locked file, or None if another run holds it."""
    descriptor = _open_lock(path, folder_name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        hint = "use a path on another file system"
        raise UsageError(
            "this file system does not support file locks", where=folder_name, hint=hint
        ) from None
    # The previous run may have removed the file between our open and our lock.
    with suppress(FileNotFoundError):
        if os.path.samestat(path.stat(), os.fstat(descriptor)):
            return descriptor
    os.close(descriptor)
    return None


def _open_lock(path: Path, folder_name: str) -> int:
    foreign = UsageError(
        f"contains a {path.name} that clinveil did not write",
        where=folder_name,
        hint="move it elsewhere",
    )
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        if path.is_symlink() or path.exists():
            raise foreign from None
        raise
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        return descriptor
    os.close(descriptor)
    raise foreign
