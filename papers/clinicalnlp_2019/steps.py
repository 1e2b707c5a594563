"""The steps of paper C: the split (section 3.1), synthetic notes, and measures of both."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import clinveil
from clinveil import Finding, InputError, Vectors
from clinveil.attacks import (
    FOLDS,
    RELEASED,
    closed_form,
    copies,
    infer_membership,
    model_of_text,
    written,
)
from clinveil.core import NotesSettings, SmallInts
from clinveil.corpus import dictionary, with_unknown
from clinveil.lm import (
    END,
    LanguageModel,
    PlainNotes,
    SamplingConfig,
    Vocabulary,
    WordVocabulary,
    batch_size_for,
    encode,
    fit_of,
    load_model,
    read_notes,
    train_unigram,
)
from clinveil.stats import MeasureSpec
from clinveil.utility import SimilarityTask, perplexity_findings, read_pairs, similarity
from clinveil.vectors import VectorSettings, token_lines, train
from papers.clinicalnlp_2019.case_lines import Lines
from papers.clinicalnlp_2019.casing import CasingSettings, casing
from papers.clinicalnlp_2019.nli import InferenceSettings, nli
from papers.clinicalnlp_2019.sentence_pairs import nli_parts, read_sentence_pairs
from papers.clinicalnlp_2019.settings import UNIGRAM, SyntheticSettings, corpus_label
from papers.clinicalnlp_2019.split import PARTS, SplitSizes, split_notes
from papers.running import Cache, StoredFindings, digest_of, say
from papers.tables import as_dicts, labelled


@dataclass(frozen=True)
class Inputs:
    """The notes, with a hash of their rows, and the settings of their split."""

    notes: Path
    columns: NotesSettings
    digest: str
    sizes: SplitSizes
    by_note: bool
    min_count: int
    seed: int

    @classmethod
    def read(cls, notes: Path, settings: SyntheticSettings) -> Inputs:
        """Read and hash the notes once. Raises InputError for invalid notes."""
        return cls(
            notes=notes,
            columns=settings.notes,
            digest=digest_of(clinveil.open_corpus(notes, settings.notes)),
            sizes=SplitSizes(valid=settings.valid, test=settings.test, words=settings.words),
            by_note=settings.by_note,
            min_count=settings.min_count,
            seed=settings.seed,
        )


@dataclass(frozen=True)
class NoteParts:
    """Training, validation and test notes in MedText's form, with rare words as `<unk>`.

    Attributes:
        words: the vocabulary of all parts, as in paper C. unknown_share: of words that are not in
            it.
        by_note: whether each note counts as a patient.
    """

    train: PlainNotes
    valid: PlainNotes
    test: PlainNotes
    words: tuple[str, ...] = field(repr=False)
    unknown_share: float
    by_note: bool

    def part(self, name: str) -> PlainNotes:
        """Return a part by its name in `PARTS`."""
        return {"train": self.train, "valid": self.valid, "test": self.test}[name]

    def audited(self, name: str) -> PlainNotes:
        """Return a part with its patients as the unit, or its notes."""
        return by_unit(self.part(name), self.by_note)

    @property
    def vocabulary(self) -> WordVocabulary:
        """The vocabulary of all parts."""
        return WordVocabulary(self.words)


def by_unit(notes: PlainNotes, by_note: bool) -> PlainNotes:
    """Return the notes with each note as its own patient if the split is by note."""
    return PlainNotes(notes.texts, notes.note_ids, notes.note_ids) if by_note else notes


def split(cache: Cache, inputs: Inputs) -> NoteParts:
    """Return the parts of the notes. Raises InputError if they are too small."""
    say("split of the notes")
    notes = read_notes(clinveil.open_corpus(inputs.notes, inputs.columns))
    lengths = [len(text.split()) for text in notes.texts]
    rng = np.random.default_rng([inputs.seed, 1])
    try:
        rows = split_notes(notes.patients, lengths, inputs.sizes, rng, by_note=inputs.by_note)
    except InputError as error:
        raise InputError(error.problem, hint="reduce words, valid or test") from None
    for name in ("train", "test"):  # before the slow training starts
        people = len(set(by_unit(notes.rows(rows[name]), inputs.by_note).patients))
        if people < FOLDS:
            message = (
                f"the {name} part has {people} patients, and membership inference requires {FOLDS}"
            )
            raise InputError(message, hint="pass more notes, or change words or test")
    every = notes.rows([row for name in PARTS for row in rows[name]])
    known = dictionary(every.texts, every.patients, min_count=inputs.min_count)
    kept = frozenset(known.words)

    def part(name: str) -> PlainNotes:
        original = notes.rows(rows[name])
        texts = tuple(with_unknown(text, kept) for text in original.texts)
        return PlainNotes(texts, original.note_ids, original.patients)

    return NoteParts(
        train=part("train"),
        valid=part("valid"),
        test=part("test"),
        words=known.words,
        unknown_share=known.unknown_share,
        by_note=inputs.by_note,
    )


@dataclass(frozen=True)
class ComparedNotes:
    """One compared corpus: the real training notes, or notes of a unigram or of an LSTM.

    Attributes:
        label: `real notes`, `unigram` or `lstm, dropout 0.5`. model: the folder of the LSTM.
    """

    label: str
    notes: PlainNotes
    model: Path | None = None


def unigram_notes(cache: Cache, parts: NoteParts, seed: int) -> PlainNotes:
    """Return notes of a unigram, with as many tokens as the training notes."""
    words = parts.vocabulary
    encoded = encode(parts.train.texts, words)
    sampling = SamplingConfig(batch_size_for(len(encoded)), int(encoded.lengths.max()))
    sampled = written(train_unigram(encoded, words), encoded.ids.size, seed, sampling)
    return decoded(sampled.ids, words)


def decoded(ids: SmallInts, vocabulary: Vocabulary) -> PlainNotes:
    """Return the notes of a sequence of tokens with ends, without empty notes."""
    ends = np.flatnonzero(ids == END)
    pieces = np.split(ids, ends + 1)
    texts = [
        text for piece in pieces if piece.size > 1 and (text := vocabulary.decode(piece.tolist()))
    ]
    names = tuple(f"synthetic-{number:06d}" for number in range(1, len(texts) + 1))
    return PlainNotes(tuple(texts), names, names)


def leaks(cache: Cache, compared: ComparedNotes, parts: NoteParts, seed: int) -> StoredFindings:
    """Return copies, and membership inference from the text (and from the model) of a corpus.

    The real notes are the positive control, a generator that copies.
    """
    say(f"copies and membership: {compared.label}")
    rng = np.random.default_rng([seed, 9])
    members = parts.audited("train")
    others = parts.audited("test")
    reference = parts.audited("valid")
    findings = copies(compared.notes.as_corpus(), members.as_corpus(), others.as_corpus(), rng)
    text_model = model_of_text(compared.notes, parts.vocabulary)
    findings += infer_membership(
        text_model, members, others, rng, reference=reference, attacked=RELEASED
    )
    if compared.model is not None:
        blind = next(f for f in findings if f.measure == "attack.membership_blind")
        findings += infer_membership(
            load_model(compared.model)[0],
            members,
            others,
            rng,
            reference=reference,
            blind=blind,
        )[1:]
    return _of_corpus(findings, compared.label)


def unigram_score(cache: Cache, parts: NoteParts, seed: int) -> StoredFindings:
    """Return S-PDTP of the unigram in closed form, over all patients."""
    rng = np.random.default_rng([seed, 10])
    return _of_corpus(closed_form(parts.train, rng), UNIGRAM)


def letter_case(
    cache: Cache, compared: ComparedNotes, parts: NoteParts, settings: CasingSettings, seed: int
) -> StoredFindings:
    """Return F1 of the letter case of all real test notes, restored with a character model of a
    corpus.
    """
    say(f"letter case: {compared.label}")
    test = lines_of(parts.test, "test notes", by_note=parts.by_note)
    lines = (
        lines_of(compared.notes, "training notes"),
        lines_of(parts.valid, "validation notes"),
        test,
    )
    findings = casing(lines, np.random.default_rng([seed, 7]), settings)
    counts = {"notes": len(parts.test), "lines": len(test)}
    findings = [replace(f, numbers={**f.numbers, **counts}) for f in findings]
    return _of_corpus(findings, compared.label)


def lines_of(notes: PlainNotes, name: str, *, by_note: bool = False) -> Lines:
    """Return all lines of notes, each with its patient, or with its note if notes count as
    patients.
    """
    rows = zip(notes.texts, notes.note_ids if by_note else notes.patients, strict=True)
    pairs = [(line, owner) for text, owner in rows for line in text.split("\n")]
    return Lines(name, [line for line, _ in pairs], [owner for _, owner in pairs])


def perplexity(cache: Cache, compared: ComparedNotes, parts: NoteParts) -> StoredFindings:
    """Return the perplexity of the real validation and test notes under n-grams of a corpus, and
    under its model, if there is one.
    """
    say(f"perplexity: {compared.label}")
    words = parts.vocabulary
    models: list[tuple[str, LanguageModel]] = [
        ("n-grams of the notes", model_of_text(compared.notes, words))
    ]
    if compared.model is not None:
        models.append(("the model", load_model(compared.model)[0]))
    elif compared.label == UNIGRAM:
        models.append(("the model", train_unigram(encode(parts.train.texts, words), words)))
    findings: list[Finding] = []
    for name in ("valid", "test"):
        notes = parts.part(name)
        encoded = encode(notes.texts, words)
        for model_name, model in models:
            findings += [
                labelled(finding, model_name)
                for finding in perplexity_findings(model, fit_of(model, encoded), notes, name)
            ]
    return _of_corpus(findings, compared.label)


def train_vectors(cache: Cache, compared: ComparedNotes, dim: int, seed: int) -> Vectors:
    """Return word vectors of a corpus as in paper C: windows do not cross lines, and tokens are not
    changed.
    """
    say(f"word vectors: {compared.label}")
    settings = VectorSettings(
        algorithm="skipgram", dim=dim, window=5, negative=10, min_count=5, epochs=10
    )
    with TemporaryDirectory() as scratch:
        return train(
            compared.notes.as_corpus(),
            settings,
            seed=seed,
            workers=1,
            scratch=Path(scratch) / "counts",
            split=token_lines,
        )


@dataclass(frozen=True)
class InputFile:
    """A file of word or sentence pairs, with a hash of its content."""

    path: Path
    digest: str


def word_pairs(
    cache: Cache,
    compared: ComparedNotes,
    parts: NoteParts,
    lists: tuple[InputFile, ...],
    min_count: int,
    dim: int,
    seed: int,
) -> StoredFindings:
    """Return the correlation of vectors with human scores, protocol clinicalnlp, on pairs that are
    frequent in the real notes.

    Terms are counted in lower case, as in paper C's code.
    """
    vectors = cache.run(train_vectors, compared, dim, seed)
    frequencies = Counter(token for text in parts.train.texts for token in text.split())
    task = SimilarityTask(protocol="clinicalnlp", frequencies=frequencies, min_count=min_count)
    findings: list[Finding] = []
    for pairs in lists:
        rng = np.random.default_rng([seed, 5])
        try:
            findings += similarity(vectors, read_pairs(pairs.path), rng, task)
        except InputError as error:
            spec = MeasureSpec(measure="utility.similarity", better="higher", unit="word pairs")
            findings.append(spec.missing(error.problem, labels=(pairs.path.name,)))
    return _of_corpus(findings, compared.label)


def inference(
    cache: Cache,
    compared: ComparedNotes,
    pairs: InputFile,
    settings: InferenceSettings,
    dim: int,
    seed: int,
) -> StoredFindings:
    """Return the accuracy of paper C's inference model with vectors of a corpus, and with random
    ones.
    """
    vectors = cache.run(train_vectors, compared, dim, seed)
    say(f"inference: {compared.label}")
    rng = np.random.default_rng([seed, 6])
    pair_parts = nli_parts(read_sentence_pairs(pairs.path), None, None, rng)
    return _of_corpus(nli(vectors, pair_parts, rng, settings), compared.label)


def _of_corpus(findings: list[Finding], label: str) -> StoredFindings:
    return as_dicts(labelled(finding, corpus_label(label)) for finding in findings)
