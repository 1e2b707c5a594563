"""Restore the original text of de-identified notes from a crosswalk; requires the key and a reason
for the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from clinveil.core import (
    FORCE,
    KEEP,
    KEY,
    LABEL,
    LOCK,
    InputError,
    Key,
    Location,
    Maker,
    NotesSettings,
    Settings,
    UsageError,
    atomic,
    fingerprint,
    group,
    locked,
    refuse_places,
    setting,
)
from clinveil.corpus import TEXT, open_corpus, output_in, rows, with_texts, write_corpus
from clinveil.phi.treatment.audit import Chain, next_log, reference
from clinveil.phi.treatment.crosswalk import CrosswalkRow, digest, read_crosswalk
from clinveil.phi.treatment.records import CROSSWALK

MAKER = Maker("reidentify")
_HINT = (
    "pass the vault of the run that wrote the notes, with its key; that run must have used"
    " --crosswalk"
)


class ReidentifySettings(Settings):
    """Settings of `clinveil reidentify`."""

    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    force: bool = FORCE
    key: Path | None = setting(
        None, "Read the run's key from this file (default: key.bin of the vault).", secret="path"
    )
    only_note: tuple[str, ...] = setting((), "Restore only the note with this id; repeatable.")
    only_patient: tuple[str, ...] = setting(
        (), "Restore only the notes of this patient; repeatable."
    )

    def wants(self, note_id: str, patient_id: str) -> bool:
        """Return whether a note is to be restored."""
        everything = not (self.only_note or self.only_patient)
        return everything or note_id in self.only_note or patient_id in self.only_patient


@dataclass
class Restored:
    """Counts of restored notes.

    Attributes:
        notes: number of restored notes. identifiers: number of restored identifiers.
        left_out: number of notes that are not in the crosswalk or were changed later; they are not
            written.
        references: audit log references of the restored notes.
    """

    notes: int = 0
    identifiers: int = 0
    left_out: int = 0
    references: list[str] = field(default_factory=list, repr=False)


def reidentify(
    notes: Location, out: Path, vault: Path, reason: str, settings: ReidentifySettings
) -> Restored:
    """Write the original text of notes treated by `clinveil deidentify --crosswalk`; log the
    reason.

    Raises:
        UsageError: empty reason, or invalid paths.
        InputError: no key, wrong key, no crosswalk, or none of the notes is in it; then nothing is
            written.
    """
    if not reason.strip():
        raise UsageError(
            "--reason is empty", hint="state the reason for the audit log, without patient names"
        )
    refuse_places(out, MAKER, force=settings.force, vault=vault, read={"NOTES": notes})
    if settings.key is None and not (vault / KEY).exists():
        hint = "pass the key with --key FILE; the crosswalk cannot be decrypted without it"
        raise InputError("contains no key", where=vault.name, hint=hint)
    key = Key.load(settings.key or vault / KEY)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    known = _known(vault, key, settings)
    counts = Restored()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from (_restored(batch, known, key, settings, counts) for batch in corpus.batches())
        if not counts.notes:
            message = (
                "none of these notes is in the crosswalk: they belong to another run or were"
                " changed later"
            )
            raise InputError(message, hint=_HINT)

    with atomic(out, force=settings.force, maker=MAKER) as part, locked(vault / LOCK):
        target, suffix = output_in(part, out, corpus.suffix)
        write_corpus(batches(), target, corpus.columns, suffix)
        _log(vault, key, reason, notes, counts)
    return counts


def _known(
    vault: Path, key: Key, settings: ReidentifySettings
) -> dict[tuple[str, str], CrosswalkRow]:
    """Return the rows of all crosswalks of the vault by written note id and digest of the treated
    text.
    """
    files = (
        sorted(path for path in vault.iterdir() if CROSSWALK.fullmatch(path.name))
        if vault.is_dir()
        else []
    )
    if not files:
        raise InputError("contains no crosswalk", where=vault.name, hint=_HINT)
    stored = (row for path in files for row in read_crosswalk(path, key))
    wanted = (row for row in stored if settings.wants(row.note_id, row.patient_id))
    return {(row.new_note_id or row.note_id, row.digest): row for row in wanted}


def _restored(
    batch: pa.RecordBatch,
    known: Mapping[tuple[str, str], CrosswalkRow],
    key: Key,
    settings: ReidentifySettings,
    counts: Restored,
) -> pa.RecordBatch:
    """Return the requested notes of a batch that are in the crosswalk, with the ids of the
    source.
    """
    batch = batch.filter(batch.column(TEXT).is_valid())
    texts: list[str | None] = []
    ids: list[tuple[str, str]] = []
    for note in rows([batch]):
        row = known.get((note.note_id, digest(note.text)))
        texts.append(row.restored(note.text) if row else None)
        ids.append((row.note_id, row.patient_id) if row else (note.note_id, note.patient_id))
        if row:
            counts.notes += 1
            counts.identifiers += len(row.replacements)
            counts.references.append(reference(key, row.note_id))
        elif settings.wants(note.note_id, note.patient_id):
            counts.left_out += 1
    source = [pa.array(column, pa.string()) for column in zip(*ids, strict=True)] or batch.columns[
        :2
    ]
    return with_texts(pa.record_batch([*source, *batch.columns[2:]], schema=batch.schema), texts)


def _log(vault: Path, key: Key, reason: str, notes: Location, counts: Restored) -> None:
    """Write the audit log before the notes are published."""
    path, before = next_log(vault)
    with atomic(path) as part, part.open("w", encoding="utf-8") as file:
        chain = Chain(file, before)
        fields = {
            "version": version("clinveil"),
            "key_commitment": key.commitment,
            "reason": reason,
        }
        chain.begin("reidentify", {**fields, "input_sha256": fingerprint(notes)})
        for note in counts.references:
            chain.write({"note": note})
        chain.end(
            key, {"notes": counts.notes, "places": counts.identifiers, "left_out": counts.left_out}
        )
