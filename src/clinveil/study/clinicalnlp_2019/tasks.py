"""The tasks of paper C: notes in MedText's form, split (section 3.1), synthetic notes, and measures
of both.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout import AuditModel
from clinveil.attacks.models.leaveout.data import load_data
from clinveil.attacks.models.leaveout.pdtp import closed_form
from clinveil.attacks.models.membership import FOLDS, infer_membership, model_of_text, written
from clinveil.attacks.text.copies import copies
from clinveil.core.errors import InputError
from clinveil.core.files import private_text
from clinveil.core.finding import Finding
from clinveil.core.types import SmallInts
from clinveil.corpus.corpus import Corpus, rows
from clinveil.corpus.medtext import SplitSizes, dictionary, split_notes, with_unknown
from clinveil.corpus.medtext.split import PARTS
from clinveil.corpus.open import open_corpus
from clinveil.lm.files import load_model
from clinveil.lm.model import LanguageModel, fit_of
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import PlainNotes, encode, read_notes
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.vocabulary import END, Vocabulary, WordVocabulary
from clinveil.scale.tasks import Result, Store
from clinveil.study.clinicalnlp_2019.settings import REAL, UNIGRAM
from clinveil.study.engine import Task, found
from clinveil.study.inputs import NOTES, File, NotesTask, Source, Train, write_notes
from clinveil.utility.evaluations._case_lines import Lines
from clinveil.utility.evaluations._sentence_pairs import nli_parts, read_sentence_pairs
from clinveil.utility.evaluations.casing import CasingSettings, casing
from clinveil.utility.evaluations.nli import NliSettings, nli
from clinveil.utility.evaluations.perplexity import perplexity_findings
from clinveil.utility.evaluations.similarity import SimilarityTask, similarity
from clinveil.utility.pairs import read_pairs

MEASURES = "utility and audits"  # stage of the measures without word vectors


@dataclass(frozen=True)
class Parts(Task):
    """Split the notes and count their words."""

    source: Source
    sizes: SplitSizes
    by_note: bool
    min_count: int
    seed: int

    stage = "prepare"
    template = "notes in MedText's form, split"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the parts; return the counts of Table 1."""
        notes = read_notes(self.source.corpus())
        lengths = [len(text.split()) for text in notes.texts]
        rng = np.random.default_rng([self.seed, 1])
        try:
            chosen = split_notes(notes.patients, lengths, self.sizes, rng, by_note=self.by_note)
        except InputError as error:
            raise InputError(error.what, hint="pass a smaller --words, --valid or --test") from None
        parts = {name: notes.rows(chosen[name]) for name in PARTS}
        for name in ("train", "test"):  # before the slow training starts
            if (n := len(set(by_unit(parts[name], self.by_note).patients))) < FOLDS:
                message = (
                    f"the {name} part has {n} patients, and membership inference requires {FOLDS}"
                )
                raise InputError(message, hint="pass more notes, or another --words or --test")
        every = notes.rows([row for name in PARTS for row in chosen[name]])
        words = dictionary(every.texts, every.patients, min_count=self.min_count)
        kept = frozenset(words.words)
        for name, part in parts.items():
            texts = tuple(with_unknown(text, kept) for text in part.texts)
            write_notes(
                PlainNotes(texts, part.note_ids, part.patients).as_corpus().batches(),
                folder / f"{name}.parquet",
            )
        private_text(folder / "words.json", json.dumps(list(words.words)))
        counts: dict[str, Any] = {f"notes_{name}": len(part) for name, part in parts.items()}
        counts |= {f"words_{name}": part.words for name, part in parts.items()}
        return {
            "counts": {
                "notes": counts | {"vocabulary": len(words.words), "unknown": words.unknown_share}
            }
        }

    def load(self, store: Store, name: str) -> PlainNotes:
        """Return one part of the finished split."""
        return plain_notes(open_corpus(store.folder(self) / f"{name}.parquet"))

    def vocabulary(self, store: Store) -> WordVocabulary:
        """Return the vocabulary of all parts, as in paper C."""
        return WordVocabulary(
            json.loads((store.folder(self) / "words.json").read_text(encoding="utf-8"))
        )


def plain_notes(corpus: Corpus) -> PlainNotes:
    """Return the notes of a corpus in order, unchanged."""
    texts, ids, patients = zip(
        *((note.text, note.note_id, note.patient_id) for note in rows(corpus)), strict=True
    )
    return PlainNotes(texts, ids, patients)


@dataclass(frozen=True)
class Written(NotesTask):
    """One corpus: real training notes, or notes of a unigram or of a model of an audit.

    Attributes:
        label: `real notes`, `unigram` or `lstm, dropout 0.5`. model: the model that wrote the
            notes, or None.
    """

    label: str
    parts: Parts
    model: AuditModel | None = None

    stage = "corpora"
    template = "notes of: {label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes in MedText's form."""
        notes = self._notes(store)
        write_notes(notes.as_corpus().batches(), folder / NOTES)
        return {"notes": len(notes), "words": notes.words}

    def _notes(self, store: Store) -> PlainNotes:
        train = self.parts.load(store, "train")
        if self.label == REAL:
            return train
        if self.model is not None:
            ids = np.load(store.folder(self.model) / "text-ids.npy", allow_pickle=False)
            return decoded(ids, load_data(self.model.data).vocabulary)
        words = self.parts.vocabulary(store)
        encoded = encode(train.texts, words)
        how = SamplingConfig(batch_size_for(len(encoded)), int(encoded.lengths.max()))
        notes = written(train_unigram(encoded, words), encoded.ids.size, self.parts.seed, how)
        return decoded(notes.ids, words)

    def load(self, store: Store) -> PlainNotes:
        """Return the notes of the finished task."""
        return plain_notes(self.corpus(store))


def decoded(ids: SmallInts, vocabulary: Vocabulary) -> PlainNotes:
    """Return the notes of a sequence of tokens with ends, without empty notes."""
    ends = np.flatnonzero(ids == END)
    pieces = np.split(ids, ends + 1)
    texts = [
        text for piece in pieces if piece.size > 1 and (text := vocabulary.decode(piece.tolist()))
    ]
    names = tuple(f"synthetic-{i:06d}" for i in range(1, len(texts) + 1))
    return PlainNotes(tuple(texts), names, names)


@dataclass(frozen=True)
class Leaks(Task):
    """Copies, and membership inference from the text (and from the model) of one corpus."""

    corpus: Written
    seed: int

    stage = MEASURES
    template = "copies and membership of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return all findings; the real notes are the positive control, a generator that copies."""
        parts = self.corpus.parts
        rng = np.random.default_rng([self.seed, 9])
        train, valid, test = (
            by_unit(parts.load(store, name), parts.by_note) for name in ("train", "valid", "test")
        )
        notes = self.corpus.load(store)
        findings = copies(notes.as_corpus(), train.as_corpus(), test.as_corpus(), rng)
        text = model_of_text(notes, parts.vocabulary(store))
        findings += infer_membership(
            text, train, test, rng, reference=valid, detail={"from": "released notes"}
        )
        if self.corpus.model is not None:
            model = load_model(store.folder(self.corpus.model) / "model")[0]
            blind = next(f for f in findings if f.measure == "attack.membership_blind")
            by = {"from": "the model"}
            findings += infer_membership(
                model, train, test, rng, reference=valid, detail=by, blind=blind
            )[1:]
        return found(findings, corpus=self.corpus.label)


def by_unit(notes: PlainNotes, by_note: bool) -> PlainNotes:
    """Return the notes with each note as its own patient if the split is by note."""
    return PlainNotes(notes.texts, notes.note_ids, notes.note_ids) if by_note else notes


@dataclass(frozen=True)
class UnigramScore(Task):
    """S-PDTP of the unigram, in closed form, for every note."""

    parts: Parts

    stage = MEASURES
    template = "S-PDTP of the unigram"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the score over all patients."""
        rng = np.random.default_rng([self.parts.seed, 10])
        return found(closed_form(self.parts.load(store, "train"), rng), corpus=UNIGRAM)


@dataclass(frozen=True)
class Casing(Task):
    """Restore the letter case of all real test notes with a character model of a corpus."""

    corpus: Written
    how: CasingSettings
    seed: int

    stage = MEASURES
    template = "letter case of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return F1 of the model and of the usual casing of words."""
        parts = self.corpus.parts
        dev, test = (parts.load(store, name) for name in ("valid", "test"))
        three = (
            lines_of(self.corpus.load(store), "training notes"),
            lines_of(dev, "validation notes"),
            lines_of(test, "test notes", by_note=parts.by_note),
        )
        findings = casing(three, np.random.default_rng([self.seed, 7]), self.how)
        return found(findings, corpus=self.corpus.label, notes=len(test), lines=len(three[2]))


def lines_of(notes: PlainNotes, name: str, *, by_note: bool = False) -> Lines:
    """Return all lines of notes, each with its patient, or with its note if notes count as
    patients.
    """
    rows = zip(notes.texts, notes.note_ids if by_note else notes.patients, strict=True)
    pairs = [(line, owner) for text, owner in rows for line in text.split("\n")]
    return Lines(name, [line for line, _ in pairs], [owner for _, owner in pairs])


@dataclass(frozen=True)
class Predicted(Task):
    """Perplexity of the real validation and test notes under a model, or under n-grams of a
    corpus.
    """

    corpus: Written

    stage = MEASURES
    template = "perplexity of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the perplexity of the model (if there is one) and of n-grams of the corpus."""
        parts = self.corpus.parts
        words = self.corpus.parts.vocabulary(store)
        models: list[tuple[str, LanguageModel]] = []
        models.append(("n-grams of the notes", model_of_text(self.corpus.load(store), words)))
        if self.corpus.model is not None:
            models.append(("the model", load_model(store.folder(self.corpus.model) / "model")[0]))
        elif self.corpus.label == UNIGRAM:
            models.append(
                ("the model", train_unigram(encode(parts.load(store, "train").texts, words), words))
            )
        rows: list[dict[str, Any]] = []
        for name in ("valid", "test"):
            part = parts.load(store, name)
            notes = encode(part.texts, words)
            for by, model in models:
                findings = perplexity_findings(model, fit_of(model, notes), part, name)
                rows += found(findings, corpus=self.corpus.label, by=by)["findings"]
        return {"findings": rows}


@dataclass(frozen=True)
class Similar(Task):
    """Compare vectors with human scores, protocol clinicalnlp, on pairs that are frequent in the
    real notes.
    """

    corpus: Written
    train: Train
    pairs: tuple[File, ...]
    min_count: int

    stage = "word vectors"
    template = "word pairs of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of all lists; terms are counted in lower case in the real notes
        (paper C's code).
        """
        vectors = self.train.load(store)
        texts = self.corpus.parts.load(store, "train").texts
        frequencies = Counter(token for text in texts for token in text.split())
        own = SimilarityTask(
            protocol="clinicalnlp", frequencies=frequencies, min_count=self.min_count
        )
        findings: list[Finding] = []
        for file in self.pairs:
            rng = np.random.default_rng([self.train.seed, 5])
            try:
                findings += similarity(vectors, read_pairs(file.path), rng, own)
            except InputError as error:
                detail = {"why": error.what, "list": file.path.name}
                findings.append(
                    Finding(
                        "utility.similarity", None, 0, "higher", detail=detail, unit="word pairs"
                    )
                )
        return found(findings, corpus=self.corpus.label)


@dataclass(frozen=True)
class Inference(Task):
    """Natural language inference with paper C's bag-of-words model and some vectors."""

    corpus: Written
    train: Train
    pairs: File
    how: NliSettings

    stage = "word vectors"
    template = "inference with vectors of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the accuracy with the vectors and with random vectors."""
        rng = np.random.default_rng([self.train.seed, 6])
        parts = nli_parts(read_sentence_pairs(self.pairs.path), None, None, rng)
        return found(nli(self.train.load(store), parts, rng, self.how), corpus=self.corpus.label)
