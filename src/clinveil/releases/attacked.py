"""Build the input of attacks from a release, its vault and its source notes.

The notes that entered the channel are recomputed in memory from the key. Attackers that train
vectors write words to the vault only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clinveil.attacks import Context
from clinveil.channel import load_channel
from clinveil.core import InputError, Key, NotesSettings, Say, UsageError, read_json
from clinveil.corpus import (
    TABLE,
    Corpus,
    HeldOutPatients,
    MemoryCorpus,
    Patient,
    open_corpus,
    read_patients,
)
from clinveil.phi import NoteDeidentifier, deidentify_corpus
from clinveil.releases.crosswalk import id_maps
from clinveil.releases.earlier.vault import damaged, read_manifest, settings_of, vault_table
from clinveil.releases.manifest import NAME
from clinveil.releases.settings import ReleaseSettings
from clinveil.scale import processes
from clinveil.vectors import count_words


def attacked_release(
    released: Path,
    vault: Path,
    original: Path,
    *,
    others: Path | None = None,
    patients: Path | None = None,
    workers: int = 2,
    say: Say = lambda line: None,
) -> Context:
    """Return the input of attacks on words.

    Raises InputError for arguments of several runs, UsageError if the known patients are missing.

    Args:
        released: folder of a release, or its notes. original: the source notes.
        others: notes of another source. patients: those that the release was made with.
    """
    manifest = read_manifest(vault)
    settings = settings_of(manifest, vault)
    notes = _released_notes(released, vault, manifest, next(iter(settings.label), ""))
    known = _known_patients(patients, settings)
    corpus: Corpus = open_corpus(original, settings.notes, keep=settings.keep)
    held_out = _held_out(vault)
    entered = corpus
    if settings.phi:
        key = Key.load(vault / "key.bin")
        entered = _treated(corpus, settings, key, known, held_out, workers)
    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        counts = count_words(held_out.without(entered), Path(scratch))
    source_notes, source_patients = id_maps(vault_table(vault, "crosswalk"))
    return Context(
        channel=load_channel(vault / "channel", settings.channel.policy),
        counts=counts,
        original=corpus,
        released=notes,
        entered=entered,
        others=None if others is None else open_corpus(others, NotesSettings()),
        notes=source_notes,
        patients=source_patients,
        known=known or None,
        scratch=vault,
        workers=workers,
        say=say,
    )


def _held_out(vault: Path) -> HeldOutPatients:
    """Return the test patients of the run. Raises InputError if they are missing."""
    held_out = HeldOutPatients.read(vault)
    if held_out is None:
        raise damaged(vault, f"{TABLE} is missing")
    return held_out


def _treated(
    corpus: Corpus,
    settings: ReleaseSettings,
    key: Key,
    known: Mapping[str, Patient],
    held_out: HeldOutPatients,
    workers: int,
) -> MemoryCorpus:
    """Return the notes as they entered the channel."""
    deidentifier = NoteDeidentifier.of(settings.identifiers, key, patients=known)
    executor = processes(workers)
    results = deidentify_corpus(corpus, deidentifier, executor, apart=held_out.patients)
    return MemoryCorpus(tuple(result.batch for result in results))


def _known_patients(patients: Path | None, settings: ReleaseSettings) -> Mapping[str, Patient]:
    """Return the known patients by id. Raises UsageError if those of the release are missing."""
    if patients is not None:
        return read_patients(patients)
    if settings.phi and settings.identifiers.patients is not None:
        raise UsageError(
            "the release was made with known patients", hint="pass --patients FEED again"
        )
    return {}


def _released_notes(released: Path, vault: Path, manifest: Mapping[str, Any], label: str) -> Corpus:
    """Open the released notes with a label column; "" for none.

    Raises InputError if the vault has no channel or is that of another release.
    """
    if not (vault / "channel").exists():
        what = f"is the vault of a {manifest['kind']} release, which has no channel"
        raise InputError(what, where=vault.name, hint="pass the vault of an obfuscated release")
    public = read_json((released if released.is_dir() else released.parent) / NAME)
    key = manifest["key_commitment"]
    if isinstance(public, dict) and public.get("key_commitment", key) != key:
        raise InputError(
            "is the vault of another release",
            where="--vault",
            hint="pass OUT/vault of this release",
        )
    notes = manifest["notes"]
    roles = NotesSettings(
        text=notes["text"], id=notes["id"], patient=notes["patient"], preset="none"
    )
    file = released / notes["file"] if (released / NAME).is_file() else released
    return open_corpus(file, roles, keep=(label,) if label else ())
