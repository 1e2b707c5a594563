"""The notes that all releases of a comparison are made from, and public texts about the same patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core.errors import InputError
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus, memory_corpus, rows_with
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import write_corpus
from clinveil.study.compare.settings import HALVES, Amount, CompareSettings

FEWEST = 2  # patients with a public text


def copy_notes(source: Corpus, path: Path, how: CompareSettings) -> tuple[NotesSettings, Amount]:
    """Write the notes to compare on as Parquet: all of them, one half of the patients, or at most `max_notes`.

    Returns:
        The roles of the columns of the written file, and how much was written.

    Raises:
        InputError: no note is left, or the notes cannot be read.
    """
    chosen = _chosen(source, how)
    who: set[str] = set()
    notes = characters = 0

    def kept() -> Iterator[pa.RecordBatch]:
        nonlocal notes, characters
        for batch in source.batches():
            taken = batch.filter(pc.is_in(_patients(batch), value_set=chosen)) if chosen is not None else batch
            notes += taken.num_rows
            characters += pc.sum(pc.utf8_length(taken.column(TEXT))).as_py() or 0
            who.update(_patients(taken).to_pylist())
            yield taken

    columns = source.columns
    write_corpus(kept(), path, columns, ".parquet")
    path.chmod(0o600)
    roles = NotesSettings(text=columns.text, id=columns.note_id, patient=columns.patient_id, preset="none")
    return roles, Amount(notes, len(who), characters // 6)


def _patients(batch: pa.RecordBatch) -> pa.Array:
    """The patient of each note; a note without one is its own patient."""
    return pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID))


def _chosen(source: Corpus, how: CompareSettings) -> pa.Array | None:
    """Return the patients to use, or None for all. The two halves have no patient in common."""
    if how.half is None and how.max_notes is None:
        return None
    notes = Counter(name for batch in source.batches() for name in _patients(batch).to_pylist())
    names = sorted(notes)
    order = [names[i] for i in np.random.default_rng([how.seed, 0]).permutation(len(names))]
    if how.half is not None:
        order = order[HALVES.index(how.half) :: len(HALVES)]
    ends = np.cumsum([notes[name] for name in order])
    taken = [name for name, end in zip(order, ends, strict=True) if how.max_notes is None or end <= how.max_notes]
    return pa.array(taken or order[:1], pa.string())


def public_texts(how: CompareSettings, notes: Path, roles: NotesSettings) -> Corpus | None:
    """Return the public texts with the patient ids of the notes, or None without `--known`.

    Raises:
        InputError: fewer than two patients have a public text, or the texts cannot be read.
    """
    if how.known is None:
        return None
    match = how.match
    keep = (match,) if match else ()
    patients: dict[str, str] = {}
    for note, values in rows_with(open_corpus(notes, roles, keep=keep), *keep):
        patients.setdefault(str(values[0]) if match else note.patient_id, note.patient_id)
    found = []
    for text, values in rows_with(open_corpus(how.known, NotesSettings(), keep=keep), *keep):
        patient = patients.get(str(values[0]) if match else text.patient_id)
        found.append((text.note_id, patient or f"nobody {text.note_id}", text.text))
    if len({patient for _, patient, _ in found} & set(patients.values())) < FEWEST:
        what = f"fewer than {FEWEST} patients of the notes have a text in it"
        raise InputError(what, where=how.known.name, hint="pass --match with a column of both")
    return memory_corpus(found)
