"""The release that new notes are added to: its vault, read and found to be whole, and what left under its key so far.

Nothing is written there: what the new release needs of it (key, vectors, neighbours, channel, crosswalk) is copied into
the new one's own vault, which stands for the next one.
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
from clinveil.releases.ledger import IN_VAULT, SAME, Earlier, Entry, Hashes, Ledger, read_entry
from clinveil.releases.ledger import NAME as LEDGER
from clinveil.releases.manifest import NAME, OLDER, SCHEMA, canonical, older, released_files
from clinveil.releases.producer import refuse_adding
from clinveil.releases.publish import EARLIER, KIND
from clinveil.releases.settings import ReleaseSettings
from clinveil.report.numerals import SMALL

_REMEDY = "name the vault folder of a finished release, OUT/vault"
# Of this call, whatever the first one was told.
_CALL = frozenset({"workers", "on", "address", "quiet", "force", "again"})
# What changes no note that is written, or only says how NEW is read; else it is as it was, unless it is given.
MAY_DIFFER: tuple[str, ...] = ("workers", "on", "address", "quiet", "force", "again", "ledger", "patients")
MAY_DIFFER += ("text", "id", "patient", "preset", "encoding", "max_note_bytes", "model")
MAY_DIFFER += ("max_names", "max_linkage", "max_stolen", "measure_words", "risk_threshold")
# Files that say what is written: they may lie elsewhere now, and must say the same.
FILES = ("phi_policy", "tagger", "keep_words", "drop_words")
TABLES = ("vectors", "neighbours", "channel")
EARLIER_SCHEMA = pa.schema([*CROSSWALK, ("run", pa.string())])


@dataclass(frozen=True)
class Known:
    """64-bit hashes of the source ids that have a released one, each in order: of notes, and of patients."""

    notes: Hashes = field(repr=False)
    patients: Hashes = field(repr=False)


@dataclass(frozen=True)
class ParentRelease:
    """A finished release, by its vault.

    Attributes:
        settings: those that it was made with. manifest: of its vault.
        left: what left under its key until then, it and what it was added to.
    """

    vault: Path
    key: Key
    settings: ReleaseSettings
    manifest: Mapping[str, Any] = field(repr=False)
    left: Entry = field(repr=False)

    @classmethod
    def read(cls, vault: Path) -> ParentRelease:
        """The release whose vault this is.

        Raises InputError for what is no vault of a release, of one that is unfinished, refused, damaged or of another
        version of clinveil.
        """
        manifest = _manifest(vault)
        refuse_adding(str(manifest.get("kind")))
        _refuse_unfinished(vault)
        settings = settings_of(manifest, vault)
        key = Key.load(vault / KEY)
        if key.commitment != manifest["key_commitment"]:
            raise _damaged(vault, "its key is not that of its manifest")
        for name, digest in manifest["vault_digests"].items():
            if fingerprint(vault / name) != digest:
                raise _damaged(vault, f"{name} is not what its manifest says")
        left = read_entry(vault / IN_VAULT)
        if left.commitment != key.commitment:
            raise _damaged(vault, f"its {IN_VAULT} is of another release")
        made = cls(vault, key, settings, manifest, left)
        if sum(batch.num_rows for batch in made.rows("crosswalk")) != manifest["notes"]["rows"]:
            raise _damaged(vault, "its crosswalk lacks notes")
        return made

    @classmethod
    def of_flags(cls, vault: Path | None, vectors: Path | None, *, before: bool) -> ParentRelease | None:
        """The release that is added to, None for one of its own; raises UsageError where flags do not belong together.

        Args:
            before: whether notes of that release were named.
        """
        if vault is None and before:
            raise UsageError("--with is of a release that is added to", hint="give --vault too, its OUT/vault")
        if vault is not None and vectors is not None:
            raise UsageError("--vectors cannot differ from the release that is added to", hint="leave it out")
        return None if vault is None else cls.read(vault)

    @property
    def run(self) -> str:
        """Its name."""
        return str(self.manifest["run"])

    @property
    def nth(self) -> int:
        """Which of the releases under its key it is, from 1 on."""
        return int((self.manifest["private"].get("adds_to") or {}).get("nth", 0)) + 1

    @property
    def places(self) -> dict[str, Path]:
        """What it lies in, by the names that messages give; nothing is written there."""
        beside = self.vault.resolve().parent
        whole_run = KIND.vault == self.vault.resolve().name and (beside / "release").exists()
        return {"the_first_release": beside} if whole_run else {"the_first_vault": self.vault}

    @property
    def origin(self) -> str:
        """Where its word vectors come from, in words."""
        said = str(self.manifest["vectors"]["from"])
        return said if said.startswith("of release") else f"of release {self.run}: {said}"

    @property
    def unknown(self) -> float:
        """Of the words of the first release under its key, the share that the channel does not know."""
        tokens, first = self.manifest["tokens"], (self.manifest["private"].get("adds_to") or {}).get("unknown")
        return float(tokens["unknown"]) / max(1, int(tokens["words"])) if first is None else float(first)

    @property
    def seal(self) -> str:
        """A hash of all of its vault that counts."""
        return str(self.manifest["self_sha256"])

    @cached_property
    def known(self) -> Known:
        """What has a released id already; 8 bytes a note and a patient."""
        notes, patients = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.uint64)]
        for batch in self.crosswalk():
            notes.append(hashes(batch.column("source_note_id").to_pylist()))
            patients.append(np.unique(hashes(batch.column("source_patient_id").to_pylist())))
        return Known(np.unique(np.concatenate(notes)), np.unique(np.concatenate(patients)))

    def rows(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table of its vault. Raises InputError where it is damaged, or not there (but for `earlier`)."""
        path, schema = self.vault / f"{name}.parquet", {"crosswalk": CROSSWALK, EARLIER: EARLIER_SCHEMA}.get(name)
        if name == EARLIER and not path.exists():
            return
        try:
            for part in sorted(path.iterdir()) if path.is_dir() else [path]:  # a folder: a release of part files
                with pq.ParquetFile(part) as file:
                    if schema is not None and file.schema_arrow.names != schema.names:
                        raise pa.ArrowInvalid
                    yield from file.iter_batches()
        except (OSError, pa.ArrowException):
            raise _damaged(self.vault, f"its {name} cannot be read") from None

    def crosswalk(self) -> Iterator[pa.RecordBatch]:
        """The crosswalk of all that left under its key until then, with the run of each row."""
        yield from self.rows(EARLIER)
        for batch in self.rows("crosswalk"):
            run = pa.array([self.run] * batch.num_rows, pa.string())
            yield pa.record_batch([*batch.columns, run], schema=EARLIER_SCHEMA)

    def settings_for(self, asked: ReleaseSettings) -> ReleaseSettings:
        """The settings of a release that adds to this one: this one's, but for those that may differ and were given.

        Raises UsageError for given ones that differ and may not, and where a file that it needs is not there.
        """
        given, mine = given_of(asked), self.settings.flat()
        differ = [name for name in given if name not in (*MAY_DIFFER, *FILES) and asked.flat()[name] != mine.get(name)]
        if differ:
            what = f"{_flags(differ)} cannot differ from the release that is added to"
            raise UsageError(what, hint=f"leave it out; these may differ: {_flags(MAY_DIFFER)}")
        taken = {name: value for name, value in given.items() if name in (*MAY_DIFFER, *FILES)}
        made = self.settings.but(**{**self._of_now(asked), **taken})
        self._refuse_files(made)
        return made

    def _of_now(self, asked: ReleaseSettings) -> dict[str, Any]:
        """What is not taken over: how the command is called, and where ledger and columns are, now that it is known."""
        notes, roles = self.manifest["notes"], self.settings.notes
        found: dict[str, Any] = {name: getattr(asked, name) for name in _CALL}
        found |= {"seed": None, "ledger": self.settings.ledger or self.vault.resolve().parent.with_name(LEDGER)}
        return found | {name: getattr(roles, name) or notes[name] for name in ("text", "id", "patient")}

    def _refuse_files(self, made: ReleaseSettings) -> None:
        """Raise UsageError for a file that is not there, InputError for one that says something else than it did."""
        flat, then = made.flat(), self.manifest["private"].get("files_sha256") or {}
        for name in (*FILES, "patients"):
            flag = _flags([name])
            if flat[name] and not Path(flat[name]).exists():
                raise UsageError(f"the release that is added to was made with {flag}", hint=f"give it again: {flag}")
            if name in FILES and (flat[name] is None) != (self.settings.flat()[name] is None):
                raise UsageError(f"{flag} cannot differ from the release that is added to", hint="leave it out")
            if name in FILES and then.get(name) not in (None, fingerprint(Path(flat[name])) if flat[name] else None):
                what = f"{flag} is not the file that the release was made with"
                raise InputError(what, where=Path(flat[name]).name, hint="give that one")

    def refuse_unledgered(self, ledger: Ledger, vault: Path) -> Entry:
        """What the ledger knows to have left under the key.

        Args:
            vault: of the release that is to be made.

        Raises:
            InputError: it does not know this release. UsageError: notes were added to this one before, elsewhere.
        """
        entry = ledger.of(self.key.commitment)
        if entry is None:
            hint = f"name its ledger with --ledger, or put {IN_VAULT} of the vault there"
            raise InputError(f"does not know release {self.run}", where=ledger.folder.name, hint=hint)
        if entry.run != self.run and entry.vault != vault.resolve():
            what = f"notes were added to release {self.run} already: release {entry.run}"
            hint = f"add to that one's vault; if it never left, put {IN_VAULT} of this vault back as {entry.file}"
            raise UsageError(what, where=ledger.folder.name, hint=hint)
        return replace(entry, notes=np.union1d(entry.notes, self.left.notes))

    def refuse_same(self, found: Hashes, *, again: bool) -> None:
        """Raise UsageError for more than a few notes that left under other ids, without `again`.

        Args:
            found: `text_hashes` of the notes to be added.
        """
        mine = np.unique(found)
        shared = Earlier(self.left, int(self.left.holds(mine).sum()), mine.size)
        if shared.share > SAME and shared.shared >= SMALL and not again:
            what = f"{shared.said} of these notes left before, in release {self.run}, under other ids"
            hint = "name the column of their ids with --id, or leave them out; --again releases them once more"
            raise UsageError(what, hint=hint)

    def lay_out(self, vault: Path) -> None:
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
    def told(self) -> dict[str, Any]:
        """What the manifest of a release that adds to this one says of it."""
        return {"run": self.run, "nth": self.nth, "vault": str(self.vault.absolute()), "unknown": self.unknown}

    def released(self) -> tuple[Path, NotesSettings] | None:
        """Its released notes, and their columns; None where they do not lie beside the vault as they were."""
        told = self.manifest["notes"]
        folder = self.vault.resolve().parent / "release"
        same = {name: digest for name, digest in released_files(folder).items() if name in self.manifest["files"]}
        if not folder.is_dir() or same != self.manifest["files"]:
            return None
        roles = {name: told[name] for name in ("text", "id", "patient")}
        return folder / told["file"], NotesSettings(**roles, preset="none")

    def previous(self) -> ParentRelease | None:
        """What it was added to itself; None for the first under its key. Raises InputError as `read` does."""
        told = self.manifest["private"].get("adds_to")
        return None if told is None else ParentRelease.read(Path(told["vault"]))


def given_of(settings: Settings) -> dict[str, Any]:
    """Flat names and values of what was given, in a file or by flags, and did not stay at its default."""
    found: dict[str, Any] = {}
    for name in settings.model_fields_set:
        value = getattr(settings, name)
        found |= given_of(value) if isinstance(value, Settings) else {name: value}
    return found


def _flags(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in sorted(names))


def _damaged(vault: Path, what: str) -> InputError:
    return InputError(f"the vault is damaged: {what}", where=vault.name, hint="take it from its backup")


def _manifest(vault: Path) -> dict[str, Any]:
    """The manifest of a vault, sealed. Raises InputError for any other folder."""
    found = read_json(vault / NAME)
    told: dict[str, Any] = found if isinstance(found, dict) else {}
    if told.get("schema") != SCHEMA or told.get("edition") != "internal" or "vault_digests" not in told:
        if (vault / KIND.vault / KIND.state).exists():
            raise InputError("is no vault of a release", where=vault.name, hint=f"name its folder {KIND.vault}")
        if read_json(vault / KIND.state) is not None and not told:
            _refuse_unfinished(vault)
        if told.get("schema") in OLDER:
            raise older(vault)
        raise InputError(f"is {_other(vault, told)}", where=vault.name, hint=_REMEDY)
    if hashlib.sha256(canonical(told).encode()).hexdigest() != told.get("self_sha256"):
        raise _damaged(vault, "its manifest is not as it was sealed")
    if told["version"] != version("clinveil"):
        what = f"is the vault of another version, {told['version']}, which may find and draw otherwise"
        raise InputError(what, where=vault.name, hint="add with that version, or release all notes anew")
    return told


def _other(vault: Path, told: Mapping[str, Any]) -> str:
    """What a folder is that is no vault of a release."""
    if (vault / "deidentify.json").exists():
        return "a vault of clinveil deidentify, not of a release"
    command = str(told.get("schema", "")).partition("/")[0].removeprefix("clinveil.")
    if command == "obfuscate":
        return "a vault of clinveil obfuscate, not of a release"
    return "no vault of a release"


def _refuse_unfinished(vault: Path) -> None:
    state = read_json(vault / KIND.state)
    status = state.get("status") if isinstance(state, dict) else None
    if status == "refused":
        what = "is the vault of a refused release, of which nothing left"
        raise InputError(what, where=vault.name, hint="mend what its gates refused, and release those notes first")
    if status != "finished":
        what, hint = "is the vault of an unfinished release", "run its command again, it goes on; then add to it"
        raise InputError(what, where=vault.name, hint=hint)


def settings_of(manifest: Mapping[str, Any], vault: Path) -> ReleaseSettings:
    """The settings that a release was made with. Raises InputError for those of another version."""
    try:
        return ReleaseSettings.model_validate(manifest["private"]["settings_in_full"])
    except (KeyError, TypeError, ValidationError):
        hint = "use the version that made it"
        raise InputError("is the vault of another version", where=vault.name, hint=hint) from None
