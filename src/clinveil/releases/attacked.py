"""Build the input of attacks from a release, its vault and its source notes.

The notes that entered the channel are recomputed in memory from the key. Attackers that train vectors write words to
the vault only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from clinveil.attacks.attack import Context
from clinveil.channel.files import load_channel
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import read_json
from clinveil.core.keys import Key
from clinveil.core.settings import NotesSettings
from clinveil.core.types import Say
from clinveil.corpus.corpus import Corpus, MemoryCorpus
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import Patient, read_patients
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.passes import deidentify_corpus
from clinveil.releases.crosswalk import id_maps
from clinveil.releases.earlier.parent import NewNotes, ParentRelease
from clinveil.releases.earlier.vault import settings_of, vault_table
from clinveil.releases.manifest import NAME, OLDER, SCHEMA, older
from clinveil.releases.settings import ReleaseSettings
from clinveil.scale import processes
from clinveil.vectors.count import count_words

_HINT = "pass the vault folder of a release, OUT/vault"


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

    Args:
        released: folder of a release, or its notes. vault: of the same run. original: the source notes.
        others: notes of another source. patients: known patients, if the release was made with them.

    Raises:
        InputError: the arguments do not belong together. UsageError: the known patients are missing.
    """
    manifest = read_json(vault / NAME)
    settings = _settings(manifest, vault)
    file, roles = _notes(manifest, vault)
    notes = released / file if (released / NAME).is_file() else released
    _refuse_another(released, manifest)
    known = _known(patients, settings)
    source = open_corpus(original, settings.notes, keep=settings.keep)
    added_to = manifest["private"].get("adds_to")
    corpus: Corpus = NewNotes(source, ParentRelease.read(Path(added_to["vault"]))) if added_to else source
    entered = _entered(corpus, Key.load(vault / "key.bin"), settings, known, workers) if settings.phi else corpus
    with tempfile.TemporaryDirectory(prefix="clinveil-counts") as scratch:
        counts = count_words(entered, Path(scratch))
    walk, ids = id_maps(vault_table(vault, "crosswalk"))
    return Context(
        channel=load_channel(vault / "channel", settings.channel.policy),
        counts=counts,
        original=corpus,
        released=open_corpus(notes, roles),
        entered=entered,
        others=None if others is None else open_corpus(others, NotesSettings()),
        alignment=lambda: vault_table(vault, "alignment"),
        notes=walk,
        patients=ids,
        known=known or None,
        scratch=vault,
        workers=workers,
        say=say,
    )


def _settings(manifest: Any, vault: Path) -> ReleaseSettings:
    if isinstance(manifest, dict) and manifest.get("schema") == SCHEMA and not (vault / "channel").exists():
        hint = "pass the vault of an obfuscated or coded release"
        raise InputError(
            f"is the vault of a {manifest.get('kind')} release, which has no channel", where=vault.name, hint=hint
        )
    if isinstance(manifest, dict) and manifest.get("schema") in OLDER:
        raise older(vault)
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise InputError("is not the vault of a release", where=vault.name, hint=_HINT)
    return settings_of(manifest, vault)


def _notes(manifest: dict[str, Any], vault: Path) -> tuple[str, NotesSettings]:
    """Return file and columns of the released notes."""
    try:
        notes = manifest["notes"]
        roles = NotesSettings(text=notes["text"], id=notes["id"], patient=notes["patient"], preset="none")
        return str(notes["file"]), roles
    except (KeyError, TypeError, ValidationError):
        raise InputError("contains a damaged manifest", where=vault.name, hint=_HINT) from None


def _refuse_another(released: Path, manifest: dict[str, Any]) -> None:
    """Raise InputError if release and vault have different keys."""
    public = read_json((released if released.is_dir() else released.parent) / NAME)
    commitment = public.get("key_commitment") if isinstance(public, dict) else None
    if commitment not in (None, manifest.get("key_commitment")):
        raise InputError("is the vault of another release", where="--vault", hint="pass OUT/vault of this release")


def _known(patients: Path | None, settings: ReleaseSettings) -> dict[str, Patient]:
    if patients is None and settings.phi and settings.identifiers.patients is not None:
        raise UsageError("the release was made with known patients", hint="pass --patients FEED again")
    return read_patients(patients) if patients else {}


def _entered(
    corpus: Corpus, key: Key, settings: ReleaseSettings, known: dict[str, Patient], workers: int
) -> MemoryCorpus:
    """Return the notes with identifiers treated as in the run."""
    deidentifier = Deidentifier.of(settings.identifiers, key, patients=known)
    return MemoryCorpus(tuple(made.batch for made in deidentify_corpus(corpus, deidentifier, processes(workers))))
