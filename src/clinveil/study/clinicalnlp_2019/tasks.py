"""Tasks that measure utility and leaks of each corpus of paper C."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.attack import Context
from clinveil.attacks.models.canaries import Canaries as CanaryAttack
from clinveil.attacks.models.leaveout.pdtp import closed_form
from clinveil.attacks.models.membership import infer_membership, model_of_text
from clinveil.attacks.text.copies import copies
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.lm.files import load_model
from clinveil.lm.model import LanguageModel, fit_of
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import PlainNotes, encode
from clinveil.lm.recipe import ModelSettings
from clinveil.scale.tasks import Result, Store
from clinveil.study.clinicalnlp_2019.corpora import Parts, Written
from clinveil.study.clinicalnlp_2019.settings import UNIGRAM
from clinveil.study.engine import Task, found
from clinveil.study.inputs import File, Train
from clinveil.utility.casing import CasingSettings, casing
from clinveil.utility.casing.lines import Lines
from clinveil.utility.nli import NliSettings, nli
from clinveil.utility.nli.pairs import nli_parts, read_sentence_pairs
from clinveil.utility.pairs import read_pairs
from clinveil.utility.perplexity import perplexity_findings
from clinveil.utility.similarity import SimilarityTask, similarity


class WithoutVectors(Task):
    """A measure on a corpus without word vectors."""

    stage = "utility and audits"


@dataclass(frozen=True)
class Leaks(WithoutVectors):
    """Copies, and membership inference from the text (and from the model) of one corpus."""

    corpus: Written
    seed: int

    template = "copies and membership of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return all findings; the real notes are the positive control, a generator that copies."""
        parts, rng = self.corpus.parts, np.random.default_rng([self.seed, 9])
        train, valid, test = (by_unit(parts.load(store, name), parts.by_note) for name in ("train", "valid", "test"))
        notes = self.corpus.load(store)
        findings = copies(notes.as_corpus(), train.as_corpus(), test.as_corpus(), rng)
        text = model_of_text(notes, parts.vocabulary(store))
        findings += infer_membership(text, train, test, rng, reference=valid, detail={"from": "released notes"})
        if self.corpus.model is not None:
            model = load_model(store.folder(self.corpus.model) / "model")[0]
            blind = next(f for f in findings if f.measure == "attack.membership_blind")
            by = {"from": "the model"}
            findings += infer_membership(model, train, test, rng, reference=valid, detail=by, blind=blind)[1:]
        return found(findings, corpus=self.corpus.label)


def by_unit(notes: PlainNotes, by_note: bool) -> PlainNotes:
    """Return the notes with each note as its own patient if the split is by note."""
    return PlainNotes(notes.texts, notes.note_ids, notes.note_ids) if by_note else notes


@dataclass(frozen=True)
class Canaries(WithoutVectors):
    """Canaries in an audit copy of one model; `each`: canaries of each kind."""

    parts: Parts
    label: str
    how: ModelSettings
    each: int
    seed: int

    template = "canaries: {label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return exposure and extraction."""
        attack = CanaryAttack(lm=self.how, seed=self.seed, each=self.each)
        context = Context(training=self.parts.load(store, "train"), workers=1)
        return found(attack(context, np.random.default_rng([self.seed, 0xCA])), corpus=self.label)


@dataclass(frozen=True)
class UnigramScore(WithoutVectors):
    """S-PDTP of the unigram, in closed form, for every note."""

    parts: Parts

    template = "S-PDTP of the unigram"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the score over all patients."""
        rng = np.random.default_rng([self.parts.seed, 10])
        return found(closed_form(self.parts.load(store, "train"), rng), corpus=UNIGRAM)


@dataclass(frozen=True)
class Casing(WithoutVectors):
    """Restore the letter case of all real test notes with a character model of a corpus."""

    corpus: Written
    how: CasingSettings
    seed: int

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
    """Return all lines of notes, each with its patient, or with its note if notes count as patients."""
    rows = zip(notes.texts, notes.note_ids if by_note else notes.patients, strict=True)
    pairs = [(line, owner) for text, owner in rows for line in text.split("\n")]
    return Lines(name, [line for line, _ in pairs], [owner for _, owner in pairs])


@dataclass(frozen=True)
class Predicted(WithoutVectors):
    """Perplexity of the real validation and test notes under a model, or under n-grams of a corpus."""

    corpus: Written

    template = "perplexity of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the perplexity of the model (if there is one) and of n-grams of the corpus."""
        parts, words = self.corpus.parts, self.corpus.parts.vocabulary(store)
        models: list[tuple[str, LanguageModel]] = []
        models.append(("n-grams of the notes", model_of_text(self.corpus.load(store), words)))
        if self.corpus.model is not None:
            models.append(("the model", load_model(store.folder(self.corpus.model) / "model")[0]))
        elif self.corpus.label == UNIGRAM:
            models.append(("the model", train_unigram(encode(parts.load(store, "train").texts, words), words)))
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
    """Compare vectors with human scores, protocol clinicalnlp, on pairs that are frequent in the real notes."""

    corpus: Written
    train: Train
    pairs: tuple[File, ...]
    min_count: int

    stage = "word vectors"
    template = "word pairs of: {corpus.label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Return the findings of all lists; terms are counted in lower case in the real notes (paper C's code)."""
        vectors = self.train.load(store)
        texts = self.corpus.parts.load(store, "train").texts
        frequencies = Counter(token for text in texts for token in text.split())
        own = SimilarityTask(protocol="clinicalnlp", frequencies=frequencies, min_count=self.min_count)
        findings: list[Finding] = []
        for file in self.pairs:
            rng = np.random.default_rng([self.train.seed, 5])
            try:
                findings += similarity(vectors, read_pairs(file.path), rng, own)
            except InputError as error:
                detail = {"why": error.what, "list": file.path.name}
                findings.append(Finding("utility.similarity", None, 0, "higher", detail=detail, unit="word pairs"))
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
