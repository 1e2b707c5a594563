"""The release that new notes are added to: its vault, verified, and everything released under its
key.

That vault is read-only: key, vectors, neighbours, channel and crosswalk are copied into the vault
of the new release, which can be added to in turn.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError, UsageError
from clinveil.core.keys import Key
from clinveil.core.runfolder import KEY, fingerprint
from clinveil.core.settings import NotesSettings, Settings
from clinveil.corpus.corpus import NOTE_ID, TEXT, Columns, Corpus
from clinveil.corpus.open import OpenedCorpus, open_corpus
from clinveil.corpus.screen import Screened
from clinveil.corpus.uniqueness import Hashes, hashes, joined
from clinveil.phi.treatment.passes import patients_of
from clinveil.releases.earlier.ledger import (
    IN_VAULT,
    SAME,
    Earlier,
    Entry,
    Ledger,
    read_entry,
    text_hashes,
)
from clinveil.releases.earlier.vault import (
    EARLIER_SCHEMA,
    damaged,
    read_manifest,
    refuse_unfinished,
    settings_of,
    vault_table,
)
from clinveil.releases.manifest import released_files
from clinveil.releases.outcome import EARLIER, KIND
from clinveil.releases.producer import other_kind, producers
from clinveil.releases.settings import ReleaseSettings
from clinveil.report.numerals import SMALL

# Settings of each call, independent of the first release.
_CALL = ("workers", "on", "address", "tasks", "quiet", "force", "again")
LEFT_BEFORE = "released before"
# Settings that do not affect written notes, or that describe the input; others cannot differ.
MAY_DIFFER: tuple[str, ...] = (*_CALL, "ledger", "signing_key", "patients")
MAY_DIFFER += ("text", "id", "patient", "preset", "encoding", "max_note_bytes", "model")
MAY_DIFFER += ("max_names", "max_linkage", "max_stolen", "measure_words", "risk_threshold")
# Files that determine the output: they may have moved, but must have the same content.
FILES = ("phi_policy", "tagger", "keep_words", "drop_words")
TABLES = ("vectors", "neighbours", "channel")


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

        Raises InputError if the folder is not the vault of a finished release, is damaged, or was
        made by another version of clinveil.
        """
        manifest = read_manifest(vault)
        if not producers.get(kind := str(manifest.get("kind"))).adds:
            raise other_kind("--add", [name for name, producer in producers if producer.adds], kind)
        refuse_unfinished(vault)
        settings = settings_of(manifest, vault)
        key = Key.load(vault / KEY)
        if key.commitment != manifest["key_commitment"]:
            raise damaged(vault, "the key does not match the manifest")
        for name, digest in manifest["vault_digests"].items():
            if fingerprint(vault / name) != digest:
                raise damaged(vault, f"{name} does not match the manifest")
        left = read_entry(vault / IN_VAULT)
        if left.commitment != key.commitment:
            raise damaged(vault, f"{IN_VAULT} belongs to another release")
        parent = cls(vault, key, settings, manifest, left)
        if (
            sum(batch.num_rows for batch in vault_table(vault, "crosswalk"))
            != manifest["notes"]["rows"]
        ):
            raise damaged(vault, "notes are missing from the crosswalk")
        return parent

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
        tokens = self.manifest["tokens"]
        first = (self.manifest["private"].get("adds_to") or {}).get("unknown")
        return (
            float(tokens["unknown"]) / max(1, int(tokens["words"]))
            if first is None
            else float(first)
        )

    @property
    def seal(self) -> str:
        """Hash of its manifest, which covers the vault."""
        return str(self.manifest["self_sha256"])

    @cached_property
    def known(self) -> tuple[Hashes, Hashes]:
        """Sorted hashes of source ids that have a released id, of notes and of patients; 8 bytes
        each.
        """
        notes = list[Hashes]()
        patients = list[Hashes]()
        for batch in self.crosswalk():
            notes.append(hashes(batch.column("source_note_id").to_pylist()))
            patients.append(np.unique(hashes(batch.column("source_patient_id").to_pylist())))
        return np.unique(joined(notes)), np.unique(joined(patients))

    def crosswalk(self) -> Iterator[pa.RecordBatch]:
        """Yield the crosswalk of everything released under its key, with the run of each row."""
        if (self.vault / f"{EARLIER}.parquet").exists():
            yield from vault_table(self.vault, EARLIER)
        for batch in vault_table(self.vault, "crosswalk"):
            run = pa.array([self.run] * batch.num_rows, pa.string())
            yield pa.record_batch([*batch.columns, run], schema=EARLIER_SCHEMA)

    def settings_for(self, asked: ReleaseSettings) -> ReleaseSettings:
        """Return the settings of a release that adds to this one: its own, except given ones that
        may differ.

        Raises UsageError for given settings that must not differ, and for missing files.
        """
        given = given_of(asked)
        mine = self.settings.flat()
        differ = [
            name
            for name in given
            if name not in (*MAY_DIFFER, *FILES) and asked.flat()[name] != mine.get(name)
        ]
        if differ:
            what = f"{_flags(differ)} cannot differ from the release that is added to"
            raise UsageError(what, hint=f"omit it; these may differ: {_flags(MAY_DIFFER)}")
        taken = {name: value for name, value in given.items() if name in (*MAY_DIFFER, *FILES)}
        # Not inherited: settings of the call and columns.
        notes = self.manifest["notes"]
        roles = self.settings.notes
        values: dict[str, Any] = {
            name: value for name, value in asked.flat().items() if name in _CALL
        }
        values["seed"] = None
        values |= {name: getattr(roles, name) or notes[name] for name in ("text", "id", "patient")}
        settings = self.settings.but(**{**values, **taken})
        self._refuse_files(settings)
        return settings

    def _refuse_files(self, settings: ReleaseSettings) -> None:
        """Raise UsageError for a missing file, InputError for one with other content than
        before.
        """
        flat = settings.flat()
        then = self.manifest["private"].get("files_sha256") or {}
        for name in (*FILES, "patients"):
            flag = _flags([name])
            if flat[name] and not Path(flat[name]).exists():
                raise UsageError(
                    f"the release that is added to was made with {flag}", hint=f"pass {flag} again"
                )
            if name in FILES and (flat[name] is None) != (self.settings.flat()[name] is None):
                raise UsageError(
                    f"{flag} cannot differ from the release that is added to", hint=f"omit {flag}"
                )
            if name in FILES and then.get(name) not in (
                None,
                fingerprint(Path(flat[name])) if flat[name] else None,
            ):
                what = f"{flag} is not the file that the release was made with"
                raise InputError(what, where=Path(flat[name]).name, hint="pass the original file")

    def refuse_unledgered(self, ledger: Ledger, vault: Path) -> Entry:
        """Return the ledger entry of everything released under the key.

        Args:
            vault: vault of the new release.

        Raises:
            InputError: the ledger does not contain this release. UsageError: notes were added to it
                already.
        """
        entry = ledger.of(self.key.commitment)
        if entry is None:
            hint = f"pass its ledger with --ledger, or copy {IN_VAULT} of the vault there"
            raise InputError(
                f"does not contain release {self.run}", where=ledger.folder.name, hint=hint
            )
        if entry.run != self.run and entry.vault != vault.resolve():
            what = f"notes were added to release {self.run} already: release {entry.run}"
            hint = (
                f"pass the vault of that release; if it never left, copy {IN_VAULT} of this vault"
                f" to {entry.file}"
            )
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
            what = (
                f"{shared.description} of these notes were released before under other ids, in"
                f" release {self.run}"
            )
            hint = "pass --id COLUMN with their ids, or remove them; --again releases them again"
            raise UsageError(what, hint=hint)

    def copy_to(self, vault: Path) -> None:
        """Copy key, vectors, neighbours, channel and crosswalk into the vault of a release that
        adds to this one.
        """
        if not (vault / KEY).exists():
            self.key.save(vault / KEY)
        for name in TABLES:
            if not (vault / name).exists():
                with atomic(vault / name) as part:
                    shutil.copytree(self.vault / name, part)
        with (
            atomic(vault / f"{EARLIER}.parquet", force=True) as part,
            pq.ParquetWriter(part, EARLIER_SCHEMA) as writer,
        ):
            for batch in self.crosswalk():
                writer.write_batch(batch)

    def released(self, keep: Sequence[str]) -> list[Corpus]:
        """Return the released notes of all releases under its key, first one first.

        Empty if one of them is no longer next to its vault, unchanged.
        """
        notes = self.manifest["notes"]
        folder = self.vault.resolve().parent / "release"
        same = {
            name: digest
            for name, digest in released_files(folder).items()
            if name in self.manifest["files"]
        }
        if not folder.is_dir() or same != self.manifest["files"]:
            return []
        before = list[Corpus]()
        parent = self.manifest["private"].get("adds_to")
        if parent is not None:
            with suppress(InputError):
                before = ParentRelease.read(Path(parent["vault"])).released(keep)
            if not before:
                return []
        roles = NotesSettings(
            **{name: notes[name] for name in ("text", "id", "patient")}, preset="none"
        )
        return [*before, open_corpus(folder / notes["file"], roles, keep=tuple(keep))]


@dataclass
class NewNotes:
    """The notes of a source that are not part of a series of releases.

    Attributes:
        left_out, changed: notes of the last pass that were released before with the same and with
            another text.

    Raises InputError if only one of source and release has patient ids.
    """

    source: OpenedCorpus
    base: ParentRelease
    left_out: int = 0
    changed: int = 0
    _patients: list[Hashes] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.columns.patient_id is None) != (self.base.manifest["notes"]["patient"] is None):
            some = "has patient ids"
            none = "has none"
            mine, theirs = (none, some) if self.columns.patient_id is None else (some, none)
            what = f"the file {mine}, the release that it is added to {theirs}"
            raise InputError(
                what, where=self.source.name, hint="pass --patient COLUMN to choose the patient id"
            )

    @property
    def columns(self) -> Columns:
        """Column roles of the source."""
        return self.source.columns

    @property
    def suffix(self) -> str:
        """File suffix of the source."""
        return self.source.suffix

    @property
    def skipped(self) -> Counter[str]:
        """Rows left out in the last pass, by reason."""
        return self.source.skipped + Counter({LEFT_BEFORE: self.left_out})

    @property
    def seen(self) -> Screened:
        """Rows of the last pass that the detectors cannot read."""
        return self.source.seen

    def patients(self) -> tuple[int, int]:
        """Return the numbers of patients with and without released notes in the last pass."""
        met = np.unique(joined(self._patients))
        known = int(np.isin(met, self.base.known[1], assume_unique=True).sum())
        return known, met.size - known

    def summary(self) -> Iterator[str]:
        """Yield the counts of the last pass as lines of text."""
        known, new = self.patients()
        yield (
            f"adding to release {self.base.run}: {self.left_out:,} notes were released before and"
            " are left out"
        )
        yield f"  {self.changed:,} notes were released with another text and get new ids"
        yield (
            f"  {known:,} patients have released notes and keep ids, dates and surrogates; {new:,}"
            " patients are new"
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all new notes in source order. Raises InputError if there are none."""
        self.left_out = 0
        self.changed = 0
        rows = 0
        self._patients.clear()
        for batch in self.source.batches():
            new = self._new(batch)
            if new.num_rows:
                self._patients.append(np.unique(hashes(patients_of(new))))
                rows += new.num_rows
                yield new
        if not rows and self.left_out:
            what = f"all {self.left_out} notes were released before, in release {self.base.run}"
            raise InputError(what, where=self.source.name, hint="pass a file with new notes")

    def _new(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids = batch.column(NOTE_ID).to_pylist()
        known = np.flatnonzero(np.isin(hashes(ids), self.base.known[0]))
        if not known.size:
            return batch
        stays = np.ones(len(ids), dtype=np.bool_)
        texts = batch.column(TEXT).take(pa.array(known)).to_pylist()
        for row, text in zip(known.tolist(), texts, strict=True):
            letters = text_hashes([text])
            if not letters.size or self.base.left.holds(letters)[0]:
                stays[row] = False
            else:
                ids[row] = (
                    f"{ids[row]}#{self.base.key.digest('changed note', ids[row], str(letters[0])):016x}"
                )
        self.left_out += int((~stays).sum())
        self.changed += int(stays[known].sum())
        place = batch.schema.get_field_index(NOTE_ID)
        renamed = batch.set_column(
            place, batch.schema.field(place), pa.array(ids, batch.schema.field(place).type)
        )
        return renamed.filter(pa.array(stays))


def given_of(settings: Settings) -> dict[str, Any]:
    """Return flat names and values of explicitly given settings."""
    given: dict[str, Any] = {}
    for name in settings.model_fields_set:
        value = getattr(settings, name)
        given |= given_of(value) if isinstance(value, Settings) else {name: value}
    return given


def _flags(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in sorted(names))
