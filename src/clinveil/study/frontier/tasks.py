"""The notes of a half of the patients, and what each setting makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinveil.attacks.channel.inversion import inversion, inversion_names
from clinveil.channel.apply import Obfuscated, Obfuscator
from clinveil.channel.build import build_channel
from clinveil.channel.channel import Channel
from clinveil.channel.files import load_channel, save_channel
from clinveil.channel.identity import identity_channel
from clinveil.core.errors import InputError
from clinveil.core.files import save_array
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.core.tokens import word_set
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, TEXT, memory_corpus, rows, rows_with
from clinveil.corpus.people import Patient, read_patients
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import found
from clinveil.study.frontier.grid import CONTROL, Cell, told
from clinveil.study.frontier.settings import HALVES, Half
from clinveil.study.inputs import File, NotesTask, Source, Train, write_notes
from clinveil.utility.labelled import Labelled, Parts, folds_of, read_labelled

CHANNEL, FOLDS, PARTS = "channel", 5, ("train", "valid", "test")


@dataclass(frozen=True)
class Prepare(NotesTask):
    """The notes of one half of the patients, some of them, with labels and folds where there is a label.

    Attributes:
        match: the column that pairs notes with what is known of people, None for none.
    """

    source: Source
    label: str | None
    half: Half
    max_documents: int
    min_class: int
    match: str | None
    seed: int

    stage = "prepare"
    says = "notes of the half to {half}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes, and arrays of labels and folds. Raises InputError for too few notes of a class."""
        chosen = self._patients()
        batches = list(self._of(chosen))
        write_notes(iter(batches), folder)
        said = self._labelled(batches, self.label, folder) if self.label else {}
        keys = rows_with(batches, self.match) if self.match else ()
        said["keys"] = {note.note_id: str(key) for note, (key,) in keys if key is not None}
        return said | {"notes": sum(batch.num_rows for batch in batches), "patients": len(chosen)}

    def _patients(self) -> set[str]:
        """Those of this half, until they have notes enough; the two halves have none in common."""
        notes: dict[str, int] = {}
        for note in rows(self.source.corpus()):
            notes[note.patient_id] = notes.get(note.patient_id, 0) + 1
        names = sorted(notes)
        if len(names) < 4:
            raise InputError(f"two halves of {len(names)} patients are too few", remedy="bring more patients")
        order = np.random.default_rng([self.seed, 0]).permutation(len(names))
        own = [names[i] for i in order[HALVES.index(self.half) :: len(HALVES)].tolist()]
        before = np.cumsum([0, *(notes[name] for name in own)])[:-1]
        return {name for name, held in zip(own, before.tolist(), strict=True) if held < self.max_documents}

    def _of(self, patients: set[str]) -> Iterator[pa.RecordBatch]:
        known = pa.array(sorted(patients), pa.string())
        for batch in self.source.corpus().batches():
            who = pc.coalesce(batch.column(PATIENT_ID), batch.column(NOTE_ID))
            yield batch.filter(pc.and_(pc.is_in(who, value_set=known), pc.is_valid(batch.column(TEXT))))

    def _labelled(self, batches: list[pa.RecordBatch], label: str, folder: Path) -> Result:
        how: dict[str, Any] = {"limit": self.max_documents, "min_class": self.min_class, "merge": True}
        labelled = read_labelled(batches, label, np.random.default_rng([self.seed, 1]), **how)
        order = {note.note_id: i for i, note in enumerate(rows(batches))}
        save_array(folder / "rows.npy", np.array([order[note] for note in labelled.note_ids], dtype=np.int64))
        save_array(folder / "targets.npy", labelled.targets)
        for number, parts in enumerate(folds_of(labelled, np.random.default_rng([self.seed, 2]), FOLDS)):
            for name in PARTS:
                save_array(folder / f"{name}-{number}.npy", getattr(parts, name))
        return {"classes": list(labelled.classes), "detail": dict(labelled.detail)}

    def labels(self, store: Store) -> tuple[Labelled, list[Parts]]:
        """The labelled notes, and the folds that every setting shares."""
        folder, said = store.folder(self), store.result(self)
        load = partial(np.load, allow_pickle=False)
        notes = list(rows(self.corpus(store)))
        own = [notes[i] for i in load(folder / "rows.npy").tolist()]
        ids, patients, texts = ([getattr(n, name) for n in own] for name in ("note_id", "patient_id", "text"))
        labelled = Labelled(ids, patients, texts, tuple(said["classes"]), load(folder / "targets.npy"), said["detail"])
        numbers = range(FOLDS)
        return labelled, [Parts(*(load(folder / f"{name}-{number}.npy") for name in PARTS)) for number in numbers]


@dataclass(frozen=True)
class Treat(NotesTask):
    """The notes under one setting.

    Attributes:
        known: names of known patients, a `patients.parquet`; None without. draw: the public seed of all draws.
    """

    prepare: Prepare
    cell: Cell
    train: Train
    known: File | None
    draw: int

    stage = "treat"
    says = "{cell.name}"

    def seconds(self, millions: float) -> float:
        """Measured on a shared x86-64 machine."""
        return millions * 20 + 4

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write channel and notes; the exact figures of one draw, and how many different words come out."""
        vectors = self.train.load(store)
        names = [" ".join(patient.name) for patient in self.patients().values()]
        key = Key.from_seed(self.draw)
        if self.cell.name == CONTROL:
            channel = identity_channel(vectors.words)
        else:
            channel, _ = build_channel(vectors, self.cell.channel, key=key, threads=1, names=word_set(names))
        save_channel(channel, folder / CHANNEL)
        write_notes((one.batch for one in self._obfuscated(channel, store)), folder)
        assert vectors.counts is not None
        findings = [*inversion(channel, vectors.counts), *inversion_names(channel, names, vectors.counts)]
        return found([*findings, _output_words(channel)], **told(self.cell))

    def channel(self, store: Store) -> Channel:
        """The channel of a finished task, with its policy."""
        policy = None if self.cell.name == CONTROL else self.cell.channel.policy
        return load_channel(store.folder(self) / CHANNEL, policy)

    def alignment(self, store: Store) -> Iterator[pa.RecordBatch]:
        """Where each released word comes from; made anew, as the draws are by the key alone."""
        for one in self._obfuscated(self.channel(store), store):
            assert one.alignment is not None
            yield one.alignment

    def patients(self) -> dict[str, Patient]:
        """The known patients; none without a file."""
        return read_patients(self.known.path) if self.known else {}

    def _obfuscated(self, channel: Channel, store: Store) -> Iterator[Obfuscated]:
        obfuscator = Obfuscator(channel, Key.from_seed(self.draw), align=True)
        return (obfuscator(batch) for batch in self.prepare.corpus(store).batches())


def _output_words(channel: Channel) -> Finding:
    """How many different words can come out of the words of the notes."""
    reached = int(channel.written.sum())
    return Finding("study.output_words", float(reached), len(channel.words), "higher", unit="words of the source")


def keyed(released: NotesTask, prepare: Prepare, match: str, store: Store) -> Any:
    """The released notes with the column that pairs them with what is known."""
    keys = store.result(prepare)["keys"]
    corpus = released.corpus(store)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in corpus.batches():
            own = pa.array([keys.get(note) for note in batch.column(0).to_pylist()], pa.string())
            yield batch.append_column(match, own)

    return replace(memory_corpus([]), source=batches)
