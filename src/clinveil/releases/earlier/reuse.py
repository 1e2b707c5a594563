"""An earlier run whose key, vectors, channel and model a new release reuses (`--reuse`).

The vault of the earlier run is read only. What is reused is copied into the vault of the new
release, which then runs as if it had been interrupted after training. The ledger refuses a note id
that was released with another text: draws are keyed by note and position, so both texts would share
their randomness.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinveil.core import KEY, InputError, Key, Setting, UsageError, atomic, content_of, fingerprint
from clinveil.corpus import TABLE
from clinveil.releases.earlier.ledger import IN_VAULT, Entry, Ledger, read_entry
from clinveil.releases.earlier.note_hashes import NoteHashes
from clinveil.releases.earlier.vault import (
    damaged,
    read_manifest,
    refuse_unfinished,
    settings_of,
    vault_table,
)
from clinveil.releases.outcome import KIND
from clinveil.releases.settings import ReleaseSettings

LEARNED = ("vectors", "neighbours", "channel", "model")
"""What a run learned, as far as its kind has it."""
MIN_PATIENTS = "channel.min_patients"


@dataclass(frozen=True)
class ReusedRun:
    """A finished release, read from its vault.

    Attributes:
        settings: settings of the release. manifest: manifest of the vault.
        entry: its ledger entry, as it was when the release was published.
    """

    vault: Path
    key: Key
    settings: ReleaseSettings
    manifest: Mapping[str, Any] = field(repr=False)
    entry: Entry = field(repr=False)

    @classmethod
    def read(cls, vault: Path) -> ReusedRun:
        """Read the release of a vault.

        Raises InputError if the folder is not the vault of a finished release, is damaged, or was
        made by another version of clinveil.
        """
        manifest = read_manifest(vault)
        refuse_unfinished(vault)
        settings = settings_of(manifest, vault)
        if settings.synthetic.epsilon is not None:
            raise InputError(
                "is the vault of a release with differential privacy",
                where=vault.name,
                hint="each of these draws its own noise: release without --reuse",
            )
        key = Key.load(vault / KEY)
        if key.commitment != manifest["key_commitment"]:
            raise damaged(vault, "the key does not match the manifest")
        for name, digest in manifest["vault_digests"].items():
            if fingerprint(vault / name) != digest:
                raise damaged(vault, f"{name} does not match the manifest")
        if not (vault / TABLE).is_file():
            raise damaged(vault, f"{TABLE} is missing")
        entry = read_entry(vault / IN_VAULT)
        if entry.commitment != key.commitment:
            raise damaged(vault, f"{IN_VAULT} belongs to another release")
        if settings.kind != "synthetic":
            rows = sum(batch.num_rows for batch in vault_table(vault, "crosswalk"))
            if rows != manifest["notes"]["rows"]:
                raise damaged(vault, "notes are missing from the crosswalk")
        return cls(vault, key, settings, manifest, entry)

    @property
    def run(self) -> str:
        """Name of the run."""
        return str(self.manifest["run"])

    @property
    def folder(self) -> Path:
        """Its folder, in which nothing is written."""
        vault = self.vault.resolve()
        return vault.parent if vault.name == KIND.vault else vault

    @property
    def seal(self) -> str:
        """Hash of its manifest, which covers the vault."""
        return str(self.manifest["self_sha256"])

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of what the run learned."""
        return tuple(name for name in LEARNED if (self.vault / name).exists())

    @property
    def origin(self) -> str:
        """Origin of its word vectors, as text."""
        origin = str(self.manifest["vectors"]["from"])
        return origin if origin.startswith("of release") else f"of release {self.run}: {origin}"

    def settings_for(self, asked: ReleaseSettings) -> ReleaseSettings:
        """Return settings with those of the reused parts.

        Raises:
            UsageError: a given setting differs from that of a reused part, or a file is missing.
            InputError: a file has other content than before.
        """
        given = asked.given_values()
        kind = self.settings.kind
        if asked.seed is not None:
            raise UsageError("--seed and --reuse exclude each other", hint="omit one of them")
        if given.get("kind") not in (None, "", kind):
            raise UsageError(
                f"--reuse: the vault is that of a release --as {kind}",
                hint=f"pass --as {kind}, or another vault",
            )
        asked = asked.with_kind(kind)
        if given.get(MIN_PATIENTS) == "auto":  # the floor of the reused parts is a number
            del given[MIN_PATIENTS]
        earlier = self.settings.named_values()
        kept = {
            one.name: earlier[one.name]
            for one in self.settings.of_kind()
            if one.affects in ("treatment", "training")
        }
        files = self._files()
        changed = {name for name in kept.keys() & given.keys() if given[name] != kept[name]}
        if others := sorted(changed - files.keys()):
            raise UsageError(
                f"{', '.join(others)} cannot differ from the run of --reuse",
                hint="omit it, or release without --reuse (--again) under a new key",
            )
        settings = asked.changed({name: kept[name] for name in kept.keys() - changed})
        now = settings.named_values()
        for name in files:
            self._refuse_file(name, earlier[name], now[name])
        return settings

    def _files(self) -> dict[str, Setting]:
        """Return the settings with files that are read again: they may have moved, with the same
        content.
        """
        return {
            one.name: one
            for one in self.settings.of_kind()
            if one.affects == "treatment" and one.declared.secret == "path"
        }

    def _refuse_file(self, name: str, before: Any, now: Any) -> None:
        """Raise UsageError for a missing file, InputError for one with other content than
        before.
        """
        then = self.manifest["private"].get("files_sha256") or {}
        if bool(now) != bool(before):
            raise UsageError(f"{name} cannot differ from the run of --reuse", hint=f"omit {name}")
        if not now or name not in then or content_of(now) == then[name]:
            return
        if isinstance(now, Path) and not now.exists():
            raise UsageError(f"the run of --reuse was made with {name}", hint=f"pass {name} again")
        what = f"{name} is not the file of the run that is reused"
        where = now.name if isinstance(now, Path) else ""
        raise InputError(what, where=where, hint="pass the original file")

    def entered(self, ledger: Ledger) -> Entry:
        """Return the ledger entry of everything released under the key.

        Raises InputError if the ledger does not contain this release.
        """
        entry = ledger.of(self.key.commitment)
        if entry is None or not entry.covers(self.entry):
            hint = (
                f"name its ledger with --set ledger=FOLDER, or copy {IN_VAULT} of the vault there,"
                f" as {self.entry.file}"
            )
            raise InputError(
                f"does not contain release {self.run}",
                where=str(ledger.folder.absolute()),
                hint=hint,
            )
        return entry

    def refuse(self, ledger: Ledger, notes: NoteHashes, *, again: bool) -> None:
        """Raise InputError or UsageError for notes that cannot be released under the key.

        Args:
            again: accept notes that were released under other ids.
        """
        self.entered(ledger).refuse(notes, again=again)

    def copy_to(self, vault: Path) -> None:
        """Copy key, test patients and learned parts into the vault of the new release."""
        if not (vault / KEY).exists():
            self.key.save(vault / KEY)
        for name in (TABLE, *self.parts):
            source = self.vault / name
            if not (vault / name).exists():
                with atomic(vault / name) as part:
                    shutil.copytree(source, part) if source.is_dir() else shutil.copy(source, part)
