"""The first task: notes as the remover left them, and who was missed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinveil.core.files import sha256
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, Corpus
from clinveil.scale.tasks import Result, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.corpus.people import Patient
    from clinveil.phi.policy import Mode

NOTES, MISSED, SURROGATES = "notes.parquet", "missed.parquet", "surrogates.parquet"
COLUMNS = Columns(TEXT, NOTE_ID, PATIENT_ID)


@dataclass(frozen=True)
class Source:
    """Notes and known patients, named by what they hold and not by where they lie.

    Attributes:
        notes_hash: of all ids and texts, in order; patients_hash: of the file.
        words: roughly, for the plan.
    """

    notes: Path
    patients: Path
    reading: NotesSettings
    notes_hash: str
    patients_hash: str
    words: int

    @classmethod
    def of(cls, notes: Path, patients: Path, reading: NotesSettings) -> Source:
        """Read the notes once, which also finds what does not fit. Raises InputError."""
        from clinveil.corpus.open import open_corpus

        digest, words = hashlib.blake2b(digest_size=16), 0
        for batch in open_corpus(notes, reading).batches():
            for row in zip(*(batch.column(name).to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT)), strict=True):
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
                words += (row[2] or "").count(" ") + 1
        return cls(notes, patients, reading, digest.hexdigest(), sha256(patients), words)


@dataclass(frozen=True)
class Treat:
    """Emulate the remover on the notes; write them, those who were missed, and their surrogates.

    Attributes:
        mode: what becomes of the names that are not missed; "none" leaves all, and attacks those who would be missed.
        everyone: nobody's name is touched and all patients are attacked (Figure 3).
        redrawn: the missed names are dealt out anew in every note.
    """

    source: Source
    mode: str
    miss_rate: float
    seed: int
    redrawn: bool = False
    everyone: bool = False

    @property
    def title(self) -> str:
        """What it does."""
        return "names left in all notes" if self.everyone or self.mode == "none" else f"names, mode {self.mode}"

    def identity(self) -> dict[str, Any]:
        """Contents of the notes and the patients, and the setting."""
        said = {name: getattr(self, name) for name in ("mode", "miss_rate", "seed", "redrawn", "everyone")}
        return {**said, "notes": self.source.notes_hash, "patients": self.source.patients_hash, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes, `missed.parquet` and, in mode replace, `surrogates.parquet`."""
        from clinveil.corpus.people import write_patients
        from clinveil.corpus.write import write_corpus

        treated, missed, surrogates = self._treated()
        counted = _NoteCount()
        rows = write_corpus(counted.through(treated), folder / NOTES, COLUMNS, ".parquet")
        write_patients(missed, folder / MISSED)
        if surrogates:
            write_patients(surrogates, folder / SURROGATES)
        return {
            "notes": rows,
            "words": self.source.words,
            "patients": len(counted.notes),
            "missed": len(missed),
            "notes_of_missed": [counted.notes[patient.patient_id] for patient in missed],
        }

    def _treated(self) -> tuple[Corpus, list[Patient], list[Patient]]:
        from clinveil.core.keys import Key
        from clinveil.corpus.open import open_corpus
        from clinveil.corpus.people import read_patients
        from clinveil.phi.emulated import EmulatedRemover, redrawn_names

        corpus: Corpus = open_corpus(self.source.notes, self.source.reading)
        patients, key = read_patients(self.source.patients), Key.from_seed(self.seed)
        if self.everyone:
            return corpus, list(patients.values()), []
        mode: Mode = "replace" if self.mode == "replace" else "remove"
        remover = EmulatedRemover(key, patients, self.miss_rate, mode)
        if self.mode != "none":
            corpus = replace(remover.over(corpus), columns=COLUMNS)
        if self.redrawn:
            corpus = redrawn_names(corpus, remover.missed, key)
        return corpus, remover.missed, remover.surrogate_patients() if self.mode == "replace" else []


class _NoteCount:
    """How many notes each patient has, counted as they go by."""

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()

    def through(self, corpus: Corpus) -> Iterator[pa.RecordBatch]:
        """The batches, with nothing but the three columns of a note."""
        for batch in corpus.batches():
            self.notes.update(batch.column(PATIENT_ID).to_pylist())
            yield batch.select([NOTE_ID, PATIENT_ID, TEXT])
