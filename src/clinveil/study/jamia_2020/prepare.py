"""The first task: the notes of the study, cut and sampled, with their labels and the one split of all settings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.core.settings import NotesSettings
from clinveil.core.tokens import Kind, tokenize, words
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, Columns
from clinveil.scale.tasks import Result, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from clinveil.utility.classification import Task

NOTES = "notes.parquet"
COLUMNS = Columns(TEXT, NOTE_ID, PATIENT_ID)


@dataclass(frozen=True)
class Source:
    """Notes, named by what they hold and not by where they lie."""

    notes: Path
    reading: NotesSettings
    digest: str
    label: tuple[str, ...] = ()

    @classmethod
    def of(cls, notes: Path, reading: NotesSettings, label: tuple[str, ...] = ()) -> Source:
        """Read the notes once, which also finds what does not fit. Raises InputError."""
        from clinveil.corpus.open import open_corpus

        digest = hashlib.blake2b(digest_size=16)
        for batch in open_corpus(notes, reading, label=label).batches():
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                digest.update(repr(row).encode("utf-8", "surrogatepass"))
        return cls(notes, reading, digest.hexdigest(), label)


@dataclass(frozen=True)
class Prepare:
    """Sample and cut the notes; with a label leave out what has none, and split by patient and near-duplicates."""

    source: Source
    label: str | None
    max_documents: int
    max_tokens: int
    min_class: int
    separator: str | None
    seed: int

    title = "sample and split the notes"

    def identity(self) -> dict[str, Any]:
        """Contents of the notes and the settings."""
        said = ("label", "max_documents", "max_tokens", "min_class", "separator", "seed")
        return {"notes": self.source.digest, **{name: getattr(self, name) for name in said}, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes; targets and parts as arrays."""
        from clinveil.core.files import save_array
        from clinveil.corpus.write import write_corpus
        from clinveil.utility.labelled import parts_of

        rows, targets, said = self._sampled()
        write_corpus(_batches(rows), folder / NOTES, COLUMNS, ".parquet")
        if targets is not None:
            parts = parts_of(targets, np.random.default_rng([self.seed, 1]))
            for name in ("train", "valid", "test"):
                save_array(folder / f"{name}.npy", getattr(parts, name))
            save_array(folder / "targets.npy", targets.targets)
            said |= {"classes": list(targets.classes), "detail": dict(targets.detail), "duplicates": parts.duplicates}
        forms = [words(text) for _, _, text in rows]
        said |= {"notes": len(rows), "patients": len({patient for _, patient, _ in rows})}
        said |= {"tokens": sum(map(len, forms)), "types": len({form for row in forms for form in row})}
        return said

    def _sampled(self) -> tuple[list[tuple[str, str, str]], Any, dict[str, Any]]:
        from clinveil.corpus.open import open_corpus
        from clinveil.utility.labelled import read_labelled

        corpus = open_corpus(self.source.notes, self.source.reading, label=self.source.label)
        rng = np.random.default_rng([self.seed, 0])
        if self.label is None:
            return _without_label(corpus.batches(), self.max_documents, self.max_tokens, rng), None, {}
        found = read_labelled(
            corpus.batches(),
            self.label,
            rng,
            limit=self.max_documents,
            min_class=self.min_class,
            separator=self.separator,
        )
        texts = [cut(text, self.max_tokens) for text in found.texts]
        found.texts[:] = texts
        return list(zip(found.note_ids, found.patients, texts, strict=True)), found, {}


def _without_label(
    batches: Iterator[pa.RecordBatch], limit: int, most: int, rng: np.random.Generator
) -> list[tuple[str, str, str]]:
    from clinveil.corpus.sample import KeySample

    sample: KeySample[tuple[str, str, str]] = KeySample(limit, rng)
    for batch in batches:
        columns = (batch[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT))
        for note, patient, text in zip(*columns, strict=True):
            if text is not None:
                row = (note, patient if patient is not None else note, cut(text, most))
                sample.offer(note, lambda row=row: row)  # type: ignore[misc]
    return list(sample.values.values())


def cut(text: str, most: int) -> str:
    """A text up to its word number `most`."""
    if len(text) <= most:
        return text
    seen = 0
    for token in tokenize(text):
        seen += token.kind == Kind.WORD
        if seen == most and token.kind == Kind.WORD:
            return text[: token.end]
    return text


def _batches(rows: list[tuple[str, str, str]], size: int = 1_000) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for start in range(0, len(rows), size):
        columns = zip(*rows[start : start + size], strict=True)
        yield pa.record_batch([pa.array(c, pa.string()) for c in columns], names=[NOTE_ID, PATIENT_ID, TEXT])


def task_of(prepare: Prepare, store: Store) -> Task:
    """The labelled notes and their split, as every model gets them; nothing is released yet."""
    import pyarrow.parquet as pq

    from clinveil.utility.classification import Task
    from clinveil.utility.labelled import Labelled, Parts

    folder, said = store.folder(prepare), store.result(prepare)
    table = pq.read_table(folder / NOTES)
    ids, patients, texts = (table[name].to_pylist() for name in (NOTE_ID, PATIENT_ID, TEXT))
    arrays = {n: np.load(folder / f"{n}.npy", allow_pickle=False) for n in ("targets", "train", "valid", "test")}
    labelled = Labelled(ids, patients, texts, tuple(said["classes"]), arrays["targets"], said["detail"])
    parts = Parts(arrays["train"], arrays["valid"], arrays["test"], said["duplicates"])
    return Task(labelled, texts, parts)
