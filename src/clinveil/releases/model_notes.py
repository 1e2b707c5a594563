"""Read the notes of a synthetic release as its model read them: identifiers replaced again, split
into both sides.
"""

from __future__ import annotations

from pathlib import Path

from clinveil.core import KEY, InputError, Key, NotesSettings
from clinveil.corpus import (
    TABLE,
    Corpus,
    HeldOutPatients,
    MemoryCorpus,
    Patient,
    open_corpus,
    read_patients,
)
from clinveil.lm import PlainNotes, read_notes
from clinveil.phi import NoteDeidentifier, deidentify_corpus
from clinveil.releases.earlier.vault import damaged, read_manifest, settings_of
from clinveil.releases.manifest import NAME
from clinveil.releases.settings import ReleaseSettings
from clinveil.releases.synthesis_model import TrainHoldoutSplit, split_as_before
from clinveil.releases.synthesis_rows import LabelColumns
from clinveil.scale import processes


def sides_of_model(
    notes: Path,
    model: Path,
    split: object,
    roles: NotesSettings,
    *,
    prepared: bool = False,
    layout: bool = False,
    workers: int = 1,
) -> TrainHoldoutSplit:
    """Return the training and held-out notes of a model, as it read them.

    In the vault of a release, identifiers of the source notes are replaced again under the key of
    the vault. Any other model must have read the notes as they are.

    Args:
        notes: the file that the release read. split: the entry of `about` of the model.
        roles: columns and format of the notes; what is not given is as in the release.
        prepared, layout: as in `read_notes`, for a model outside a vault.

    Raises:
        InputError: the model was trained on other notes, or known patients are missing.
        UsageError: the model has no record of its split.
    """
    vault = model.resolve().parent
    if (vault / NAME).exists():
        read = _treated(notes, vault, roles, workers)
    else:
        read = read_notes(open_corpus(notes, roles), prepared=prepared, layout=layout)
    return split_as_before(read, split, model.name)


def _treated(notes: Path, vault: Path, roles: NotesSettings, workers: int) -> PlainNotes:
    """Return the notes as they entered the training of the release."""
    settings = settings_of(read_manifest(vault), vault)
    columns = NotesSettings.model_validate(
        {**settings.notes.model_dump(), **roles.model_dump(exclude_unset=True)}
    )
    source = open_corpus(notes, columns, label=settings.label, keep=settings.keep)
    held_out = HeldOutPatients.read(vault)
    if held_out is None:
        raise damaged(vault, f"{TABLE} is missing")
    labels = LabelColumns.read(source, settings.channel.label_floor, apart=held_out.patients)
    entered: Corpus = source
    if settings.phi:
        engine = _deidentifier(settings, vault).with_placeholders()
        treated = deidentify_corpus(source, engine, processes(workers), apart=held_out.patients)
        entered = MemoryCorpus(tuple(result.batch for result in treated))
    return labels.notes(entered, placeholders=settings.phi)


def _deidentifier(settings: ReleaseSettings, vault: Path) -> NoteDeidentifier:
    """Return the deidentifier of the release. Raises InputError if its list of patients is
    missing.
    """
    listed = settings.identifiers.patients
    known = dict[str, Patient]()
    if listed is not None:
        if not listed.exists():
            hint = "put the file back, or pass HELD_OUT"
            raise InputError(
                "the known-patient list of the release is missing", where=listed.name, hint=hint
            )
        known = dict(read_patients(listed))
    return NoteDeidentifier.of(settings.identifiers, Key.load(vault / KEY), patients=known)
