"""Inputs of studies: files and notes identified by content, and word vectors trained on the notes
of a task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from clinveil.core.errors import InputError
from clinveil.core.files import remove
from clinveil.core.runfolder import fingerprint
from clinveil.core.settings import NotesSettings
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns, Corpus, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import write_corpus
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import Task
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.sentences import token_lines, whole_note
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

NOTES = "notes.parquet"
VECTORS = "vectors"
COLUMNS = Columns(TEXT, NOTE_ID, PATIENT_ID)


@dataclass(frozen=True)
class File:
    """A file or a folder of word vectors, identified by its content."""

    digest: str
    path: Path = field(compare=False)

    @classmethod
    def of(cls, path: Path) -> File:
        """Return the file of a path."""
        return cls(fingerprint(path), path)


@dataclass(frozen=True)
class Source:
    """Notes, identified by all rows in order."""

    digest: str
    path: Path = field(compare=False)
    reading: NotesSettings = field(compare=False)
    label: tuple[str, ...] = field(compare=False, default=())

    @classmethod
    def of(cls, path: Path, reading: NotesSettings, label: tuple[str, ...] = ()) -> Source:
        """Read and hash the notes once. Raises InputError for invalid notes."""
        digest = hashlib.blake2b(digest_size=16)
        for batch in open_corpus(path, reading, label=label).batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return cls(digest.hexdigest(), path, reading, label)

    def corpus(self) -> Corpus:
        """Return the notes."""
        return open_corpus(self.path, self.reading, label=self.label)


class NotesTask(Task):
    """A task that writes notes."""

    def corpus(self, store: Store) -> Corpus:
        """Return the notes of the finished task."""
        return open_corpus(store.folder(self) / NOTES)

    def texts(self, store: Store) -> dict[str, str]:
        """Return the texts by note id."""
        return {note.note_id: note.text for note in rows(self.corpus(store))}


def write_notes(batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Write batches with the three columns of a note as Parquet; return the number of rows."""
    return write_corpus(map(_bare, batches), path, COLUMNS, ".parquet")


def _bare(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = [NOTE_ID, PATIENT_ID, TEXT]
    return pa.record_batch([batch.column(name).cast(pa.string()) for name in names], names=names)


@dataclass(frozen=True)
class Train(Task):
    """Train word vectors on the notes of a task, with one worker for bitwise equal results.

    Attributes:
        sentences: windows do not cross lines, and tokens are not changed (paper C).
    """

    notes: NotesTask
    settings: VectorSettings
    seed: int
    sentences: bool = False

    stage = "train"
    template = (
        "{settings.algorithm} vectors, window {settings.window}, {settings.dim} d, of:"
        " {notes.title}"
    )

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the vectors; the result has `why` if training failed."""
        corpus = self.notes.corpus(store)
        scratch = folder / "scratch"
        split = token_lines if self.sentences else whole_note
        try:
            vectors = train(
                corpus, self.settings, seed=self.seed, workers=1, scratch=scratch, split=split
            )
        except InputError as error:
            return {"why": str(error)}
        finally:
            remove(scratch)
        save_vectors(vectors, folder / VECTORS)
        return {"words": len(vectors)}

    def load(self, store: Store) -> Vectors:
        """Return the vectors of a finished task. Raises InputError if training failed."""
        return trained(store.folder(self), store.result(self))


def trained(folder: Path, result: Result) -> Vectors:
    """Return the vectors in the folder of a task with this result. Raises InputError if training
    failed.
    """
    if why := result.get("why"):
        raise InputError(why)
    return load_vectors(folder / VECTORS)
