"""What studies begin with: files and notes named by what they hold, and word vectors trained on any task's notes."""

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
from clinveil.corpus.estimate import pass_seconds
from clinveil.corpus.open import open_corpus
from clinveil.corpus.write import write_corpus
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import Task
from clinveil.vectors.files import load_vectors, save_vectors
from clinveil.vectors.sentences import token_lines, whole_note
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors
from clinveil.vectors.train import train

NOTES, VECTORS = "notes.parquet", "vectors"
COLUMNS = Columns(TEXT, NOTE_ID, PATIENT_ID)


@dataclass(frozen=True)
class File:
    """A file or a folder of word vectors, named by what it holds and not by where it lies."""

    digest: str
    path: Path = field(compare=False)

    @classmethod
    def of(cls, path: Path) -> File:
        """Of a path."""
        return cls(fingerprint(path), path)


@dataclass(frozen=True)
class Source:
    """Notes, named by all their rows in order. `words` is rough, for the plan."""

    digest: str
    path: Path = field(compare=False)
    reading: NotesSettings = field(compare=False)
    label: tuple[str, ...] = field(compare=False, default=())
    words: int = field(compare=False, default=0)

    @classmethod
    def of(cls, path: Path, reading: NotesSettings, label: tuple[str, ...] = ()) -> Source:
        """Read the notes once, which also finds what does not fit. Raises InputError."""
        digest, words = hashlib.blake2b(digest_size=16), 0
        for batch in open_corpus(path, reading, label=label).batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
            words += sum((text or "").count(" ") + 1 for text in batch[TEXT].to_pylist())
        return cls(digest.hexdigest(), path, reading, label, words)

    def corpus(self) -> Corpus:
        """The notes."""
        return open_corpus(self.path, self.reading, label=self.label)


class NotesTask(Task):
    """A task that writes notes."""

    def corpus(self, store: Store) -> Corpus:
        """The notes that it wrote."""
        return open_corpus(store.folder(self) / NOTES)

    def texts(self, store: Store) -> dict[str, str]:
        """Its texts by note."""
        return {note.note_id: note.text for note in rows(self.corpus(store))}


def write_notes(batches: Iterator[pa.RecordBatch], folder: Path) -> int:
    """Write batches, with nothing but the three columns of a note, to a task's folder; returns the rows."""
    return write_corpus(map(_bare, batches), folder / NOTES, COLUMNS, ".parquet")


def _bare(batch: pa.RecordBatch) -> pa.RecordBatch:
    names = [NOTE_ID, PATIENT_ID, TEXT]
    return pa.record_batch([batch.column(name).cast(pa.string()) for name in names], names=names)


@dataclass(frozen=True)
class Train(Task):
    """Train word vectors on a task's notes, by one worker, bit for bit.

    Attributes:
        sentences: windows end with a line of the text, and tokens stay as they stand (paper C).
    """

    notes: NotesTask
    settings: VectorSettings
    seed: int
    sentences: bool = False

    stage = "train"
    says = "{settings.algorithm} vectors, window {settings.window}, {settings.dim} d, of: {notes.title}"

    def seconds(self, millions: float) -> float:
        """Reading, GloVe's counting, and the passes."""
        how = self.settings
        pairs = how.window if how.algorithm == "glove" else 0
        one = pass_seconds(how.algorithm, how.window, how.dim)
        return millions * (2.0 + pairs + one * how.passes_over(round(millions * 1e6))) + 2

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the vectors; where there are none to be had, `why`."""
        corpus, scratch = self.notes.corpus(store), folder / "scratch"
        split = token_lines if self.sentences else whole_note
        try:
            vectors = train(corpus, self.settings, seed=self.seed, workers=1, scratch=scratch, split=split)
        except InputError as error:
            return {"why": str(error)}
        finally:
            remove(scratch)
        save_vectors(vectors, folder / VECTORS)
        return {"words": len(vectors)}

    def load(self, store: Store) -> Vectors:
        """What a finished task wrote. Raises InputError where it could not be trained."""
        return trained(store.folder(self), store.result(self))


def trained(folder: Path, result: Result) -> Vectors:
    """The vectors of a task that came to its end. Raises InputError where it could not be trained."""
    if why := result.get("why"):
        raise InputError(why)
    return load_vectors(folder / VECTORS)
