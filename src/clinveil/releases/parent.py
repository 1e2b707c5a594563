"""The release that new notes are added to: its vault, verified, and everything released under its key.

That vault is read-only: key, vectors, neighbours, channel and crosswalk are copied into the vault of the new release,
which can be added to in turn.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import read_json
from clinveil.core.keys import Key
from clinveil.core.runfolder import KEY, fingerprint
from clinveil.core.settings import NotesSettings, Settings
from clinveil.corpus.uniqueness import hashes
from clinveil.releases.crosswalk import CROSSWALK
from clinveil.releases.finish import EARLIER, KIND
from clinveil.releases.ledger import IN_VAULT, SAME, Earlier, Entry, Hashes, Ledger, read_entry
from clinveil.releases.ledger import NAME as LEDGER
from clinveil.releases.manifest import NAME, OLDER, SCHEMA, canonical, older, released_files
from clinveil.releases.producer import refuse_adding
from clinveil.releases.settings import ReleaseSettings
from clinveil.report.numerals import SMALL

_HINT = "pass the vault folder of a finished release, OUT/vault"
# Settings of each call, independent of the first release.
_CALL = frozenset({"workers", "on", "address", "quiet", "force", "again"})
# Settings that do not affect written notes, or that describe the input; others cannot differ.
MAY_DIFFER: tuple[str, ...] = ("workers", "on", "address", "quiet", "force", "again", "ledger", "patients")
MAY_DIFFER += ("text", "id", "patient", "preset", "encoding", "max_note_bytes", "model")
MAY_DIFFER += ("max_names", "max_linkage", "max_stolen", "measure_words", "risk_threshold")
# Files that determine the output: they may have moved, but must have the same content.
FILES = ("phi_policy", "tagger", "keep_words", "drop_words")
TABLES = ("vectors", "neighbours", "channel")
EARLIER_SCHEMA = pa.schema([*CROSSWALK, ("run", pa.string())])


@dataclass(frozen=True)
class Known:
    """Sorted 64-bit hashes of the source ids of released notes and patients."""

    notes: Hashes = field(repr=False)
    patients: Hashes = field(repr=False)


@dataclass(frozen=True)
class ParentRelease:
    """A finished release, read from its vault.

    Attributes:
        settings: settings of the release. manifest: internal manifest.
        left: ledger entry of everything released under its key until then.
    """

    vault: Path
    key: Key
    settings: ReleaseSettings
    manifest: Mapping[str, Any] = field(repr=False)
    left: Entry = field(repr=False)

    @classmethod
    def read(cls, vault: Path) -> ParentRelease:
        """Read the release of a vault.

        Raises InputError if the folder is not the vault of a finished release, is damaged, or was made by another
        version of clinveil.
        """
        manifest = _manifest(vault)
        refuse_adding(str(manifest.get("kind")))
        _refuse_unfinished(vault)
        settings = settings_of(manifest, vault)
        key = Key.load(vault / KEY)
        if key.commitment != manifest["key_commitment"]:
            raise _damaged(vault, "the key does not match the manifest")
        for name, digest in manifest["vault_digests"].items():
            if fingerprint(vault / name) != digest:
                raise _damaged(vault, f"{name} does not match the manifest")
        left = read_entry(vault / IN_VAULT)
        if left.commitment != key.commitment:
            raise _damaged(vault, f"{IN_VAULT} belongs to another release")
        parent = cls(vault, key, settings, manifest, left)
        if sum(batch.num_rows for batch in parent.rows("crosswalk")) != manifest["notes"]["rows"]:
            raise _damaged(vault, "notes are missing from the crosswalk")
        return parent

    @classmethod
    def of_flags(cls, vault: Path | None, vectors: Path | None, *, before: bool) -> ParentRelease | None:
        """Return the release to add to, or None; raise UsageError for contradictory flags.

        Args:
            before: whether source notes of that release were passed (`--with`).
        """
        if vault is None and before:
            raise UsageError("--with requires --vault", hint="pass --vault OUT/vault of the release to add to")
        if vault is not None and vectors is not None:
            raise UsageError("--vectors cannot differ from the release that is added to", hint="omit --vectors")
        return None if vault is None else cls.read(vault)

    @property
    def run(self) -> str:
        """Name of the run."""
        return str(self.manifest["run"])

    @property
    def nth(self) -> int:
        """Number of this release under its key, from 1 on."""
        return int((self.manifest["private"].get("adds_to") or {}).get("nth", 0)) + 1

    @property
    def places(self) -> dict[str, Path]:
        """Its folder, by the name used in messages; nothing is written there."""
        parent = self.vault.resolve().parent
        in_run = KIND.vault == self.vault.resolve().name and (parent / "release").exists()
        return {"the_first_release": parent} if in_run else {"the_first_vault": self.vault}

    @property
    def origin(self) -> str:
        """Origin of its word vectors, as text."""
        origin = str(self.manifest["vectors"]["from"])
        return origin if origin.startswith("of release") else f"of release {self.run}: {origin}"

    @property
    def unknown(self) -> float:
        """Share of unknown words in the first release under its key."""
        tokens, first = self.manifest["tokens"], (self.manifest["private"].get("adds_to") or {}).get("unknown")
        return float(tokens["unknown"]) / max(1, int(tokens["words"])) if first is None else float(first)

    @property
    def seal(self) -> str:
        """Hash of its manifest, which covers the vault."""
        return str(self.manifest["self_sha256"])

    @cached_property
    def known(self) -> Known:
        """Source ids that have a released id; 8 bytes per note and patient."""
        notes, patients = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.uint64)]
        for batch in self.crosswalk():
            notes.append(hashes(batch.column("source_note_id").to_pylist()))
            patients.append(np.unique(hashes(batch.column("source_patient_id").to_pylist())))
        return Known(np.unique(np.concatenate(notes)), np.unique(np.concatenate(patients)))

    def rows(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table of the vault. Raises InputError if it is damaged or missing (except `earlier`)."""
        path, schema = self.vault / f"{name}.parquet", {"crosswalk": CROSSWALK, EARLIER: EARLIER_SCHEMA}.get(name)
        if name == EARLIER and not path.exists():
            return
        try:
            for part in sorted(path.iterdir()) if path.is_dir() else [path]:  # a folder for releases of part files
                with pq.ParquetFile(part) as file:
                    if schema is not None and file.schema_arrow.names != schema.names:
                        raise pa.ArrowInvalid
                    yield from file.iter_batches()
        except (OSError, pa.ArrowException):
            raise _damaged(self.vault, f"{name} cannot be read") from None

    def crosswalk(self) -> Iterator[pa.RecordBatch]:
        """Yield the crosswalk of everything released under its key, with the run of each row."""
        yield from self.rows(EARLIER)
        for batch in self.rows("crosswalk"):
            run = pa.array([self.run] * batch.num_rows, pa.string())
            yield pa.record_batch([*batch.columns, run], schema=EARLIER_SCHEMA)

    def settings_for(self, asked: ReleaseSettings) -> ReleaseSettings:
        """Return the settings of a release that adds to this one: its own, except given ones that may differ.

        Raises UsageError for given settings that must not differ, and for missing files.
        """
        given, mine = given_of(asked), self.settings.flat()
        differ = [name for name in given if name not in (*MAY_DIFFER, *FILES) and asked.flat()[name] != mine.get(name)]
        if differ:
            what = f"{_flags(differ)} cannot differ from the release that is added to"
            raise UsageError(what, hint=f"omit it; these may differ: {_flags(MAY_DIFFER)}")
        taken = {name: value for name, value in given.items() if name in (*MAY_DIFFER, *FILES)}
        settings = self.settings.but(**{**self._of_call(asked), **taken})
        self._refuse_files(settings)
        return settings

    def _of_call(self, asked: ReleaseSettings) -> dict[str, Any]:
        """Return the settings that are not inherited: of the call, ledger and columns."""
        notes, roles = self.manifest["notes"], self.settings.notes
        values: dict[str, Any] = {name: getattr(asked, name) for name in _CALL}
        values |= {"seed": None, "ledger": self.settings.ledger or self.vault.resolve().parent.with_name(LEDGER)}
        return values | {name: getattr(roles, name) or notes[name] for name in ("text", "id", "patient")}

    def _refuse_files(self, settings: ReleaseSettings) -> None:
        """Raise UsageError for a missing file, InputError for one with other content than before."""
        flat, then = settings.flat(), self.manifest["private"].get("files_sha256") or {}
        for name in (*FILES, "patients"):
            flag = _flags([name])
            if flat[name] and not Path(flat[name]).exists():
                raise UsageError(f"the release that is added to was made with {flag}", hint=f"pass {flag} again")
            if name in FILES and (flat[name] is None) != (self.settings.flat()[name] is None):
                raise UsageError(f"{flag} cannot differ from the release that is added to", hint=f"omit {flag}")
            if name in FILES and then.get(name) not in (None, fingerprint(Path(flat[name])) if flat[name] else None):
                what = f"{flag} is not the file that the release was made with"
                raise InputError(what, where=Path(flat[name]).name, hint="pass the original file")

    def refuse_unledgered(self, ledger: Ledger, vault: Path) -> Entry:
        """Return the ledger entry of everything released under the key.

        Args:
            vault: vault of the new release.

        Raises:
            InputError: the ledger does not contain this release. UsageError: notes were added to it already.
        """
        entry = ledger.of(self.key.commitment)
        if entry is None:
            hint = f"pass its ledger with --ledger, or copy {IN_VAULT} of the vault there"
            raise InputError(f"does not contain release {self.run}", where=ledger.folder.name, hint=hint)
        if entry.run != self.run and entry.vault != vault.resolve():
            what = f"notes were added to release {self.run} already: release {entry.run}"
            hint = f"pass the vault of that release; if it never left, copy {IN_VAULT} of this vault to {entry.file}"
            raise UsageError(what, where=ledger.folder.name, hint=hint)
        return replace(entry, notes=np.union1d(entry.notes, self.left.notes))

    def refuse_same(self, found: Hashes, *, again: bool) -> None:
        """Raise UsageError if many notes were released under other ids, unless `again`.

        Args:
            found: `text_hashes` of the notes to add.
        """
        mine = np.unique(found)
        shared = Earlier(self.left, int(self.left.holds(mine).sum()), mine.size)
        if shared.share > SAME and shared.shared >= SMALL and not again:
            what = f"{shared.description} of these notes were released before under other ids, in release {self.run}"
            hint = "pass --id COLUMN with their ids, or remove them; --again releases them again"
            raise UsageError(what, hint=hint)

    def copy_to(self, vault: Path) -> None:
        """Copy key, vectors, neighbours, channel and crosswalk into the vault of a release that adds to this one."""
        if not (vault / KEY).exists():
            self.key.save(vault / KEY)
        for name in TABLES:
            if not (vault / name).exists():
                with atomic(vault / name) as part:
                    shutil.copytree(self.vault / name, part)
        with atomic(vault / f"{EARLIER}.parquet", force=True) as part, pq.ParquetWriter(part, EARLIER_SCHEMA) as writer:
            for batch in self.crosswalk():
                writer.write_batch(batch)

    @property
    def manifest_entry(self) -> dict[str, Any]:
        """Its entry in the manifest of a release that adds to it."""
        return {"run": self.run, "nth": self.nth, "vault": str(self.vault.absolute()), "unknown": self.unknown}

    def released(self) -> tuple[Path, NotesSettings] | None:
        """Return its released notes and their columns; None if they are not next to the vault, unchanged."""
        notes = self.manifest["notes"]
        folder = self.vault.resolve().parent / "release"
        same = {name: digest for name, digest in released_files(folder).items() if name in self.manifest["files"]}
        if not folder.is_dir() or same != self.manifest["files"]:
            return None
        roles = {name: notes[name] for name in ("text", "id", "patient")}
        return folder / notes["file"], NotesSettings(**roles, preset="none")

    def previous(self) -> ParentRelease | None:
        """Return its own parent; None for the first under its key. Raises InputError like `read`."""
        parent = self.manifest["private"].get("adds_to")
        return None if parent is None else ParentRelease.read(Path(parent["vault"]))


def given_of(settings: Settings) -> dict[str, Any]:
    """Return flat names and values of explicitly given settings."""
    given: dict[str, Any] = {}
    for name in settings.model_fields_set:
        value = getattr(settings, name)
        given |= given_of(value) if isinstance(value, Settings) else {name: value}
    return given


def _flags(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in sorted(names))


def _damaged(vault: Path, what: str) -> InputError:
    return InputError(f"the vault is damaged: {what}", where=vault.name, hint="restore it from a backup")


def _manifest(vault: Path) -> dict[str, Any]:
    """Return the verified manifest of a vault. Raises InputError for any other folder."""
    document = read_json(vault / NAME)
    manifest: dict[str, Any] = document if isinstance(document, dict) else {}
    if manifest.get("schema") != SCHEMA or manifest.get("edition") != "internal" or "vault_digests" not in manifest:
        if (vault / KIND.vault / KIND.state).exists():
            raise InputError("is not the vault of a release", where=vault.name, hint=f"pass its folder {KIND.vault}")
        if read_json(vault / KIND.state) is not None and not manifest:
            _refuse_unfinished(vault)
        if manifest.get("schema") in OLDER:
            raise older(vault)
        raise InputError(f"is {_other(vault)}", where=vault.name, hint=_HINT)
    if hashlib.sha256(canonical(manifest).encode()).hexdigest() != manifest.get("self_sha256"):
        raise _damaged(vault, "the manifest was changed")
    if manifest["version"] != version("clinveil"):
        what = f"was made by clinveil {manifest['version']}, whose results may differ"
        raise InputError(what, where=vault.name, hint="use that version, or release all notes again")
    return manifest


def _other(vault: Path) -> str:
    """Describe a folder that is not the vault of a release."""
    if (vault / "deidentify.json").exists():
        return "a vault of clinveil deidentify, not of a release"
    return "not the vault of a release"


def _refuse_unfinished(vault: Path) -> None:
    state = read_json(vault / KIND.state)
    status = state.get("status") if isinstance(state, dict) else None
    if status == "refused":
        what = "is the vault of a refused release"
        raise InputError(what, where=vault.name, hint="correct what its gates refused and release those notes first")
    if status != "finished":
        what, hint = "is the vault of an unfinished release", "run its command again to finish it, then add to it"
        raise InputError(what, where=vault.name, hint=hint)


def settings_of(manifest: Mapping[str, Any], vault: Path) -> ReleaseSettings:
    """Return the settings of a release. Raises InputError for settings of another version."""
    try:
        return ReleaseSettings.model_validate(manifest["private"]["settings_in_full"])
    except (KeyError, TypeError, ValidationError):
        hint = "use the version that made it"
        raise InputError("was made by another version of clinveil", where=vault.name, hint=hint) from None
