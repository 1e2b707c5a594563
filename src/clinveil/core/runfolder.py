"""The private folder of a run: one run at a time, resumed only for the same task, replaced only on
request.

There are two kinds of folders. A folder for one task (`asked`, see `run_hash`) belongs to one run:
the same task resumes an interrupted run, another task is rejected, and `--force` keeps the old run
until the new one has succeeded. A
folder without a task is cumulative: every run of its kind may add to it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from clinveil.core.atomic_files import workplace
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import (
    PART,
    clear_leftovers,
    files_in,
    locked,
    private_folder,
    private_text,
    read_json,
    refuse_more,
    refuse_nameless,
    remove,
    sha256,
)
from clinveil.core.keys import Key
from clinveil.core.locations import (
    Location,
    RemotePath,
    is_pattern,
    listing,
    local_files,
    plain_parts,
)
from clinveil.core.settings import Settings

Status = Literal["running", "finished", "refused"]
SCHEMA = "clinveil.run/1"
KEY = "key.bin"
LOCK = "lock"
ASIDE = ".replaced"
STATE = "state.json"  # the run's hash and its status
_HALF = re.compile(r"\.(.+\.)?[0-9a-f]{8}\.part")  # left by a killed run, see `atomic.workplace`


def fingerprint(path: Location, executor: Callable[..., Iterable[str]] = map) -> str:
    """Return the SHA-256 of a file, or of the names and hashes of a folder's or pattern's files; ""
    if it is missing.

    In an object store it covers the files' names, sizes and modification times; their content is
    not read. `executor`: map that reads the files.
    """
    if isinstance(path, RemotePath):
        return hashlib.sha256("\n".join(listing(path)).encode()).hexdigest()
    if is_pattern(path):
        return _hashed(Path(*plain_parts(path)), local_files(path), executor)
    if not path.is_dir():
        return sha256(path) if path.exists() else ""
    return _hashed(path, path.rglob("*"), executor)


def _hashed(root: Path, paths: Iterable[Path], executor: Callable[..., Iterable[str]] = map) -> str:
    files = [path for path in sorted(paths) if path.is_file()]
    pairs = zip(files, executor(sha256, files), strict=True)
    listing = "".join(f"{path.relative_to(root)}\0{digest}\n" for path, digest in pairs)
    return hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()


@cache
def code_version() -> str:
    """Return the SHA-256 of our source files and word lists: a run is resumed only with the same
    code.
    """
    package = Path(str(files("clinveil")))
    return _hashed(
        package, (path for path in package.rglob("*") if path.parent.name != "__pycache__")
    )


def content_of(value: Any) -> Any:
    """Return what a setting with paths contributes to a hash: the content of each file or folder.

    A path may have a name before it, as in `presidio:FOLDER`. A name without a path stays.
    """
    if isinstance(value, tuple):
        return [content_of(path) for path in value]
    if isinstance(value, str):
        name, _, path = value.rpartition(":")
        return [name, fingerprint(Path(path)) or path]
    return None if value is None else fingerprint(value)


def identity(settings: Settings) -> dict[str, Any]:
    """Return what determines the output, by setting: values, and the content of secret files."""
    values = settings.named_values()
    record = settings.record()
    return {
        name: content_of(values[name]) if one.declared.secret == "path" else record[name]
        for name, one in settings.declared().items()
        if one.affects != "call"
    }


def run_hash(settings: Settings, *inputs: Location | str | None) -> str:
    """Hash everything that determines a run's output: the code, the settings with their files, and
    the inputs (64 hex digits).

    Args:
        inputs: files and folders, hashed by content, or existing hashes.
    """
    hashed = [fingerprint(given) if isinstance(given, Location) else given for given in inputs]
    return hashlib.sha256(
        json.dumps([code_version(), identity(settings), hashed], sort_keys=True).encode()
    ).hexdigest()


@dataclass(frozen=True)
class FolderKind:
    """Describe the run folders of one command.

    Attributes:
        title: their name in messages: "already exists and is not a TITLE".
        vault: their private folder with key, lock and state; "" for the whole folder.
        outputs: relative names that a run may leave, including everything below them; other files
            are foreign.
        notes: file name -> text, written into the vault at the start: explains what is secret.
        scratch: folders created for each run and removed at exit. stale: names that a resumed run
            creates again.
        known: whether a cumulative folder is of this kind; None for a folder of one task. It is
            called with whether one of the `notes` is in the folder, and with the names of the rest.
        costly: names of results that a failed run never removes.
    """

    title: str
    vault: str = ""
    outputs: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    known: Callable[[bool, set[str]], bool] | None = None
    costly: frozenset[str] = frozenset()

    def in_vault(self, name: str) -> str:
        """Return the name of a file of the vault, relative to the run's folder."""
        return f"{self.vault}/{name}" if self.vault else name

    @property
    def first(self) -> frozenset[str]:
        """The names that a run writes before any output."""
        folder = {f"{self.vault}/"} if self.vault else set()
        return frozenset(
            {*folder, *(self.in_vault(name) for name in (KEY, LOCK, STATE, *self.notes))}
        )


@dataclass(frozen=True)
class RunFolder:
    """The open folder of one run; `resumed`: it contains output of an earlier run of the same
    task.
    """

    root: Path
    kind: FolderKind
    resumed: bool = False

    @property
    def vault(self) -> Path:
        """The folder that never leaves: key, state and internal files."""
        return self.root / self.kind.vault

    @property
    def replaced(self) -> Path:
        """The name under which the replaced run is kept until success."""
        return self.root.with_name(f".{self.root.name}{ASIDE}")

    def key(self, seed: int | None = None) -> Key:
        """Return the folder's key: from a public seed, the stored one, or a new one; it is stored
        for the next run.
        """
        path = self.vault / KEY
        if seed is None and path.exists():
            return Key.load(path)
        key = Key.generate() if seed is None else Key.from_seed(seed)
        if not path.exists():
            key.save(path)
        return key

    def finish(self, status: Status = "finished") -> None:
        """Remove scratch, record the run's status and files, and remove the run that it replaced if
        it succeeded.
        """
        for name in self.kind.scratch:
            remove(self.root / name)
        state = {
            **(_state(self.root, self.kind) or {}),
            "status": status,
            "files": sorted(files_in(self.root)),
        }
        private_text(self.vault / STATE, json.dumps(state))
        if status == "finished" and _state(self.replaced, self.kind):
            _discard(self.replaced, self.root)


@contextmanager
def run_folder(
    root: Path, kind: FolderKind, asked: str = "", *, force: bool = False
) -> Iterator[RunFolder]:
    """Open a new or resumed folder for one run, locked against other runs.

    A run that fails before its first output restores the previous content. So does a new run that
    fails with `InputError` or `UsageError`, because it leaves nothing to resume, unless there are
    `costly` results.

    Args:
        asked: the hash of the task; "" for a cumulative folder.
        force: replace a run of another task, or a finished one; the old one is kept until success.

    Raises:
        UsageError: the folder is not such a run, belongs to another task or a finished run (without
            `force`), is in use by another process, or (with `force`) contains foreign files.
    """
    refuse_nameless(root)
    if root.is_symlink() and not root.exists():
        raise UsageError(
            "is a link to a missing folder",
            where=root.name,
            hint="create the folder or use another path",
        )
    clear_leftovers(root)
    folder = RunFolder(root, kind, _enter(RunFolder(root, kind), asked, force=force))
    existed = root.is_dir()
    with locked(private_folder(folder.vault) / LOCK, of=root):
        before = files_in(root) - {kind.in_vault(LOCK)} if folder.resumed else set()
        _begin(folder, asked)
        try:
            try:
                yield folder
            finally:
                for name in kind.scratch:
                    remove(root / name)
        except BaseException as error:
            if (_state(root, kind) or {}).get(
                "status", "running"
            ) == "running":  # the run did not finish
                _undo(
                    folder,
                    before,
                    is_useless=bool(asked) and isinstance(error, InputError | UsageError),
                    existed=existed,
                )
            raise


def _enter(folder: RunFolder, asked: str, *, force: bool) -> bool:
    """Prepare the folder; return whether the run is resumed. Raises UsageError if the folder may
    not be used.
    """
    root = folder.root
    kind = folder.kind
    first = {kind.in_vault(LOCK), *(f"{name}/" for name in (kind.vault, *kind.scratch))}
    kept = {root.name} if root.is_file() else _kept(root) - first
    if not kept:
        return False
    foreign = UsageError(
        f"already exists and is not a {kind.title}", where=root.name, hint="use another path"
    )
    if kind.known is not None:
        names = {Path(name).parts[0] for name in kept} - {*kind.notes, *kind.scratch}
        if not kind.known(_marked(root, kind), names):
            raise foreign
        return True
    state = _state(root, kind)
    if state is None:
        if (folder.vault / LOCK).is_file():
            with locked(folder.vault / LOCK, of=root):
                """A run that has just begun holds it."""
        raise foreign
    status = state["status"]
    if status == "running" and state["run"] == asked:
        return True
    if not force:
        others = " of other notes or settings, or of another version" if status == "running" else ""
        problem = f"contains {_STATUS.get(status, 'a finished run')}{others}"
        raise UsageError(
            problem, where=root.name, hint="use another path, or --force to replace it"
        )
    _refuse_foreign(root, kind, state)
    with locked(folder.vault / LOCK, of=root):
        """No other run is using the folder that is moved."""
    # Keep the old run until the new one has succeeded; if an older one is already kept, keep that
    # one instead.
    if not folder.replaced.exists():
        root.replace(folder.replaced)
    elif _state(folder.replaced, kind):
        _discard(root, root)
    else:
        raise UsageError(
            "this name is needed to keep the old run",
            where=folder.replaced.name,
            hint="move it elsewhere",
        )
    return False


_STATUS = {
    "running": "an unfinished run",
    "refused": "a refused run",
    "withdrawing": "a release that is being withdrawn",
    "withdrawn": "a withdrawn release",
}


def _kept(root: Path) -> set[str]:
    """Return the names of all files of a folder but those that a killed run left half-written."""
    return {name for name in files_in(root) if not any(map(_HALF.fullmatch, Path(name).parts))}


def _marked(root: Path, kind: FolderKind) -> bool:
    """Whether one of the notes of this kind is in the folder, at least with its first line."""
    for name, text in kind.notes.items():
        with suppress(OSError, ValueError):
            if (root / name).read_text(encoding="utf-8").startswith(text.partition("\n")[0]):
                return True
    return False


def _begin(folder: RunFolder, asked: str) -> None:
    for path in [path for path in folder.root.rglob(f".*{PART}") if _HALF.fullmatch(path.name)]:
        remove(path)
    # Output that an interrupted run published is created again: it must not remain if a gate now
    # fails.
    for name in (*folder.kind.stale, *folder.kind.scratch):
        remove(folder.root / name)
    for name in folder.kind.scratch:
        private_folder(folder.root / name)
    if asked:  # write the state first: a run interrupted before the key exists can then be resumed
        state = {"schema": SCHEMA, "status": "running", "run": asked}
        private_text(folder.vault / STATE, json.dumps(state))
    for name, text in folder.kind.notes.items():
        if not (folder.vault / name).exists():
            private_text(folder.vault / name, text)


def _discard(folder: Path, root: Path) -> None:
    """Remove a folder; if this is interrupted, the next run removes the rest."""
    with workplace(root) as place:
        folder.replace(place / "replaced")


def _undo(folder: RunFolder, before: set[str], *, is_useless: bool, existed: bool) -> None:
    """Restore the folder's previous content, unless there is output that the next run can resume
    from.

    Args:
        before: names of the files before the run.
        is_useless: the run leaves nothing to resume from, unless there are costly results.
        existed: whether the folder itself was there before the run.
    """
    root = folder.root
    created = files_in(root) - before
    has_costly = any((root / name).exists() for name in folder.kind.costly)
    if is_useless and not folder.resumed and not has_costly:
        remove(root)
    elif created <= folder.kind.first:
        for name in created:
            remove(root / name)
        _remove_if_empty(folder.vault)
        if not existed:
            _remove_if_empty(root)
    if not root.exists() and _state(folder.replaced, folder.kind):
        folder.replaced.replace(root)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _refuse_foreign(root: Path, kind: FolderKind, state: Mapping[str, Any]) -> None:
    """Raise UsageError if the folder contains files that its run did not write, since they would be
    deleted.
    """
    names = _kept(root)
    own = {*kind.outputs, *kind.scratch, *kind.stale}
    below = {
        name
        for name in names
        if any(str(above) in own for above in (Path(name), *Path(name).parents))
    }
    refuse_more(
        root, names, {*kind.first, *({*own, *state["files"]} if "files" in state else below)}
    )


def _state(root: Path, kind: FolderKind) -> dict[str, Any] | None:
    """Return the recorded state of a folder's run; None if it is not a run of this kind."""
    state = read_json(root / kind.in_vault(STATE))
    if not isinstance(state, dict) or not all(
        isinstance(state.get(name), str) for name in ("status", "run")
    ):
        return None
    names = state.get("files", [])
    return (
        state if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
    )
