"""Withdraw a release: delete it, keep the record of its vault, and say so in the ledger.

The steps are ordered so that an interruption never leaves a released file that the ledger does not
count: first the request is recorded, then the release is removed, and the ledger is changed last.
The same call completes what an interruption left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clinveil.core import (
    KEY,
    LOCK,
    STATE,
    InputError,
    Key,
    UsageError,
    atomic,
    locked,
    owner_only,
    private_text,
    read_json,
    remove,
)
from clinveil.phi import Chain, logs, next_log
from clinveil.releases.earlier.ledger import IN_VAULT, Ledger, Withdrawal, read_entry
from clinveil.releases.earlier.vault import WITHDRAWING, WITHDRAWN, withdrawal_of
from clinveil.releases.manifest import NAME
from clinveil.releases.outcome import KIND

REMOVED = "withdrawn"  # the release on its way out, in the vault
_HINT = "pass the OUT of a finished release"


@dataclass(frozen=True)
class Withdrawn:
    """Result of a withdrawal.

    Attributes:
        run: name of the release. withdrawal: its date and reason, of the first request.
        before: whether it was complete before this call.
        others: number of releases under the same key that are not withdrawn.
        ledger: the folder of the ledger. is_private: whether a privacy budget was spent.
    """

    run: str
    withdrawal: Withdrawal
    before: bool
    others: int
    ledger: Path
    is_private: bool


def withdraw(out: Path, reason: str, ledger: Path | None = None) -> Withdrawn:
    """Delete the release of a finished run, and mark it as withdrawn in its vault and the ledger.

    Args:
        out: folder of the run, with `release` and `vault`.
        reason: for the audit log and the ledger.
        ledger: folder of the ledger (default: as for the release).

    Raises:
        UsageError: no reason. InputError: `out` has no finished release. DiskError: the ledger
            cannot be written.
    """
    if not reason.strip():
        raise UsageError(
            "--reason is empty", hint="state the reason for the audit log, without patient names"
        )
    vault = out / KIND.vault
    manifest = read_json(vault / NAME)
    state = read_json(vault / STATE)
    if not isinstance(manifest, dict) or not isinstance(state, dict):
        raise InputError("contains no release", where=out.name, hint=_hint(out))
    status = state.get("status")
    if status not in ("finished", WITHDRAWING, WITHDRAWN):
        run = "a refused run" if status == "refused" else "an unfinished run"
        raise InputError(
            f"contains {run}, of which nothing left", where=out.name, hint="delete the folder"
        )
    listed = Ledger.at(ledger or _ledger_of(manifest), out)
    key = Key.load(vault / KEY)
    with owner_only(), locked(vault / LOCK, of=out):
        asked = withdrawal_of(state) or Withdrawal(f"{datetime.now(UTC):%Y-%m-%d}", reason)
        if status == "finished":
            _record(vault, state, WITHDRAWING, asked)
        if not logs(vault):
            _log(vault, key, str(manifest["run"]), asked)
        _remove_release(out)
        with listed.alone():
            entry = listed.of(key.commitment) or read_entry(vault / IN_VAULT)
            entry = entry.without(str(manifest["run"]), asked)
            listed.enter(entry, vault)
        if status != WITHDRAWN:
            _record(vault, state, WITHDRAWN, asked)
    return Withdrawn(
        run=str(manifest["run"]),
        withdrawal=asked,
        before=status == WITHDRAWN,
        others=entry.runs - len(entry.withdrawn),
        ledger=listed.folder,
        is_private=bool(entry.spent),
    )


def withdrawal_of_run(out: Path) -> Withdrawal | None:
    """Return the withdrawal of the release of a run, complete or not; None without one."""
    state = read_json(out / KIND.vault / STATE)
    return withdrawal_of(state) if isinstance(state, dict) else None


def _hint(out: Path) -> str:
    is_inside = out.name in ("release", KIND.vault) and (out.parent / KIND.vault / NAME).is_file()
    return f"pass {out.parent}" if is_inside else _HINT


def _ledger_of(manifest: Mapping[str, Any]) -> Path | None:
    """Return the ledger that a setting of the release named, or None."""
    private = manifest.get("private")
    settings = private.get("settings_in_full") if isinstance(private, dict) else None
    named = settings.get("ledger") if isinstance(settings, dict) else None
    return Path(named) if isinstance(named, str) else None


def _record(vault: Path, state: Mapping[str, Any], status: str, asked: Withdrawal) -> None:
    changed = {**state, "status": status, "withdrawn": asdict(asked)}
    private_text(vault / STATE, json.dumps(changed))


def _log(vault: Path, key: Key, run: str, asked: Withdrawal) -> None:
    path, before = next_log(vault)
    with atomic(path) as part, part.open("w", encoding="utf-8") as file:
        chain = Chain(file, before)
        about = {"version": version("clinveil"), "key_commitment": key.commitment, "run": run}
        chain.begin("withdraw", {**about, "reason": asked.reason})
        chain.end(key, {})


def _remove_release(out: Path) -> None:
    """Remove the release in one rename, and then its files."""
    removed = out / KIND.vault / REMOVED
    remove(removed)
    release = out / "release"
    if release.is_dir():
        release.replace(removed)
    remove(removed)
