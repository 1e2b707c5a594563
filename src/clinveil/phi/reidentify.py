"""Back to the notes as they were: what a crosswalk knows of treated notes, for who has the key and a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from clinveil.core.atomic import atomic
from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import Maker, locked, refuse_places
from clinveil.core.keys import Key
from clinveil.core.runfolder import KEY, LOCK, fingerprint
from clinveil.core.settings import FORCE, KEEP, LABEL, NotesSettings, Settings, flag, group
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, rows, with_texts
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import place_in, write_corpus
from clinveil.phi.audit import Chain, next_log, reference
from clinveil.phi.crosswalk import Row, digest, read_crosswalk
from clinveil.phi.records import CROSSWALK

MAKER = Maker("reidentify")
_REMEDY = "name the vault of the run that wrote them, with its key; the run must have had --crosswalk"


class ReidentifySettings(Settings):
    """Settings of `clinveil reidentify`."""

    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    keep: tuple[str, ...] = KEEP
    force: bool = FORCE
    key: Path | None = flag(None, "Key of the run (default: key.bin in the vault).")
    only_note: tuple[str, ...] = flag((), "Restore only the note with this id; repeatable.")
    only_patient: tuple[str, ...] = flag((), "Restore only the notes of this patient; repeatable.")


@dataclass
class Restored:
    """What came back.

    Attributes:
        notes: notes that were put back. places: identifiers in them.
        left_out: notes that the crosswalk does not know, or that were changed since; they are not written.
    """

    notes: int = 0
    places: int = 0
    left_out: int = 0
    references: list[str] = field(default_factory=list, repr=False)


def reidentify(notes: Path, out: Path, vault: Path, reason: str, settings: ReidentifySettings) -> Restored:
    """Write the notes as they were before `clinveil deidentify --crosswalk`; who asked why stands in the audit log.

    Raises:
        UsageError: no reason, or places that do not fit.
        InputError: no key, another key, no crosswalk, or none of these notes in it; then nothing is written.
    """
    if not reason.strip():
        raise UsageError("--reason is empty", hint="say why: it goes into the audit log, without any patient's name")
    refuse_places(out, MAKER, force=settings.force, vault=vault, read={"NOTES": notes})
    key = _key(vault, settings.key)
    corpus = open_corpus(notes, settings.notes, label=settings.label, keep=settings.keep)
    wanted = _wanted(settings)
    known = _known(vault, key, wanted)
    done = Restored()

    def batches() -> Iterator[pa.RecordBatch]:
        return (_restored(_only(batch, wanted), known, key, done) for batch in corpus.batches())

    with locked(vault / LOCK), atomic(out, force=settings.force, maker=MAKER) as part:
        place, suffix = place_in(part, out, corpus.suffix)
        write_corpus(_filled(batches(), done), place, corpus.columns, suffix)
        _log(vault, key, reason, notes, done)
    return done


def _filled(batches: Iterable[pa.RecordBatch], done: Restored) -> Iterator[pa.RecordBatch]:
    yield from batches
    if not done.notes:
        what = "no note of these stands in the crosswalk as it is: it is of another run, or the notes were changed"
        raise InputError(what, hint=_REMEDY)


def _key(vault: Path, given: Path | None) -> Key:
    if given is None and not (vault / KEY).exists():
        hint = "--key FILE: where you keep it; without it the crosswalk cannot be read by anybody"
        raise InputError("holds no key", where=vault.name, hint=hint)
    return Key.load(given or vault / KEY)


Wanted = tuple[frozenset[str], frozenset[str]]


def _wanted(settings: ReidentifySettings) -> Wanted:
    return frozenset(settings.only_note), frozenset(settings.only_patient)


def _is_wanted(note_id: str, patient_id: str | None, wanted: Wanted) -> bool:
    notes, patients = wanted
    return not (notes or patients) or note_id in notes or patient_id in patients


def _known(vault: Path, key: Key, wanted: Wanted) -> dict[tuple[str, str], Row]:
    """The rows of all crosswalks of the vault, by note id and text."""
    files = sorted(path for path in vault.iterdir() if CROSSWALK.fullmatch(path.name)) if vault.is_dir() else []
    if not files:
        raise InputError("holds no crosswalk", where=vault.name, hint=_REMEDY)
    read = (row for path in files for row in read_crosswalk(path, key))
    return {(row.note_id, row.digest): row for row in read if _is_wanted(row.note_id, row.patient_id, wanted)}


def _only(batch: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    ids = zip(batch.column(NOTE_ID).to_pylist(), batch.column(PATIENT_ID).to_pylist(), strict=True)
    return batch.filter(pa.array([_is_wanted(*each, wanted) for each in ids], pa.bool_()))


def _restored(batch: pa.RecordBatch, known: dict[tuple[str, str], Row], key: Key, done: Restored) -> pa.RecordBatch:
    batch = batch.filter(batch.column(TEXT).is_valid())
    texts = []
    for note in rows([batch]):
        row = known.get((note.note_id, digest(note.text)))
        texts.append(row.restored(note.text) if row else None)
        if row:
            done.notes += 1
            done.places += len(row.places)
            done.references.append(reference(key, note.note_id))
        else:
            done.left_out += 1
    return with_texts(batch, texts)


def _log(vault: Path, key: Key, reason: str, notes: Path, done: Restored) -> None:
    """The audit line, before the notes appear."""
    path, before = next_log(vault)
    with atomic(path) as part, part.open("w", encoding="utf-8") as file:
        chain = Chain(file, before)
        said = {"version": version("clinveil"), "key_commitment": key.commitment, "reason": reason}
        chain.begin("reidentify", {**said, "input_sha256": fingerprint(notes)})
        for note in done.references:
            chain.write({"note": note})
        chain.end(key, {"notes": done.notes, "places": done.places, "left_out": done.left_out})
