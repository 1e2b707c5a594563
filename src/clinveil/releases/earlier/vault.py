"""Read the vault of a finished release: its manifest, verified, its settings and its tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from clinveil.core import STATE, InputError, read_json
from clinveil.releases.crosswalk import CROSSWALK, VaultTable
from clinveil.releases.earlier.ledger import Withdrawal
from clinveil.releases.manifest import NAME, SCHEMA, canonical
from clinveil.releases.outcome import KIND
from clinveil.releases.settings import ReleaseSettings

WITHDRAWING = "withdrawing"
WITHDRAWN = "withdrawn"
"""States of the vault of a release that is being withdrawn, and that was withdrawn."""
_HINT = "pass the vault folder of a finished release, OUT/vault"
SCHEMAS = {"crosswalk": CROSSWALK}


def vault_table(vault: Path, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table of a vault. Raises InputError if it is damaged or missing."""
    try:
        if not (vault / f"{name}.parquet").exists():
            raise pa.ArrowInvalid
        for batch in VaultTable(vault / f"{name}.parquet").batches():
            if batch.schema.names != SCHEMAS[name].names:
                raise pa.ArrowInvalid
            yield batch
    except (OSError, pa.ArrowException):
        raise damaged(vault, f"{name} cannot be read") from None


def damaged(vault: Path, fault: str) -> InputError:
    """Return the error for a vault that was changed."""
    return InputError(
        f"the vault is damaged: {fault}", where=vault.name, hint="restore it from a backup"
    )


def read_manifest(vault: Path) -> dict[str, Any]:
    """Return the verified manifest of a vault. Raises InputError for any other folder."""
    if not vault.exists():
        raise InputError("does not exist", where=vault.name, hint=_HINT)
    document = read_json(vault / NAME)
    if document is None and (vault / NAME).exists():
        raise damaged(vault, f"{NAME} cannot be read")
    manifest: dict[str, Any] = document if isinstance(document, dict) else {}
    if (
        manifest.get("schema") != SCHEMA
        or "private" not in manifest
        or "vault_digests" not in manifest
    ):
        if (vault / KIND.vault / STATE).exists():
            raise InputError(
                "is not the vault of a release",
                where=vault.name,
                hint=f"pass its folder {KIND.vault}",
            )
        if read_json(vault / STATE) is not None and not manifest:
            refuse_unfinished(vault)
        deidentified = (vault / "deidentify.json").exists()
        other = (
            "a vault of clinveil deidentify, not of a release"
            if deidentified
            else "not the vault of a release"
        )
        raise InputError(f"is {other}", where=vault.name, hint=_HINT)
    if hashlib.sha256(canonical(manifest).encode()).hexdigest() != manifest.get("self_sha256"):
        raise damaged(vault, "the manifest was changed")
    if manifest["version"] != version("clinveil"):
        what = f"was made by clinveil {manifest['version']}, whose results may differ"
        raise InputError(
            what, where=vault.name, hint="use that version, or release all notes again"
        )
    return manifest


def refuse_unfinished(vault: Path) -> None:
    """Raise InputError for the vault of a refused or unfinished release."""
    state = read_json(vault / STATE)
    if state is None and (vault / STATE).exists():
        raise damaged(vault, f"{STATE} cannot be read")
    status = state.get("status") if isinstance(state, dict) else None
    if status == "refused":
        what = "is the vault of a refused release"
        raise InputError(
            what,
            where=vault.name,
            hint="correct what its gates refused and release those notes first",
        )
    if status == WITHDRAWING:
        what = "is the vault of a release that is being withdrawn"
        raise InputError(what, where=vault.name, hint="run clinveil withdraw again to finish it")
    if isinstance(state, dict) and status == WITHDRAWN and (asked := withdrawal_of(state)):
        what = f"is the vault of a release that was {asked.description}"
        hint = "release the notes without --reuse, under a new key"
        raise InputError(what, where=vault.name, hint=hint)
    if status != "finished":
        what = "is the vault of an unfinished release"
        hint = "run its command again to finish it"
        raise InputError(what, where=vault.name, hint=hint)


def withdrawal_of(state: Mapping[str, Any]) -> Withdrawal | None:
    """Return the withdrawal that the state of a vault records, complete or not, or None."""
    stored = state.get("withdrawn")
    if not isinstance(stored, dict):
        return None
    return Withdrawal(str(stored.get("date", "")), str(stored.get("reason", "")))


def settings_of(manifest: Mapping[str, Any], vault: Path) -> ReleaseSettings:
    """Return the settings of a release. Raises InputError for settings of another version."""
    try:
        return ReleaseSettings.model_validate(manifest["private"]["settings_in_full"])
    except (KeyError, TypeError, ValidationError):
        hint = "use the version that made it"
        raise InputError(
            "was made by another version of clinveil", where=vault.name, hint=hint
        ) from None
