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

from clinveil.errors import InputError, UsageError
from clinveil.files import OLD, locked, private_folder, private_text, remove, sha256
from clinveil.keys import Key
from clinveil.settings import ReleaseSettings

STATE = "state.json"
# What changes how a run goes, but not what comes out; a resumed run may change these.
_FREE = {"workers", "quiet", "force"}


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

    def key(self, seed: int | None) -> Key:
        """The key of this run: kept from before the interruption, or new."""
        path = self.vault / "key.bin"
        if path.exists():
            return Key.load(path) if seed is None else Key.from_seed(seed)
        key = Key.generate() if seed is None else Key.from_seed(seed)
        key.save(path)
        return key

    def finish(self, status: str) -> None:
        """Record that the run ended ("finished" or "refused"), and drop what it replaced."""
        state = json.loads((self.vault / STATE).read_text(encoding="utf-8"))
        private_text(self.vault / STATE, json.dumps(state | {"status": status}))
        if status == "finished":
            remove(self.out.with_name(self.out.name + OLD))


@contextmanager
def run_folder(out: Path, notes: Path, settings: ReleaseSettings) -> Iterator[RunFolder]:
    """Open OUT for a run, new or resumed, locked against a second one; scratch text is removed at exit.

    Raises UsageError where OUT is taken: by a finished run (without `--force`), by an unfinished run of other notes or
    settings, by another process, or by something that is no run of ours (even with `--force`).
    """
    folder = RunFolder(out)
    state = {"status": "running", "run": _digest(notes, settings)}
    taken = out.is_file() or (out.is_dir() and any(out.iterdir()))
    resumed = taken and _resumable(folder, state["run"], force=settings.force)
    if taken and not resumed:
        _move_aside(out)
    private_folder(folder.vault)
    with locked(folder.vault / "lock"):
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
                _put_back(out)
            raise
        finally:
            for scratch in (folder.work, folder.staging):
                remove(scratch)


def _resumable(folder: RunFolder, run: str, *, force: bool) -> bool:
    """Whether OUT holds the same run, unfinished. Raises UsageError where it may not be touched."""
    state = _state(folder)
    if state is None:
        raise UsageError("is there already, and is no release run", where=folder.out.name, remedy="name another place")
    if state["status"] == "running" and state["run"] == run:
        return True
    if not force:
        what = "holds an unfinished run of other notes or settings" if state["status"] == "running" else "is finished"
        raise UsageError(what, where=folder.out.name, remedy="name another place, or use --force to replace it")
    return False


def _state(folder: RunFolder) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((folder.vault / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state


def _move_aside(out: Path) -> None:
    old = out.with_name(out.name + OLD)
    if old.exists():
        raise UsageError("an earlier run still stands aside", where=old.name, remedy="look at it and remove it")
    out.replace(old)


def _put_back(out: Path) -> None:
    remove(out)
    old = out.with_name(out.name + OLD)
    if old.exists():
        old.replace(out)


def _digest(notes: Path, settings: ReleaseSettings) -> str:
    """What the run is a function of: the notes' bytes and the settings that change the outcome."""
    record = {k: v for k, v in settings.model_dump(mode="json").items() if k not in _FREE}
    beside = [
        fingerprint(path) if path and path.exists() else None for path in (settings.patients, settings.keep_words)
    ]
    whole = json.dumps([fingerprint(notes), beside, record], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """SHA-256 of a file, or of the names and hashes of a folder's files."""
    if not path.is_dir():
        return sha256(path)
    listing = "".join(f"{p.relative_to(path)}\0{sha256(p)}\n" for p in sorted(path.rglob("*")) if p.is_file())
    return hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
