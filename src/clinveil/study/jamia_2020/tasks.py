"""The tasks of paper A: notes protected with every setting, word pairs (Table 3) and classifiers
(Table 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from clinveil.attacks.channel.inversion import inversion
from clinveil.channel.apply import Obfuscator
from clinveil.channel.build import output_floor
from clinveil.channel.channel import Channel
from clinveil.channel.neighbour_channel import common_pool, neighbour_channel
from clinveil.channel.settings import NeighbourRange
from clinveil.core.files import save_array
from clinveil.core.keys import Key
from clinveil.core.tokens import Kind, tokenize, words
from clinveil.corpus.corpus import Corpus, memory_corpus, rows
from clinveil.corpus.sample import KeySample
from clinveil.lexicons.ambiguity import LexicalClass, is_name, lexical_classes
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.passes import deidentify_corpus
from clinveil.scale import serial
from clinveil.scale.tasks import Result, Store
from clinveil.study.engine import Task, found
from clinveil.study.inputs import NOTES, File, NotesTask, Source, Train, trained, write_notes
from clinveil.study.jamia_2020.name_outputs import name_outputs
from clinveil.study.tables import read_paper
from clinveil.utility.classifiers import ClassifierSettings, Predictions, Side, predict
from clinveil.utility.evaluations.classification import Task as Labels
from clinveil.utility.evaluations.classification import compare
from clinveil.utility.evaluations.similarity import SimilarityTask, similarity
from clinveil.utility.labelled import Labelled, Parts, parts_of, read_labelled
from clinveil.utility.pairs import read_pairs
from clinveil.vectors.neighbours import load_neighbours, neighbours, save_neighbours

TABLE = "neighbours"
REACH = 14
TEST = "test.npy"
DRAWS = 200  # bootstrap draws over pairs in each repetition
Row = tuple[str, str, str]  # note, patient, text


@dataclass(frozen=True)
class Prepare(NotesTask):
    """Sample and truncate the notes; with a label, keep labelled notes and split by patient and
    near-duplicates.
    """

    source: Source
    label: str | None
    max_documents: int
    max_tokens: int
    min_class: int
    separator: str | None
    seed: int

    stage = "prepare"
    template = "sample and split the notes"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes, and targets and parts as arrays."""
        rng = np.random.default_rng([self.seed, 0])
        notes, result = (
            (self._sample(rng), {})
            if self.label is None
            else self._labelled(self.label, folder, rng)
        )
        write_notes(memory_corpus(notes).batches(), folder / NOTES)
        forms = [words(text) for _, _, text in notes]
        result |= {"notes": len(notes), "patients": len({patient for _, patient, _ in notes})}
        return result | {
            "tokens": sum(map(len, forms)),
            "types": len({form for row in forms for form in row}),
        }

    def _labelled(
        self, label: str, folder: Path, rng: np.random.Generator
    ) -> tuple[list[Row], Result]:
        how: dict[str, Any] = {
            "limit": self.max_documents,
            "min_class": self.min_class,
            "separator": self.separator,
        }
        labelled = read_labelled(self.source.corpus().batches(), label, rng, **how)
        labelled.texts[:] = [cut(text, self.max_tokens) for text in labelled.texts]
        parts = parts_of(labelled, np.random.default_rng([self.seed, 1]))
        arrays = {
            "targets": labelled.targets,
            "train": parts.train,
            "valid": parts.valid,
            "test": parts.test,
        }
        for name, array in arrays.items():
            save_array(folder / f"{name}.npy", array)
        result = {
            "classes": list(labelled.classes),
            "detail": dict(labelled.detail),
            "duplicates": parts.duplicates,
        }
        return list(zip(labelled.note_ids, labelled.patients, labelled.texts, strict=True)), result

    def _sample(self, rng: np.random.Generator) -> list[Row]:
        sample: KeySample[Row] = KeySample(self.max_documents, rng)
        for note in rows(self.source.corpus()):
            row = (note.note_id, note.patient_id, cut(note.text, self.max_tokens))
            sample.offer(note.note_id, lambda row=row: row)  # type: ignore[misc]
        return list(sample.values.values())

    def labels(self, store: Store) -> Labels:
        """Return the labelled notes and their split; the released texts are the original ones."""
        folder = store.folder(self)
        result = store.result(self)
        notes = list(rows(self.corpus(store)))
        ids, patients, texts = (
            [getattr(n, name) for n in notes] for name in ("note_id", "patient_id", "text")
        )
        targets, train, valid, test = (
            np.load(folder / f"{n}.npy", allow_pickle=False)
            for n in ("targets", "train", "valid", "test")
        )
        labelled = Labelled(
            ids, patients, texts, tuple(result["classes"]), targets, result["detail"]
        )
        return Labels(labelled, texts, Parts(train, valid, test, result["duplicates"]))


def cut(text: str, most: int) -> str:
    """Return a text up to its word number `most`."""
    if len(text) <= most:
        return text
    seen = 0
    for token in tokenize(text):
        seen += token.kind == Kind.WORD
        if seen == most and token.kind == Kind.WORD:
            return text[: token.end]
    return text


@dataclass(frozen=True)
class Setting:
    """One treatment of the notes.

    Attributes:
        kind: original, phi-remove, phi-replace or neighbours.
        n: number of neighbours. algorithm: of the vectors; "" without vectors.
    """

    kind: str
    n: str = ""
    algorithm: str = ""

    @property
    def label(self) -> str:
        """Name in tables."""
        names = {"original": "original", "phi-remove": "PHI removed", "phi-replace": "PHI replaced"}
        return names.get(self.kind, f"N = {self.n}, {self.algorithm}")


@dataclass(frozen=True)
class Neighbourhood(Train):
    """Train vectors on the original notes and compute the neighbours of every word."""

    stage = "neighbours"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write vectors and neighbour table. Raises InputError if there are too few words."""
        result = super().__call__(folder, store)
        vectors = trained(folder, result)
        eligible = output_floor(vectors, 1, need=REACH + 1, allow_small=True)
        save_neighbours(neighbours(vectors, REACH, eligible=eligible, threads=1), folder / TABLE)
        return result


@dataclass(frozen=True)
class Treat(NotesTask):
    """The notes under one setting; repetitions have independent draws."""

    prepare: Prepare
    setting: Setting
    near: Neighbourhood | None
    repetition: int
    seed: int

    stage = "treat"
    template = "{setting.label}, repetition {repetition}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes; return the example note and, for channels, findings on single tokens."""
        channel, tokens = self._channel(store)
        write_notes(self._treated(self.prepare.corpus(store), channel), folder / NOTES)
        example = memory_corpus([("example", "example", read_paper(__file__).printed["example"])])
        shown = [note.text for note in rows(self._treated(example, channel))]
        return {"example": "".join(shown), **tokens}

    def _channel(self, store: Store) -> tuple[Channel | None, Result]:
        if self.near is None:
            return None, {}
        vectors = self.near.load(store)
        table = load_neighbours(store.folder(self.near) / TABLE)
        assert vectors.counts is not None
        pool = common_pool(vectors.counts, table.eligible)
        n = NeighbourRange.model_validate(NeighbourRange.parse(self.setting.n))
        channel = neighbour_channel(vectors.words, n, table, pool)
        if self.repetition:
            return channel, {}

        # Common names and nothing else; no eponyms, because no patients are known here.
        def is_name_only(word: str) -> bool:
            return is_name(word, usual=True) and not lexical_classes(word) & LexicalClass.EPONYM

        names = name_outputs(channel, filter(is_name_only, vectors.words), vectors.counts)
        return channel, found(
            [*inversion(channel, vectors.counts), *names], setting=self.setting.label
        )

    def _treated(self, corpus: Corpus, channel: Channel | None) -> Iterator[pa.RecordBatch]:
        key = Key.from_seed(1_000_003 * self.seed + self.repetition)
        kind = self.setting.kind
        if channel is not None:
            obfuscator = Obfuscator(channel, key)
            return (obfuscator(batch).batch for batch in corpus.batches())
        if kind == "original":
            return corpus.batches()
        deidentifier = Deidentifier(key, mode="remove" if kind == "phi-remove" else "replace")
        return (done.batch for done in deidentify_corpus(corpus, deidentifier, serial))


@dataclass(frozen=True)
class Similar(Task):
    """Score retrained vectors on every list with protocol jamia; `fast`: fastText vectors for
    unknown words.
    """

    treat: Treat
    train: Train
    fast: Train | None
    lists: tuple[File, ...]

    stage = "word pairs"
    template = "word pairs of {train.title}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of all lists."""
        vectors = self.train.load(store)
        fast = self.fast.load(store) if self.fast else None
        findings = []
        for file in self.lists:
            rng = np.random.default_rng([self.treat.seed, 5])
            findings += similarity(
                vectors, read_pairs(file.path), rng, SimilarityTask(subwords=fast, draws=DRAWS)
            )
        own = [finding for finding in findings if finding.measure == "utility.similarity"]
        detail = {"algorithm": self.train.settings.algorithm, "n": self.treat.setting.n or "0"}
        return found(own, **detail, repetition=self.treat.repetition)


@dataclass(frozen=True)
class Classify(Task):
    """Train one model on one side, and predict the test notes of that side.

    Attributes:
        treat: source of the text. train: source of a network's initial vectors; None for linear
            models.
        shuffled: train on permuted labels (control).
    """

    prepare: Prepare
    treat: Treat
    model: str
    train: Train | None
    run: int
    max_tokens: int
    device: str
    size: Literal["small", "paper"] = "small"
    shuffled: bool = False

    stage = "classify"

    @property
    def title(self) -> str:
        """Description for messages."""
        start = f" on {self.train.title}" if self.train else ""
        return (
            f"{self.model}{start}, text:"
            f" {self.treat.setting.label}{', shuffled labels' if self.shuffled else ''}"
        )

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the predictions."""
        labels = self.prepare.labels(store)
        treated = self.treat.texts(store)
        # A note that the remover could not process is empty.
        texts = [treated.get(note) or "" for note in labels.labelled.note_ids]
        settings = ClassifierSettings(
            size=self.size, max_tokens=self.max_tokens, device=self.device
        )
        side = Side(texts, texts, self.train.load(store) if self.train else None)
        guesses = predict(
            self.model,
            labels.labelled,
            labels.parts,
            self.run,
            side,
            settings=settings,
            shuffled=self.shuffled,
        )
        save_array(folder / TEST, guesses.test)
        return {"detail": dict(guesses.detail)}

    def load(self, store: Store) -> Predictions:
        """Return the predictions of the finished task."""
        return Predictions(
            np.load(store.folder(self) / TEST, allow_pickle=False), store.result(self)["detail"]
        )


@dataclass(frozen=True)
class Compare(Task):
    """Compare the runs of a model on protected text with its runs on the original, on the same test
    notes.
    """

    original: tuple[Classify, ...]
    treated: tuple[Classify, ...]
    controls: tuple[Classify, ...]
    transfer: str = ""
    seed: int = 1

    stage = "compare"
    template = "compare {treated[0].title}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of both sides and of the loss."""
        first = self.treated[0]
        labels = first.prepare.labels(store)
        setting = first.treat.setting
        ours, theirs, controls = (
            [run.load(store) for run in side]
            for side in (self.original, self.treated, self.controls)
        )
        detail: dict[str, Any] = {**labels.detail, "model": first.model, "setting": setting.label}
        detail |= {f"treated_{name}": value for name, value in asdict(setting).items()}
        detail |= {
            "transfer": self.transfer,
            "vectors": first.train.settings.algorithm if first.train else "",
        }
        rng = np.random.default_rng([self.seed, 8])
        return found(compare(labels, ours, theirs, rng, detail, (controls, ())))
