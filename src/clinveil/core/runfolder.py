"""The private folder of a run: one run at a time, gone on with for the same question only, replaced only when told to.

Two sorts of folder. One that answers a question (`asked`, see `run_hash`) belongs to one run: the same question goes on
where a stop left it, another one is refused, and `--force` sets what is there aside until the new run has succeeded.
One without a question grows: every run of its kind may add to it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import (
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
from clinveil.core.locations import files_of, is_pattern, root_of
from clinveil.core.remote import RemotePath, listing
from clinveil.core.settings import Settings

Status = Literal["running", "finished", "refused"]
SCHEMA = "clinveil.run/1"
KEY, LOCK, ASIDE = "key.bin", "lock", ".replaced"
FREE = frozenset({"workers", "on", "address", "quiet", "force"})  # how a run goes, not what comes out
_HALF = re.compile(r"\.(.+\.)?[0-9a-f]{8}\.part(/.*)?")  # of a killed run, see `files.workplace`


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, or of the names and hashes of a folder's or pattern's files; "" where nothing is there.

    Of a place in a store of objects: of the names, sizes and times of change of its files, which are not read for it.
    """
    if isinstance(path, RemotePath):
        return hashlib.sha256("\n".join(listing(path)).encode()).hexdigest()
    if is_pattern(path):
        return _hashed(root_of(path), files_of(path))
    if not path.is_dir():
        return sha256(path) if path.exists() else ""
    return _hashed(path, path.rglob("*"))


def _hashed(root: Path, paths: Iterable[Path]) -> str:
    listing = "".join(f"{p.relative_to(root)}\0{sha256(p)}\n" for p in sorted(paths) if p.is_file())
    return hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()


@cache
def code_version() -> str:
    """SHA-256 of our source files and word lists: what is half done goes on under the same code only."""
    package = Path(str(files("clinveil")))
    return _hashed(package, (path for path in package.rglob("*") if path.parent.name != "__pycache__"))


def run_hash(settings: Settings, *inputs: Path | str | None, free: Collection[str] = FREE) -> str:
    """What a run is a function of, in 64 hex digits: the code, the settings that change what comes out, the inputs.

    Args:
        inputs: files and folders, of which the bytes count, or hashes that were made before.
        free: settings that change nothing, or that stand among the inputs.
    """
    told = settings.flat(free)
    hashed = [fingerprint(given) if isinstance(given, Path) else given for given in inputs]
    return hashlib.sha256(json.dumps([code_version(), told, hashed], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Kind:
    """The run folders of one command.

    Attributes:
        what: what they are called in messages: "is there already, and is not a WHAT".
        vault: the private folder in them that holds key, lock and state; "" for the whole folder.
        state: the JSON file that says what was asked, and how it ended.
        own: relative names that our runs may leave, all below them included; whatever else is there is somebody's.
        notes: file name -> text, written into the vault at the start: what is secret here.
        scratch: folders that are new for each run and removed at exit. stale: what a resumed run makes anew.
        known: of a folder that grows, whether it is one of this kind; None for one that answers a question.
    """

    what: str
    vault: str = ""
    state: str = "state.json"
    own: frozenset[str] = frozenset()
    notes: Mapping[str, str] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    known: Callable[[Path], bool] | None = None

    def at(self, name: str) -> str:
        """The name of a file of the vault, relative to the run's folder."""
        return f"{self.vault}/{name}" if self.vault else name

    @property
    def first(self) -> frozenset[str]:
        """What a run writes before it makes anything."""
        folder = {f"{self.vault}/"} if self.vault else set()
        return frozenset({*folder, *(self.at(name) for name in (KEY, LOCK, self.state, *self.notes))})


@dataclass(frozen=True)
class RunFolder:
    """The open folder of one run; `resumed` tells that it holds what an earlier one made for the same question."""

    root: Path
    kind: Kind
    resumed: bool = False

    @property
    def vault(self) -> Path:
        """What never leaves: key, state, and all that the run makes for itself."""
        return self.root / self.kind.vault

    @property
    def aside(self) -> Path:
        """Where the run that this one replaces waits: a name that nobody else gives."""
        return self.root.with_name(f".{self.root.name}{ASIDE}")

    def key(self, seed: int | None = None) -> Key:
        """The key of the folder: of a public seed, or kept from before, or new; kept for the next run."""
        path = self.vault / KEY
        if seed is None and path.exists():
            return Key.load(path)
        key = Key.generate() if seed is None else Key.from_seed(seed)
        if not path.exists():
            key.save(path)
        return key

    def finish(self, status: Status = "finished") -> None:
        """Record how the run ended and which files are its own; what it replaced goes, if it succeeded."""
        said = {**(_state(self.root, self.kind) or {}), "status": status, "files": sorted(files_in(self.root))}
        private_text(self.vault / self.kind.state, json.dumps(said))
        if status == "finished" and _state(self.aside, self.kind):
            remove(self.aside)


@contextmanager
def run_folder(
    root: Path, kind: Kind, asked: str = "", *, force: bool = False, made: Path | None = None
) -> Iterator[RunFolder]:
    """Open a folder for one run, new or gone on with, locked against a second one.

    A run that fails before it has made anything leaves the place as it found it; so does one that is new and whose
    input does not fit (`InputError`, `UsageError`), for then there is nothing to go on with.

    Args:
        asked: the hash of the question; "" for a folder that grows.
        force: replace a run of another question, or a finished one; the old one waits aside until success.
        made: what a finished run has put elsewhere; if it is gone, the run goes on and makes it again.

    Raises:
        UsageError: the place is taken: by something that is no such run, by a run of another question or a finished
            one (without `force`), by another process, or (with `force`) by files that are somebody else's.
    """
    refuse_nameless(root)
    folder = RunFolder(root, kind, _enter(RunFolder(root, kind), asked, force=force, made=made))
    there = root.is_dir()
    with locked(private_folder(folder.vault) / LOCK, of=root):
        before = files_in(root) - {kind.at(LOCK)} if folder.resumed else set()
        _begin(folder, asked)
        try:
            try:
                yield folder
            finally:
                for name in kind.scratch:
                    remove(root / name)
        except BaseException as error:
            if (_state(root, kind) or {}).get("status", "running") == "running":  # it did not finish
                _undo(folder, before, wholly=bool(asked) and isinstance(error, InputError | UsageError), there=there)
            raise


def _enter(folder: RunFolder, asked: str, *, force: bool, made: Path | None) -> bool:
    """Make way for the run; says whether it goes on with what is there. Raises UsageError where it may not."""
    root, kind = folder.root, folder.kind
    if not root.is_file() and not (root.is_dir() and files_in(root) - {kind.at(LOCK), f"{kind.vault}/"}):
        return False
    foreign = UsageError(f"is there already, and is not a {kind.what}", where=root.name, hint="name another place")
    if kind.known is not None:
        if not kind.known(root):
            raise foreign
        return True
    state = _state(root, kind)
    if state is None:
        raise foreign
    status = "running" if made is not None and not made.exists() else state["status"]
    if status == "running" and state["run"] == asked:
        return True
    if not force:
        others = " of other notes or settings, or of another version" if status == "running" else ""
        what = f"holds {_STATUS.get(status, 'a finished run')}{others}"
        raise UsageError(what, where=root.name, hint="name another place, or use --force to replace it")
    _refuse_strange(root, kind, state)
    with locked(folder.vault / LOCK, of=root):
        """Nobody is at work in what is set aside."""
    _set_aside(folder)
    return False


_STATUS = {"running": "an unfinished run", "refused": "a refused run"}


def _set_aside(folder: RunFolder) -> None:
    """Keep the run until its successor has succeeded; if one waits already, that one is kept and not this."""
    if not folder.aside.exists():
        folder.root.replace(folder.aside)
    elif _state(folder.aside, folder.kind):
        remove(folder.root)
    else:
        raise UsageError("stands where the old run would wait", where=folder.aside.name, hint="move it away")


def _begin(folder: RunFolder, asked: str) -> None:
    # What an interrupted run had published is made again: it must not outlive a gate that now fails.
    for name in (*folder.kind.stale, *folder.kind.scratch):
        remove(folder.root / name)
    for name in folder.kind.scratch:
        private_folder(folder.root / name)
    if asked:  # first what says whose folder it is: a stop before the key then leaves something to go on with
        state = {"schema": SCHEMA, "status": "running", "run": asked}
        private_text(folder.vault / folder.kind.state, json.dumps(state))
    for name, text in folder.kind.notes.items():
        if not (folder.vault / name).exists():
            private_text(folder.vault / name, text)


def _undo(folder: RunFolder, before: set[str], *, wholly: bool, there: bool) -> None:
    """Leave the place as it was found, unless something was made that a next run can go on with."""
    new = files_in(folder.root) - before
    if wholly and not folder.resumed:
        remove(folder.root)
    elif new <= folder.kind.first:
        for name in new:
            remove(folder.root / name)
        for place in (folder.vault, folder.root):
            if place.is_dir() and not any(place.iterdir()) and not (there and place == folder.root):
                place.rmdir()
    if not folder.root.exists() and _state(folder.aside, folder.kind):
        folder.aside.replace(folder.root)


def _refuse_strange(root: Path, kind: Kind, state: Mapping[str, Any]) -> None:
    """Raise UsageError where the folder holds files that its run did not write: they would be lost with it."""
    found = {name for name in files_in(root) if not _HALF.fullmatch(name.removeprefix(f"{kind.vault}/"))}
    own = {*kind.own, *kind.scratch, *kind.stale}
    below = {name for name in found if any(str(above) in own for above in (Path(name), *Path(name).parents))}
    refuse_more(root, found, {*kind.first, *({*own, *state["files"]} if "files" in state else below)})


def _state(root: Path, kind: Kind) -> dict[str, Any] | None:
    """What the run in a folder says of itself; None where it is no run of this kind."""
    said = read_json(root / kind.at(kind.state))
    fits = isinstance(said, dict) and all(isinstance(said.get(name), str) for name in ("status", "run"))
    fits = fits and isinstance(said.get("files", []), list) and all(isinstance(n, str) for n in said.get("files", []))
    return said if fits else None
