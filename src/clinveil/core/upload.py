"""Upload local output to an object store, in an order that marks an unfinished upload.

Object stores cannot rename. Therefore the marker `.clinveil.json`, which lists the files, is
written first and `_SUCCESS` last. If `_SUCCESS` is missing, the upload was interrupted and the next
one to the same place overwrites it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from clinveil.core.errors import DiskError, UsageError, check_interrupt
from clinveil.core.files import (
    HINT,
    MARKER,
    SCHEMA,
    files_in,
    mark,
    private_folder,
    private_text,
    remove,
)
from clinveil.core.locations import RemotePath, failing
from clinveil.core.types import Say

T = TypeVar("T")
SUCCESS = "_SUCCESS"
ASKED = "asked"
_WITHOUT_FOLDERS = frozenset({"s3", "gcs", "abfs"})


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
    """Create OUT locally, or for an object store in a private folder next to the vault, and then
    upload it.

    If the upload fails, the output stays in that folder. The same run then only uploads it and
    returns None.

    Args:
        make: creates the given path atomically.
        asked: returns the hash of the run, see `run_hash`.

    Raises:
        UsageError: no local vault is given, or OUT exists. DiskError: writing to the store failed.
    """
    if not isinstance(out, RemotePath):
        return make(out)
    if vault is None or isinstance(vault, RemotePath):
        hint = "pass --vault FOLDER with a local folder; secrets are never uploaded"
        raise UsageError(
            "OUT is in an object store, so a vault is required", where=out.name, hint=hint
        )
    ready(out, command=command, force=force)
    question = asked()
    scratch = private_folder(vault.with_name(f"{vault.name}.upload"))
    made = scratch / out.name
    record = scratch / ASKED
    try:
        exists = (
            made.exists() and record.is_file() and record.read_text(encoding="utf-8") == question
        )
        if made.exists() and not exists and not force:
            what = "contains the output of another run that was not uploaded"
            raise UsageError(
                what, where=scratch.name, hint="move it elsewhere or replace it with --force"
            )
        if not exists:
            remove(made)
        result = None if exists else make(made)
        private_text(record, question)
        say(f"uploading {out.name}{', which an earlier run created' if exists else ''}")
        send(made, out, command=command, force=force)
        remove(scratch)
    except DiskError as error:
        complete = (
            f"the complete output is in {scratch.name}; run the same command again to upload it"
        )
        hint = complete if record.exists() else error.hint
        raise DiskError(error.what, where=error.where, hint=hint) from None
    finally:
        if scratch.exists() and not any(scratch.iterdir()):
            scratch.rmdir()
    return result


def ready(out: RemotePath, *, command: str, force: bool) -> None:
    """Check, before long work, that a store location is writable and contains no foreign files.

    Raises UsageError for an existing location (`force` replaces output of the same command),
    DiskError for a store that is not writable, InputError for one that is not readable.
    """
    system, path = out.system()
    if out.pattern:
        raise UsageError("OUT is a pattern", where=out.name, hint="use a single path")
    exists = out.exists()
    if out.is_file() and not force:
        raise UsageError("already exists", where=out.name, hint="use another path or --force")
    if exists and not out.is_file():
        _refuse_foreign(system, path, out.name, command, force=force)
    elif not exists and not out.suffix:
        with failing(out.name, writing=True):
            _folder(system, path)
            _write(system, f"{path}/{MARKER}", mark(command, []))


def send(local: Path, out: RemotePath, *, command: str, force: bool) -> None:
    """Upload a file or a folder to a store; `_SUCCESS` of a folder is written last. Raises like
    `ready`.
    """
    system, path = out.system()
    with failing(out.name, writing=True):
        if local.is_file():
            if not force and system.get_file_info(path).type.name != "NotFound":
                raise UsageError(
                    "already exists", where=out.name, hint="use another path or --force"
                )
            _put(system, local, path)
            return
        _refuse_foreign(system, path, out.name, command, force=force)
        # A folder that was downloaded from a store has a marker and `_SUCCESS` of its own.
        files = sorted(
            name for name in files_in(local) - {MARKER, SUCCESS} if not name.endswith("/")
        )
        for name in [SUCCESS, *sorted(_below(system, path) - {*files, MARKER, SUCCESS})]:
            if system.get_file_info(f"{path}/{name}").type.name == "File":
                system.delete_file(f"{path}/{name}")
        _folder(system, path)
        _write(system, f"{path}/{MARKER}", mark(command, files))
        for name in files:
            check_interrupt()
            _put(system, local / name, f"{path}/{name}")
        _write(system, f"{path}/{SUCCESS}", b"")


def _refuse_foreign(system: Any, path: str, where: str, command: str, *, force: bool) -> None:
    """Raise UsageError for a store folder that this command did not write, or, without `force`, a
    finished one.
    """
    with failing(where):
        names = _below(system, path)
        marker = _read(system, f"{path}/{MARKER}") if MARKER in names else {}
    if not names:
        return
    if marker.get("schema") != SCHEMA or marker.get("command") != command:
        raise UsageError(f"not an output folder of clinveil {command}", where=where, hint=HINT)
    if more := len(names - {MARKER, SUCCESS, *marker.get("files", [])}):
        what = f"contains {more} files that clinveil did not write"
        raise UsageError(what, where=where, hint="move them elsewhere or use another path")
    if SUCCESS in names and not force:
        raise UsageError("already exists", where=where, hint="use another path or --force")


def _below(system: Any, path: str) -> set[str]:
    from pyarrow.fs import FileSelector, FileType

    infos = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
    return {info.path[len(path) :].lstrip("/") for info in infos if info.type == FileType.File}


def _read(system: Any, path: str) -> dict[str, Any]:
    with system.open_input_stream(path, compression=None) as file:
        try:
            marker = json.loads(file.read(16 << 20))
        except ValueError:
            return {}
    return marker if isinstance(marker, dict) else {}


def _write(system: Any, path: str, data: bytes) -> None:
    with system.open_output_stream(path, compression=None) as file:
        file.write(data)


def _put(system: Any, local: Path, path: str) -> None:
    """Copy one file and check its size in the store."""
    from pyarrow.fs import LocalFileSystem, copy_files

    _folder(system, path.rpartition("/")[0])
    copy_files(str(local.absolute()), path, LocalFileSystem(), system)
    if system.get_file_info(path).size != local.stat().st_size:
        raise OSError("the uploaded file is incomplete")


def _folder(system: Any, path: str) -> None:
    if system.type_name not in _WITHOUT_FOLDERS:
        system.create_dir(path, recursive=True)
