"""The folder of a release run: two trees, a lock, and what is needed to resume.

`OUT/vault/` holds every secret (0700). `OUT/release/` appears at the very end, in one rename, and only if all gates
passed. Scratch text lies in `OUT/vault/work/` and is removed at exit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import locked, private_folder, private_text, refuse_nameless, remove, sha256
from clinveil.core.keys import Key
from clinveil.core.outputs import files_in, refuse_more
from clinveil.release.settings import ReleaseSettings

STATE = "state.json"
ASIDE = ".replaced"
# What changes how a run goes, but not what comes out; a resumed run may change these.
_FREE = {"workers", "quiet", "force"}
# What a run may leave unfinished, and what is written beside a finished one.
_IN_VAULT: tuple[str, ...] = ("key.bin", "vectors", "neighbours", "channel", "crosswalk.parquet", "alignment.parquet")
_IN_VAULT += ("state.json", "lock", "work", "staging", "refused", "manifest.json", "record.json", "findings.json")
_IN_VAULT += ("report.html", "report-external.html")
_OWN = {"release", "vault", *(f"vault/{name}" for name in _IN_VAULT)}


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The places of one run."""

    out: Path

    @property
    def release(self) -> Path:
        """What may leave."""
        return self.out / "release"

    @property
    def vault(self) -> Path:
        """What never does."""
        return self.out / "vault"

    @property
    def work(self) -> Path:
        """Scratch text; removed at exit."""
        return self.vault / "work"

    @property
    def staging(self) -> Path:
        """The release while it is being made."""
        return self.vault / "staging"

    @property
    def refused(self) -> Path:
        """Where a release with a test seed goes instead."""
        return self.vault / "refused"

    @property
    def aside(self) -> Path:
        """Where the run that this one replaces waits: a name that nobody else gives."""
        return self.out.with_name(f".{self.out.name}{ASIDE}")

    def key(self, seed: int | None) -> Key:
        """The key of this run: kept from before the interruption, or new."""
        path = self.vault / "key.bin"
        if path.exists():
            return Key.load(path) if seed is None else Key.from_seed(seed)
        key = Key.generate() if seed is None else Key.from_seed(seed)
        key.save(path)
        return key

    def finish(self, status: str) -> None:
        """Record that the run ended ("finished" or "refused") and what it made, and drop what it replaced."""
        state = json.loads((self.vault / STATE).read_text(encoding="utf-8"))
        files = sorted(files_in(self.out))
        private_text(self.vault / STATE, json.dumps(state | {"status": status, "files": files}))
        if status == "finished" and _state(self.aside) is not None:
            remove(self.aside)


@contextmanager
def run_folder(out: Path, notes: Path, settings: ReleaseSettings) -> Iterator[RunFolder]:
    """Open OUT for a run, new or resumed, locked against a second one; scratch text is removed at exit.

    Raises UsageError where OUT is taken: by a finished run (without `--force`), by an unfinished run of other notes or
    settings, by another process, or (even with `--force`) by something that is no run of ours, or by one that somebody
    put files of their own into.
    """
    refuse_nameless(out)
    folder = RunFolder(out)
    state = {"status": "running", "run": _digest(notes, settings)}
    taken = out.is_file() or (out.is_dir() and any(out.iterdir()))
    resumed = taken and _resumable(folder, state["run"], force=settings.force)
    if taken and not resumed:
        _move_aside(folder)
    private_folder(folder.vault)
    with locked(folder.vault / "lock", of=out):
        # What an interrupted run had published is made again: it must not outlive a gate that now fails.
        for leftover in (folder.release, folder.refused, folder.work, folder.staging):
            remove(leftover)
        for scratch in (folder.work, folder.staging):
            private_folder(scratch)
        private_text(folder.vault / STATE, json.dumps(state))
        try:
            yield folder
        except (InputError, UsageError):
            # The notes do not fit, so there is nothing to resume: leave the place as it was found.
            if not resumed:
                _put_back(folder)
            raise
        finally:
            for scratch in (folder.work, folder.staging):
                remove(scratch)


def _resumable(folder: RunFolder, run: str, *, force: bool) -> bool:
    """Whether OUT holds the same run, unfinished. Raises UsageError where it may not be touched."""
    state = _state(folder.out)
    if state is None:
        raise UsageError("is there already, and is no release run", where=folder.out.name, remedy="name another place")
    _refuse_strange(folder, state)
    if state["status"] == "running" and state["run"] == run:
        return True
    if not force:
        what = "holds an unfinished run of other notes or settings" if state["status"] == "running" else "is finished"
        raise UsageError(what, where=folder.out.name, remedy="name another place, or use --force to replace it")
    return False


def _refuse_strange(folder: RunFolder, state: dict[str, Any]) -> None:
    """Raise UsageError where the folder holds files that its run did not write: they would be lost with it."""
    if state["status"] == "running":
        found = [*folder.out.iterdir(), *folder.vault.iterdir()]
        refuse_more(folder.out, {path.relative_to(folder.out).as_posix() for path in found}, _OWN)
    else:
        refuse_more(folder.out, files_in(folder.out), {*state.get("files", ()), *_OWN})


def _state(out: Path) -> dict[str, Any] | None:
    """What the run in a folder says of itself; None where it is no run of ours."""
    try:
        state = json.loads((out / "vault" / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return state if isinstance(state, dict) and {"status", "run"} <= state.keys() else None


def _move_aside(folder: RunFolder) -> None:
    if folder.aside.exists():
        remedy = "look at it and remove it"
        raise UsageError("an earlier run still stands aside", where=folder.aside.name, remedy=remedy)
    folder.out.replace(folder.aside)


def _put_back(folder: RunFolder) -> None:
    remove(folder.out)
    if _state(folder.aside) is not None:
        folder.aside.replace(folder.out)


def _digest(notes: Path, settings: ReleaseSettings) -> str:
    """What the run is a function of: the notes' bytes and the settings that change the outcome."""
    record = {k: v for k, v in settings.flat().items() if k not in _FREE}
    beside = [
        fingerprint(path) if path and path.exists() else None
        for path in (settings.identifiers.patients, settings.channel.keep_words)
    ]
    whole = json.dumps([fingerprint(notes), beside, record], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, or of the names and hashes of a folder's files."""
    if not path.is_dir():
        return sha256(path)
    listing = "".join(f"{p.relative_to(path)}\0{sha256(p)}\n" for p in sorted(path.rglob("*")) if p.is_file())
    return hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
