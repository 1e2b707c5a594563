"""The notes of paper C: in MedText's form, split, with rare words unknown (section 3.1), and synthetic notes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.leaveout.audit import AuditModel
from clinveil.attacks.models.leaveout.data import load_data
from clinveil.attacks.models.membership import FOLDS, written
from clinveil.core.errors import InputError
from clinveil.core.files import private_text
from clinveil.core.types import SmallInts
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.medtext import Dictionary, SplitSizes, dictionary, split_notes, with_unknown
from clinveil.corpus.medtext.form import sentences
from clinveil.corpus.medtext.parts import PARTS
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import PlainNotes, encode, read_notes
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.vocabulary import END, Vocabulary, WordVocabulary
from clinveil.scale.tasks import Result, Store
from clinveil.study.clinicalnlp_2019.settings import REAL
from clinveil.study.engine import Task
from clinveil.study.inputs import File, NotesTask, Source
from clinveil.utility.casing.lines import read_lines


@dataclass(frozen=True)
class Parts(Task):
    """Split the notes and count their words; `general`: general text for Table 1."""

    source: Source
    general: File | None
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
            rows = split_notes(notes.patients, lengths, self.sizes, rng, by_note=self.by_note)
        except InputError as error:
            raise InputError(error.what, hint="pass a smaller --words, --valid or --test") from None
        parts = {name: notes.rows(rows[name]) for name in PARTS}
        self._refuse_few(parts)
        every = notes.rows([row for name in PARTS for row in rows[name]])
        words = dictionary(every.texts, every.patients, min_count=self.min_count)
        kept = frozenset(words.words)
        for name, part in parts.items():
            texts = tuple(with_unknown(text, kept) for text in part.texts)
            save_notes(folder / f"{name}.json", PlainNotes(texts, part.note_ids, part.patients))
        private_text(folder / "words.json", json.dumps(list(words.words)))
        counts = {"notes": _counts(parts, words)}
        if self.general is not None:
            counts["general text"] = _general(self.general.path, parts["train"].words, self.min_count)
        return {"counts": counts}

    def _refuse_few(self, parts: Mapping[str, PlainNotes]) -> None:
        """Raise InputError for too few patients before the slow training starts."""
        for name in ("train", "test"):
            part = parts[name]
            if (n := len(set(part.note_ids if self.by_note else part.patients))) < FOLDS:
                message = f"the {name} part has {n} patients, and membership inference requires {FOLDS}"
                raise InputError(message, hint="pass more notes, or another --words or --test")

    def load(self, store: Store, name: str) -> PlainNotes:
        """Return one part of the finished split."""
        return load_notes(store.folder(self) / f"{name}.json")

    def vocabulary(self, store: Store) -> WordVocabulary:
        """Return the vocabulary of all parts, as in paper C."""
        return WordVocabulary(json.loads((store.folder(self) / "words.json").read_text(encoding="utf-8")))


def _counts(parts: Mapping[str, PlainNotes], words: Dictionary) -> dict[str, Any]:
    own: dict[str, Any] = {f"notes_{name}": len(part) for name, part in parts.items()}
    own |= {f"words_{name}": part.words for name, part in parts.items()}
    return own | {"vocabulary": len(words.words), "unknown": words.unknown_share}


def _general(path: Path, n_words: int, min_count: int) -> dict[str, Any]:
    """Return the counts of `n_words` words of general text, with the same tokens and rule for rare words."""
    counts: Counter[str] = Counter()
    total = 0
    for line in read_lines(path).lines:
        row = [token for sentence in sentences(line) for token in sentence]
        counts.update(row)
        total += len(row)
        if total >= n_words:
            break
    kept = [word for word, n in counts.items() if n >= min_count]
    unknown = 1 - sum(counts[word] for word in kept) / max(1, total)
    return {"words_train": total, "vocabulary": len(kept), "unknown": unknown}


def save_notes(path: Path, notes: PlainNotes) -> None:
    """Write notes as JSON, readable by their owner only."""
    rows = [notes.texts, notes.note_ids, notes.patients]
    private_text(path, json.dumps(rows, ensure_ascii=False))


def load_notes(path: Path) -> PlainNotes:
    """Read the notes of `save_notes`. Raises InputError if the file is missing or damaged."""
    try:
        texts, ids, patients = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("cannot be read", where=path.name, hint="run the study with --force") from None
    return PlainNotes(tuple(texts), tuple(ids), tuple(patients))


@dataclass(frozen=True)
class Written(NotesTask):
    """One corpus: real training notes, or notes of a unigram or of a model of an audit.

    Attributes:
        label: `real notes`, `unigram` or `lstm, dropout 0.5`. model: the model that wrote the notes, or None.
    """

    label: str
    parts: Parts
    model: AuditModel | None = None

    stage = "corpora"
    template = "notes of: {label}"

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the notes in MedText's form."""
        notes = self._notes(store)
        save_notes(folder / "notes.json", notes)
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
        return load_notes(store.folder(self) / "notes.json")

    def corpus(self, store: Store) -> Corpus:
        """Return the notes as a corpus, to train vectors."""
        return self.load(store).as_corpus()


def decoded(ids: SmallInts, vocabulary: Vocabulary) -> PlainNotes:
    """Return the notes of a sequence of tokens with ends, without empty notes."""
    ends = np.flatnonzero(ids == END)
    pieces = np.split(ids, ends + 1)
    texts = [text for piece in pieces if piece.size > 1 and (text := vocabulary.decode(piece.tolist()))]
    names = tuple(f"synthetic-{i:06d}" for i in range(1, len(texts) + 1))
    return PlainNotes(tuple(texts), names, names)
