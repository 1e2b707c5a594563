"""Measure how well a language model predicts real notes.

Perplexity (paper C) and bits per character.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from clinveil.core import (
    NO_NUMBERS,
    SEED,
    THREADS,
    Doubles,
    Finding,
    InputError,
    Ints,
    LabelledNotesSettings,
    Numbers,
    Say,
    UsageError,
    group,
    need_torch,
    setting,
)
from clinveil.corpus import UNK, rows
from clinveil.lm import (
    Fit,
    LanguageModel,
    LayoutVocabulary,
    ModelSettings,
    PlainNotes,
    Vocabulary,
    WordVocabulary,
    encode,
    fingerprint,
    fit_of,
    keeps_layout,
    load_model,
    make_vocabulary,
    pieces_of,
    read_notes,
    train_model,
    train_unigram,
)
from clinveil.stats import Interval, jackknife_t
from clinveil.utility.evaluations import (
    Evaluated,
    Evaluation,
    EvaluationInput,
    as_corpus,
    name_of,
)

SOURCE = "paper C, Table 2 (perplexity); bits per character: this project"
NO_CONTROL = "none with --from: a unigram model needs the training notes"
NOT_CHECKED = (
    "whether the model was trained on some of these notes; its folder has no record of them"
)
TRAINED_ON = "{some:,} of {n:,} notes are verbatim training notes of the model"
SPELLING = (
    "unknown words are charged for their spelling, {bits:.2f} bits per letter and per end of word"
)
STANDING = "{standing:,} words are <unk> in the notes; their spelling is unknown and not charged"


@dataclass(frozen=True)
class Unknown:
    """Words of notes that are not in a vocabulary, and the cost of their spelling.

    The code is the same for all models of the same notes: letters and the end of a word are equally
    likely symbols, as many as the distinct letters of these notes plus one. A byte pair vocabulary
    has no unknown words. Words that are `<unk>` in the notes cannot be charged.

    Attributes:
        words, unknown, unk_in_source: (n_notes,) words; words encoded as `<unk>`; words that are
            `<unk>` in the notes.
        letters: (n_notes,) letters and ends of the unknown words, without `unk_in_source`.
    """

    words: Ints = field(repr=False)
    unknown: Ints = field(repr=False)
    unk_in_source: Ints = field(repr=False)
    letters: Ints = field(repr=False)
    symbols: int

    @property
    def bits_per_letter(self) -> float:
        """log2 of the number of symbols."""
        return float(np.log2(self.symbols))


def unknown_words(texts: tuple[str, ...], vocabulary: Vocabulary) -> Unknown:
    """Count the words of notes that are not in a vocabulary, and their letters; numbers count as
    words.
    """
    counts = np.zeros((len(texts), 4), dtype=np.int64)
    letters = set[str]()
    known = set(vocabulary.words[3:]) if isinstance(vocabulary, WordVocabulary) else None
    for row, text in enumerate(texts):
        if isinstance(vocabulary, LayoutVocabulary):
            pieces = [piece.strip() for piece in pieces_of(text) if not piece.isspace()]
            letters.update(*pieces)
            lost = [piece for piece in pieces if not vocabulary.knows(piece)]
            counts[row] = len(pieces), len(lost), 0, sum(len(piece) + 1 for piece in lost)
            continue
        words = text.split()
        letters.update(*(word for word in words if word != UNK))
        unk_in_source = sum(word == UNK for word in words)
        lost = (
            [] if known is None else [word for word in words if word not in known and word != UNK]
        )
        unknown = 0 if known is None else len(lost) + unk_in_source
        counts[row] = len(words), unknown, unk_in_source, sum(len(word) + 1 for word in lost)
    return Unknown(counts[:, 0], counts[:, 1], counts[:, 2], counts[:, 3], len(letters) + 1)


def perplexity_findings(
    model: LanguageModel,
    fit: Fit,
    notes: PlainNotes,
    name: str,
    *,
    control: Fit | None = None,
    no_control: str = "",
    warning: str = "",
    remarks: tuple[str, ...] = (),
) -> list[Finding]:
    """Return `utility.perplexity` and `utility.bits_per_character` of notes, with jackknife
    intervals over patients.

    Perplexity follows the paper and is comparable within one vocabulary only. Bits per character
    include the spelling of unknown words (`Unknown`), so they are comparable between vocabularies.

    Args:
        fit: fit of the model to these notes, in this order. name: name of the notes ("valid", "held
            out").
        control: fit of a unigram with the same training notes and vocabulary. no_control: the
            reason if there is none. warning, remarks: of every finding.

    Raises InputError if the perplexity is not finite.
    """
    if not np.isfinite(fit.perplexity):
        raise InputError(
            "the perplexity of the model is not finite",
            hint="train it again with a smaller lm.rate",
        )
    unknown = unknown_words(notes.texts, model.vocabulary)
    rows = _rows(fit, unknown)
    of_patient = _by_patient(rows, notes.patients)
    control_rows = None if control is None else _rows(control, unknown)
    labels = _labels(model, name, unknown)
    numbers = _numbers(model, fit, notes, unknown)
    spelling, spelling_remarks = _charged(unknown, fit)
    unit = "notes" if notes.patients == notes.note_ids else "patients"
    findings = []
    for measure, value, further, remarks_of in (
        ("perplexity", _perplexity, NO_NUMBERS, ()),
        ("bits_per_character", _bits, spelling, spelling_remarks),
    ):
        low, high = _interval(of_patient, value)
        finding = Finding(
            f"utility.{measure}",
            value(rows),
            len(of_patient),
            "lower",
            low=low,
            high=high,
            control=None if control_rows is None else value(control_rows),
            source=SOURCE,
            labels=labels,
            numbers={**numbers, **further},
            warning=warning,
            remarks=(*remarks, *remarks_of),
            unit=unit,
            method=f"none, of one of the {unit}"
            if low is None
            else f"jackknife over {unit} on the log scale, t, 95 %",
            control_is=no_control if control is None else "a unigram of the same notes",
            control_kind=None if control is None else "negative",
        )
        findings.append(finding)
    return findings


def _by_patient(rows: Doubles, patients: Sequence[str]) -> Doubles:
    """Return the sums of the rows of each patient, (n_patients, n_columns)."""
    patient = np.unique(np.array(patients, dtype=object), return_inverse=True)[1]
    return np.stack([np.bincount(patient, weights=column) for column in rows.T], axis=1)


def _labels(model: LanguageModel, name: str, unknown: Unknown) -> tuple[str, ...]:
    """Return the model, the notes and, with unknown words, the vocabulary: perplexities compare at
    one vocabulary only.
    """
    share = unknown.unknown.sum() / max(1, unknown.words.sum())
    pieces = "words" if model.vocabulary.kind == "words" else "byte pairs"
    vocabulary = f"{model.vocabulary.size:,} {pieces}, {share:.1%} unknown"
    return (model.kind, f"{name} notes", *([vocabulary] if share else []))


def _numbers(model: LanguageModel, fit: Fit, notes: PlainNotes, unknown: Unknown) -> Numbers:
    """Return the size of the vocabulary, and counts of tokens and words."""
    n_words = int(unknown.words.sum())
    n_unknown = int(unknown.unknown.sum())
    return {
        "size": model.vocabulary.size,
        "tokens": int(fit.tokens.sum()),
        "words": n_words,
        "unknown_words": n_unknown,
        "notes": len(notes),
        "unknown_share": float(n_unknown / max(1, n_words)),
        "standing_unknown": int(unknown.unk_in_source.sum()),
    }


def _interval(own: Doubles, value: Callable[[Doubles], float]) -> Interval | tuple[None, None]:
    """Return the jackknife interval of a positive value over the rows of `own`; None for one
    row.
    """
    if len(own) < 2:
        return None, None
    ends = jackknife_t(own, lambda sums: float(np.log(value(sums[None]))))
    low, high = np.exp(np.clip(ends, -700, 700))  # with two patients t is 12.7
    return Interval(float(low), float(high))


def _rows(fit: Fit, unknown: Unknown) -> Doubles:
    """Return nats, tokens, bits of spelling and characters of each note, (n_notes, 4)."""
    spelt = unknown.letters * unknown.bits_per_letter
    return np.stack([fit.totals, fit.tokens, spelt, fit.characters], axis=1).astype(np.float64)


def _perplexity(rows: Doubles) -> float:
    return float(np.exp(-rows[:, 0].sum() / rows[:, 1].sum()))


def _bits(rows: Doubles) -> float:
    return float((-rows[:, 0].sum() / np.log(2) + rows[:, 2].sum()) / rows[:, 3].sum())


def _charged(unknown: Unknown, fit: Fit) -> tuple[Numbers, tuple[str, ...]]:
    """Return the cost of spelling unknown words, and how they are charged."""
    spelt = float(unknown.letters.sum() * unknown.bits_per_letter / fit.characters.sum())
    notes = [SPELLING.format(bits=unknown.bits_per_letter)] if spelt else []
    if unknown.unk_in_source.any() and unknown.unknown.any():
        notes.append(STANDING.format(standing=int(unknown.unk_in_source.sum())))
    numbers = {"spelling_bits_per_character": spelt, "symbols": unknown.symbols}
    return numbers, ("; ".join(notes),) if notes else ()


class Perplexity(Evaluation):
    """Compute perplexity per token and bits per character of notes; with --train, also of a unigram
    model.

    Compare perplexities for one vocabulary only, bits per character for any: unknown words are
    spelled out.
    """

    inputs: ClassVar[Mapping[str, EvaluationInput]] = {
        "notes": EvaluationInput(
            "Real notes of patients that are not in the training notes.", required=True
        ),
        "train": EvaluationInput("Train on these notes, real or synthetic.", "--train"),
        "source": EvaluationInput("Use this model (vault/model of a synthetic release).", "--from"),
    }
    lm: ModelSettings = group(ModelSettings)
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    seed: int | None = SEED
    workers: int = THREADS
    prepared: bool = setting(
        False, "All notes are in MedText form already; a file with <unk> is always read so."
    )

    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return perplexity and bits per character of a model that is given, or trained on
        `train`.
        """
        train = arguments.get("train")
        source = arguments.get("source")
        if (train is None) == (source is None):
            raise UsageError("no model, or two", hint="pass --train NOTES or --from MODEL")
        if source is None and self.lm.neural:
            need_torch()
        control = None
        if source is not None:
            model, about = load_model(source, device=self.lm.device)
            test = self._read(arguments["notes"], layout=keeps_layout(model))
            record = about.get("notes")
            known = record.get("fingerprints") if isinstance(record, dict) else None
        else:
            test = self._read(arguments["notes"])
            training = self._read(train)
            known = list(map(fingerprint, training.texts))
            vocabulary = make_vocabulary(training, self.lm)
            encoded = encode(training.texts, vocabulary)
            model, _ = train_model(
                encoded, vocabulary, self.lm, seed=seed, threads=self.workers, say=say
            )
            control = fit_of(train_unigram(encoded, vocabulary), encode(test.texts, vocabulary))
        with model.ready(threads=self.workers):
            fit = fit_of(model, encode(test.texts, model.vocabulary))
        warning = ""
        remarks: tuple[str, ...] = ()
        seen = {*map(str, known)} if isinstance(known, list) else None
        if seen is None:
            remarks = (f"not checked: {NOT_CHECKED}",)
        elif some := sum(fingerprint(text) in seen for text in test.texts):
            warning = TRAINED_ON.format(n=len(test), some=some)
        findings = perplexity_findings(
            model,
            fit,
            test,
            "test",
            control=control,
            no_control="" if source is None else NO_CONTROL,
            warning=warning,
            remarks=remarks,
        )
        title = (
            f"{model.kind} on {name_of(arguments['notes'], 'notes')} (seed {seed}; lower is better)"
        )
        return Evaluated(findings, title)

    def _read(self, notes: Any, *, layout: bool = False) -> PlainNotes:
        """Return notes in MedText form, or unchanged for a model that keeps layout."""
        corpus = as_corpus(notes, self.notes)
        prepared = self.prepared or (
            not layout and any(UNK in note.text.split() for note in rows(corpus))
        )
        return read_notes(corpus, prepared=prepared, layout=layout)
