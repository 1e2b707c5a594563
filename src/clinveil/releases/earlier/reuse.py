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

from clinveil.core import KEY, InputError, Key, Settings, UsageError, atomic, fingerprint, flag_name
from clinveil.corpus import TABLE
from clinveil.releases.earlier.ledger import IN_VAULT, Entry, Ledger, NoteHashes, read_entry
from clinveil.releases.earlier.vault import (
    damaged,
    read_manifest,
    refuse_unfinished,
    settings_of,
    vault_table,
)
from clinveil.releases.outcome import KIND
from clinveil.releases.producer import OF_KINDS, TABLES, producers
from clinveil.releases.settings import ReleaseSettings

LEARNED = ("vectors", "neighbours", "channel", "model")
"""What a run learned, as far as its kind has it."""
FILES = ("phi_policy", "tagger", "keep_words", "drop_words")
"""Settings with files that determine the output: they may have moved, with the same content."""
MAY_DIFFER = frozenset(
    {
        "patients",
        "staff",
        "decisions",
        "max_residues",
        "allow_small",
        "lm.device",
        "synthetic.count",
        "synthetic.temperature",
        "synthetic.longest",
        "synthetic.batch",
        "synthetic.tags",
        "synthetic.exact",
        "synthetic.threads",
        "synthetic.span",
    }
)
"""Settings in the groups of reused parts that do not determine these parts."""


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
        given = _given(asked)
        kind = self.settings.kind
        if asked.seed is not None:
            raise UsageError("--seed and --reuse exclude each other", hint="omit one of them")
        if given.get("kind", kind) != kind:
            raise UsageError(
                f"--reuse: the vault is that of a release --as {kind}",
                hint=f"pass --as {kind}, or another vault",
            )
        if given.get("min_patients") == "auto":  # the floor of the reused parts is a number
            del given["min_patients"]
        mine = _named(self.settings)
        fixed = _fixed(kind, mine)
        differ = [name for name in fixed & given.keys() if given[name] != mine[name]]
        if changed := sorted(set(differ) - {*FILES}):
            flags = ", ".join(_flag(name) for name in changed)
            raise UsageError(
                f"{flags} cannot differ from the run of --reuse",
                hint="omit it, or release without --reuse (--again) under a new key",
            )
        fields = ReleaseSettings.model_fields
        values = {name: mine[name] for name in fixed - {*differ} if "." not in name}
        tables = {
            table: getattr(asked, table).model_copy(update=_within(table, fixed, mine))
            for table in TABLES
            if table in fields
        }
        settings = asked.but(**{**values, **tables})
        self._refuse_files(settings)
        return settings

    def _refuse_files(self, settings: ReleaseSettings) -> None:
        """Raise UsageError for a missing file, InputError for one with other content than
        before.
        """
        then = self.manifest["private"].get("files_sha256") or {}
        now = _named(settings)
        before = _named(self.settings)
        for name in FILES:
            flag = _flag(name)
            if (now[name] is None) != (before[name] is None):
                raise UsageError(
                    f"{flag} cannot differ from the run of --reuse", hint=f"omit {flag}"
                )
            if now[name] is None or name not in then:
                continue
            if not now[name].exists():
                raise UsageError(
                    f"the run of --reuse was made with {flag}", hint=f"pass {flag} again"
                )
            if fingerprint(now[name]) != then[name]:
                what = f"{flag} is not the file of the run that is reused"
                raise InputError(what, where=now[name].name, hint="pass the original file")

    def entered(self, ledger: Ledger) -> Entry:
        """Return the ledger entry of everything released under the key.

        Raises InputError if the ledger does not contain this release.
        """
        entry = ledger.of(self.key.commitment)
        if entry is None or not entry.covers(self.entry):
            hint = f"pass its ledger with --ledger, or copy {IN_VAULT} of the vault there"
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


def _fixed(kind: str, names: Mapping[str, Any]) -> frozenset[str]:
    """Return the settings that belong to the parts that a kind reuses."""
    uses = producers.get(kind).uses
    groups = [name for name in OF_KINDS if name in uses and name not in TABLES]
    fixed = {"kind", *(uses & {"phi", "min_patients"})}
    for group in groups:
        settings = ReleaseSettings.model_fields[group].annotation
        assert isinstance(settings, type) and issubclass(settings, Settings)
        fixed |= settings.flags().keys()
    if "lm" in uses:
        fixed |= {name for name in names if name.startswith("lm.")}
    if "synthetic" in uses:
        fixed |= {name for name in names if name.startswith("synthetic.")}
    return frozenset(fixed - MAY_DIFFER)


def _named(settings: Settings, prefix: str = "") -> dict[str, Any]:
    """Return name -> value of all settings; those of tables with the name of the table."""
    named = dict[str, Any]()
    for name, value in settings.named_values():
        if isinstance(value, Settings):
            named |= _named(value, f"{name}.")
        else:
            named[f"{prefix}{name}"] = value
    return named


def _given(settings: Settings, prefix: str = "") -> dict[str, Any]:
    """Return name -> value of explicitly given settings, named as by `_named`."""
    given = dict[str, Any]()
    for name in settings.model_fields_set:
        value = getattr(settings, name)
        if isinstance(value, Settings):
            given |= _given(value, f"{name}." if name in TABLES else "")
        else:
            given[f"{prefix}{name}"] = value
    return given


def _within(table: str, fixed: frozenset[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fixed settings of a table by their names in it."""
    start = f"{table}."
    return {name.removeprefix(start): values[name] for name in fixed if name.startswith(start)}


def _flag(name: str) -> str:
    return f"--set {name}" if "." in name else flag_name(name)
