"""What was made here goes to a store of objects: whole, and in an order that shows what is not finished.

A store renames nothing. So a folder begins there with the marker `.clinveil.json`, which lists its files, and ends with
`_SUCCESS`: where that is missing, an upload was cut short, and the next one to the same place overwrites it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from clinveil.core.errors import DiskError, UsageError, check_interrupt
from clinveil.core.files import MARKER, REMEDY, SCHEMA, files_in, private_folder, private_text, remove
from clinveil.core.remote import RemotePath, failing
from clinveil.core.types import Say

T = TypeVar("T")
SUCCESS = "_SUCCESS"
ASKED = "asked"
_OF_OBJECTS = frozenset({"s3", "gcs", "abfs"})  # they have no folders to make


def through(
    out: Path,
    vault: Path | None,
    make: Callable[[Path], T],
    asked: Callable[[], str],
    *,
    command: str,
    force: bool,
    say: Say,
) -> T | None:
    """Make OUT: here, or where it is in a store, in a private folder beside the vault, and then send it there.

    If sending fails, what was made stays in that folder, and the same run again only sends it: then None comes back.

    Args:
        make: makes the place that it is given, whole or not at all.
        asked: gives the hash of the question, see `run_hash`.

    Raises:
        UsageError: no vault of this machine is named, or OUT is taken. DiskError: the store cannot be written to.
    """
    if not isinstance(out, RemotePath):
        return make(out)
    if vault is None or isinstance(vault, RemotePath):
        hint = "--vault FOLDER, on this machine: secrets are sent nowhere"
        raise UsageError("where OUT is in a store, the vault must be named", where=out.name, hint=hint)
    ready(out, command=command, force=force)
    question = asked()
    scratch = private_folder(vault.with_name(f"{vault.name}.upload"))
    try:
        done = _made_before(scratch, out.name, question, force=force)
        made = None if done else make(scratch / out.name)
        private_text(scratch / ASKED, question)
        say(f"sending {out.name}{', which an earlier run made' if done else ''}")
        send(scratch / out.name, out, command=command, force=force)
        remove(scratch)
    except DiskError as error:
        said = f"what was made lies whole in {scratch.name}; the same command again sends it"
        kept = (scratch / ASKED).exists()
        raise DiskError(error.what, where=error.where, hint=said if kept else error.hint) from None
    finally:
        if scratch.exists() and not any(scratch.iterdir()):
            scratch.rmdir()
    return made


def _made_before(scratch: Path, name: str, asked: str, *, force: bool) -> bool:
    if not (scratch / name).exists():
        return False
    if (scratch / ASKED).is_file() and (scratch / ASKED).read_text(encoding="utf-8") == asked:
        return True
    if not force:
        what = "holds what another run made and could not send"
        raise UsageError(what, where=scratch.name, hint="move it away, or use --force to replace it")
    remove(scratch / name)
    return False


def ready(out: RemotePath, *, command: str, force: bool) -> None:
    """Before hours of work: whether a place of a store can be written, and holds nothing of somebody else.

    Raises UsageError for one that is taken (`force` replaces what the same command wrote), DiskError for a store that
    cannot be written to, InputError for one that cannot be read.
    """
    system, path = out.system()
    if out.pattern:
        raise UsageError("OUT is a pattern", where=out.name, hint="name one place")
    taken = out.exists()
    if out.is_file() and not force:
        raise UsageError("is there already", where=out.name, hint="name another place, or use --force")
    if taken and not out.is_file():
        _refuse_foreign(system, path, out.name, command, force=force)
    elif not taken and not out.suffix:
        with failing(out.name, writing=True):
            _folder(system, path)
            _write(system, f"{path}/{MARKER}", _mark(command, []))


def send(local: Path, out: RemotePath, *, command: str, force: bool) -> None:
    """Copy a file or a folder to a store; of a folder `_SUCCESS` goes last. Raises as `ready`."""
    system, path = out.system()
    with failing(out.name, writing=True):
        if local.is_file():
            if not force and system.get_file_info(path).type.name != "NotFound":
                raise UsageError("is there already", where=out.name, hint="name another place, or use --force")
            _put(system, local, path)
            return
        _refuse_foreign(system, path, out.name, command, force=force)
        files = sorted(name for name in files_in(local) if name != MARKER and not name.endswith("/"))
        for name in [SUCCESS, *sorted(_below(system, path) - {*files, MARKER, SUCCESS})]:
            if system.get_file_info(f"{path}/{name}").type.name == "File":
                system.delete_file(f"{path}/{name}")
        _folder(system, path)
        _write(system, f"{path}/{MARKER}", _mark(command, files))
        for name in files:
            check_interrupt()
            _put(system, local / name, f"{path}/{name}")
        _write(system, f"{path}/{SUCCESS}", b"")


def _refuse_foreign(system: Any, path: str, where: str, command: str, *, force: bool) -> None:
    """Raise UsageError for a folder of a store that somebody else wrote, or, without `force`, a finished one."""
    with failing(where):
        found = _below(system, path)
        said = _read(system, f"{path}/{MARKER}") if MARKER in found else {}
    if not found:
        return
    if said.get("schema") != SCHEMA or said.get("command") != command:
        raise UsageError(f"is no folder of clinveil {command}", where=where, hint=REMEDY)
    if more := len(found - {MARKER, SUCCESS, *said.get("files", [])}):
        what = f"holds {more} files that clinveil did not write"
        raise UsageError(what, where=where, hint="move them away, or name another place")
    if SUCCESS in found and not force:
        raise UsageError("is there already", where=where, hint="name another place, or use --force")


def _below(system: Any, path: str) -> set[str]:
    from pyarrow.fs import FileSelector, FileType

    infos = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return {one.path[len(path) :].lstrip("/") for one in infos if one.type == FileType.File}


def _mark(command: str, files: list[str]) -> bytes:
    return json.dumps({"schema": SCHEMA, "command": command, "files": files}).encode()


def _read(system: Any, path: str) -> dict[str, Any]:
    with system.open_input_stream(path, compression=None) as file:
        try:
            said = json.loads(file.read(16 << 20))
        except ValueError:
            return {}
    return said if isinstance(said, dict) else {}


def _write(system: Any, path: str, data: bytes) -> None:
    with system.open_output_stream(path, compression=None) as file:
        file.write(data)


def _put(system: Any, local: Path, path: str) -> None:
    """Copy one file, and look whether all of it came."""
    from pyarrow.fs import LocalFileSystem, copy_files

    _folder(system, path.rpartition("/")[0])
    copy_files(str(local.absolute()), path, LocalFileSystem(), system)
    if system.get_file_info(path).size != local.stat().st_size:
        raise OSError("not all of it came")


def _folder(system: Any, path: str) -> None:
    if system.type_name not in _OF_OBJECTS:
        system.create_dir(path, recursive=True)
