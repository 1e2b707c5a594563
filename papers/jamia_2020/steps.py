"""The steps of paper A: notes protected with every setting, word pairs and classifiers.

The public API has `open_corpus`, `embed`, `Obfuscator` and `Deidentifier`. Deeper modules are
imported for what it lacks: a sample cut at a word, the channel's disclosure of single tokens, and
predictions of one classifier that several comparisons share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import clinveil
from clinveil import Key, Vectors
from clinveil.attacks import inversion
from clinveil.core import Kind, NotesSettings, tokenize, words
from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, KeySample, rows
from clinveil.lexicons import LexicalClass, is_name, lexical_classes
from clinveil.utility import (
    Classifier,
    Predictions,
    SimilarityTask,
    TrainTestTexts,
    classifier,
    compare,
    parts_of,
    predict,
    read_labelled,
    read_pairs,
    similarity,
)
from clinveil.utility import Task as ClassificationTask
from papers.jamia_2020.name_outputs import name_outputs
from papers.jamia_2020.settings import LINEAR, Algorithm, Model
from papers.running import Cache, StoredFindings
from papers.tables import as_dicts, labelled, read_paper

PAPER = Path(__file__).with_name("paper.toml")
PAIR_DRAWS = 200  # bootstrap draws over pairs in each repetition


@dataclass(frozen=True)
class Sample:
    """The notes of a run: a file, identified by its content, and what is taken from it.

    Attributes:
        separator: between several labels of one note; "" for one label per note.
    """

    path: Path
    digest: str
    columns: NotesSettings
    label: str | None
    max_documents: int
    max_tokens: int
    min_class: int
    separator: str
    seed: int


@dataclass(frozen=True)
class Setting:
    """One protection of the notes.

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


ORIGINAL = Setting("original")


@dataclass(frozen=True)
class VectorTraining:
    """Word vectors; the fields are those of `clinveil.embed`."""

    algorithm: Algorithm
    dim: int
    window: int
    negative: int
    epochs: int


@dataclass(frozen=True)
class Treatment:
    """Notes under one setting; repetitions have independent draws.

    Attributes:
        neighbours: training of the vectors that define the neighbours.
    """

    sample: Sample
    setting: Setting
    neighbours: VectorTraining | None = None
    repetition: int = 0


@dataclass(frozen=True)
class PairScoring:
    """Vectors of protected notes, scored on a list of word pairs.

    Attributes:
        subwords: training of fastText vectors for unknown words.
    """

    treatment: Treatment
    training: VectorTraining
    subwords: VectorTraining | None
    pairs: Path
    digest: str


@dataclass(frozen=True)
class NetworkOptions:
    """Training of the networks: words read of each note, epochs, patience (0: all epochs)."""

    max_tokens: int
    epochs: int
    patience: int
    device: str


@dataclass(frozen=True)
class ClassifierRun:
    """One model, trained and tested on the notes of one treatment.

    Attributes:
        start, training: notes and training of a network's initial vectors.
        shuffled: train on permuted labels (control).
    """

    treatment: Treatment
    model: Model
    seed: int
    options: NetworkOptions
    start: Treatment | None = None
    training: VectorTraining | None = None
    shuffled: bool = False


@dataclass(frozen=True)
class SideComparison:
    """Runs of a model on protected notes and on the original, on the same test notes.

    Attributes:
        transfer: description of a transfer of the supplement, or "".
    """

    original: tuple[ClassifierRun, ...]
    treated: tuple[ClassifierRun, ...]
    controls: tuple[ClassifierRun, ...]
    transfer: str = ""


@dataclass(frozen=True)
class Documents:
    """Sampled notes.

    Attributes:
        table: note id, patient id and text. task: their labels and the split, if there is a label.
    """

    table: pa.Table
    task: ClassificationTask | None

    def corpus_counts(self) -> dict[str, int]:
        """Return the counts of Table 2."""
        texts = [words(text) for text in self.table[TEXT].to_pylist()]
        return {
            "notes": self.table.num_rows,
            "patients": len(set(self.table[PATIENT_ID].to_pylist())),
            "tokens": sum(map(len, texts)),
            "types": len({word for text in texts for word in text}),
        }


@dataclass(frozen=True)
class Protected:
    """Notes under one setting.

    Attributes:
        table: as in `Documents`; notes that could not be treated are missing.
        example: the example note under the setting. findings: on single tokens, of channels.
    """

    table: pa.Table
    example: str
    findings: StoredFindings = field(default_factory=list)


def sampled(cache: Cache, sample: Sample) -> Documents:
    """Sample and cut the notes; with a label, split them by patient and near-duplicates."""
    rng = np.random.default_rng([sample.seed, 0])
    labels = () if sample.label is None else (sample.label,)
    corpus = clinveil.open_corpus(sample.path, sample.columns, label=labels)
    if sample.label is None:
        notes: KeySample[tuple[str, str, str]] = KeySample(sample.max_documents, rng)
        for note in rows(corpus):
            row = (note.note_id, note.patient_id, cut(note.text, sample.max_tokens))
            notes.offer(note.note_id, lambda row=row: row)  # type: ignore[misc]
        ids, patients, texts = zip(*notes.values.values(), strict=True)
        return Documents(_table(ids, patients, texts), None)
    classified = read_labelled(
        corpus.batches(),
        sample.label,
        rng,
        limit=sample.max_documents,
        min_class=sample.min_class,
        separator=sample.separator or None,
    )
    classified.texts[:] = [cut(text, sample.max_tokens) for text in classified.texts]
    parts = parts_of(classified, np.random.default_rng([sample.seed, 1]))
    table = _table(classified.note_ids, classified.patients, classified.texts)
    return Documents(table, ClassificationTask(classified, classified.texts, parts))


def _table(ids: Any, patients: Any, texts: Any) -> pa.Table:
    columns = {NOTE_ID: ids, PATIENT_ID: patients, TEXT: texts}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def cut(text: str, limit: int) -> str:
    """Return a text up to its word number `limit`."""
    if len(text) <= limit:
        return text
    n_words = 0
    for token in tokenize(text):
        n_words += token.kind == Kind.WORD
        if n_words == limit and token.kind == Kind.WORD:
            return text[: token.end]
    return text


def trained(cache: Cache, treatment: Treatment, training: VectorTraining) -> Vectors:
    """Train word vectors on the notes of a treatment, with one worker for bitwise equal results.

    Raises InputError if there are too few words.
    """
    notes = cache.run(protected, treatment).table
    return clinveil.embed(
        notes,
        seed=treatment.sample.seed + 1_000 * treatment.repetition,
        workers=1,
        algorithm=training.algorithm,
        dim=training.dim,
        window=training.window,
        negative=training.negative,
        epochs=training.epochs,
    )


def protected(cache: Cache, treatment: Treatment) -> Protected:
    """Protect the notes and the example note; the first repetition has findings on tokens."""
    notes = cache.run(sampled, treatment.sample).table
    text = read_paper(PAPER).sentences["example"]
    example = _table(["example"], ["example"], [text])
    key = Key.from_seed(1_000_003 * treatment.sample.seed + treatment.repetition)
    setting = treatment.setting
    if setting.kind == "original":
        return Protected(notes, text)
    if treatment.neighbours is None:
        mode: Literal["remove", "replace"] = "replace"
        if setting.kind == "phi-remove":
            mode = "remove"
        # Without the second opinion, the notes do not depend on the extras that are installed.
        detection = {"second_opinion": "off"}
        deidentifier = clinveil.Deidentifier(mode, key=key, settings=detection)
        return Protected(deidentifier.transform(notes), _text(deidentifier.transform(example)))
    vectors = cache.run(trained, Treatment(treatment.sample, ORIGINAL), treatment.neighbours)
    # Algorithm 1 as published: every word may be an output, and every draw is independent.
    obfuscator = clinveil.Obfuscator(
        setting.n,
        vectors=vectors,
        key=key,
        settings={"channel": {"min_patients": 1, "allow_small": True}},
    )
    obfuscator.fit(notes)
    findings = [] if treatment.repetition else _disclosure(obfuscator.channel_, vectors, setting)
    return Protected(obfuscator.transform(notes), _text(obfuscator.transform(example)), findings)


def _text(table: pa.Table) -> str:
    return "".join(table[TEXT].to_pylist())


def _disclosure(channel: clinveil.Channel, vectors: Vectors, setting: Setting) -> StoredFindings:
    """Return the findings on single tokens of a channel."""
    assert vectors.counts is not None
    names = name_outputs(channel, filter(_is_name_only, vectors.words), vectors.counts)
    findings = [*inversion(channel, vectors.counts), *names]
    return as_dicts(labelled(finding, setting.label) for finding in findings)


def _is_name_only(word: str) -> bool:
    """Return whether a word is a common name and nothing else; patients are not known here."""
    return is_name(word, usual=True) and not lexical_classes(word) & LexicalClass.EPONYM


def pair_findings(cache: Cache, scoring: PairScoring) -> StoredFindings:
    """Score retrained vectors on a list of word pairs with protocol jamia."""
    treatment = scoring.treatment
    vectors = cache.run(trained, treatment, scoring.training)
    subwords = None
    if scoring.subwords is not None:
        subwords = cache.run(trained, treatment, scoring.subwords)
    findings = similarity(
        vectors,
        read_pairs(scoring.pairs),
        np.random.default_rng([treatment.sample.seed, 5]),
        SimilarityTask(subwords=subwords, draws=PAIR_DRAWS),
    )
    labels = (scoring.training.algorithm, treatment.setting.n or "0")
    return as_dicts(
        labelled(finding, *labels)
        for finding in findings
        if finding.measure == "utility.similarity"
    )


def predictions(cache: Cache, run: ClassifierRun) -> Predictions:
    """Train one model, and predict the test notes."""
    task = _task(cache, run.treatment.sample)
    table = cache.run(protected, run.treatment).table
    texts_by_note = dict(zip(table[NOTE_ID].to_pylist(), table[TEXT].to_pylist(), strict=True))
    # A note that could not be treated is empty.
    texts = [texts_by_note.get(note) or "" for note in task.labelled.note_ids]
    return predict(
        _classifier(cache, run),
        task.labelled,
        task.parts,
        run.seed,
        TrainTestTexts(texts, texts),
        shuffled=run.shuffled,
    )


def _task(cache: Cache, sample: Sample) -> ClassificationTask:
    task = cache.run(sampled, sample).task
    assert task is not None
    return task


def _classifier(cache: Cache, run: ClassifierRun) -> Classifier:
    if run.model in LINEAR:
        return classifier(run.model)
    from papers.jamia_2020.training import TextNetwork

    assert run.start is not None and run.training is not None
    return TextNetwork(
        name=run.model,
        vectors=cache.run(trained, run.start, run.training),
        max_tokens=run.options.max_tokens,
        epochs=run.options.epochs,
        patience=run.options.patience or float("inf"),
        device=run.options.device,
    )


def compared(cache: Cache, comparison: SideComparison) -> StoredFindings:
    """Return the scores of both sides, and the loss."""
    run = comparison.treated[0]
    task = _task(cache, run.treatment.sample)
    setting = run.treatment.setting
    original, treated, controls = (
        [cache.run(predictions, single) for single in runs]
        for runs in (comparison.original, comparison.treated, comparison.controls)
    )
    labels = (
        setting.label,
        task.labelled.label,
        run.model,
        run.training.algorithm if run.training else "",
        comparison.transfer,
    )
    rng = np.random.default_rng([run.treatment.sample.seed, 8])
    return as_dicts(compare(task, original, treated, rng, labels, shuffled=(controls, ())))
