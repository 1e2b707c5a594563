"""The first task: notes in MedText's form, split, rare words unknown (paper C, section 3.1 and Table 1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models.blind import FOLDS
from clinveil.core.errors import InputError
from clinveil.core.files import private_text, sha256
from clinveil.core.settings import NotesSettings
from clinveil.corpus.medtext import Dictionary, SplitSizes, dictionary, split_notes, with_unknown
from clinveil.corpus.medtext.form import sentences
from clinveil.corpus.medtext.parts import PARTS
from clinveil.corpus.open import open_corpus
from clinveil.lm.notes import PlainNotes, read_notes
from clinveil.lm.vocabulary import WordVocabulary
from clinveil.scale.tasks import Result, Store


@dataclass(frozen=True)
class Source:
    """Notes, and general text, named by what they hold."""

    notes: Path
    reading: NotesSettings
    digest: str
    general: Path | None = None
    general_digest: str = ""

    @classmethod
    def of(cls, notes: Path, reading: NotesSettings, general: Path | None = None) -> Source:
        """Read the notes once, which also finds what does not fit. Raises InputError."""
        hashed = blake2b(digest_size=16)
        for batch in open_corpus(notes, reading).batches():
            for row in zip(*(batch.column(i).to_pylist() for i in range(3)), strict=True):
                hashed.update(repr(row).encode("utf-8", "surrogatepass"))
        return cls(notes, reading, hashed.hexdigest(), general, sha256(general) if general else "")


@dataclass(frozen=True)
class Parts:
    """Split the notes and count their words."""

    source: Source
    sizes: SplitSizes
    by_note: bool
    min_count: int
    seed: int

    title = "notes in MedText's form, split"

    def identity(self) -> Mapping[str, Any]:
        """Notes and settings."""
        own = {"notes": self.source.digest, "general": self.source.general_digest, "by_note": self.by_note}
        return {**own, "sizes": asdict(self.sizes), "min_count": self.min_count, "seed": self.seed, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the parts; returns the counts of Table 1."""
        notes = read_notes(open_corpus(self.source.notes, self.source.reading))
        rng = np.random.default_rng([self.seed, 1])
        lengths = [len(text.split()) for text in notes.texts]
        try:
            rows = split_notes(notes.patients, lengths, self.sizes, rng, by_note=self.by_note)
        except InputError as error:
            raise InputError(error.what, remedy="smaller --words, --valid or --test") from None
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
        if self.source.general is not None:
            counts["general text"] = _general(self.source.general, parts["train"].words, self.min_count)
        return {"counts": counts}

    def _refuse_few(self, parts: Mapping[str, PlainNotes]) -> None:
        """Before an hour of training, not after it."""
        for name in ("train", "test"):
            part = parts[name]
            if (n := len(set(part.note_ids if self.by_note else part.patients))) < FOLDS:
                what = f"{n} patients in the {name} part, and membership inference needs {FOLDS}"
                raise InputError(what, remedy="more notes, or --words, --test in other proportions")


def _counts(parts: Mapping[str, PlainNotes], words: Dictionary) -> dict[str, Any]:
    own: dict[str, Any] = {f"notes_{name}": len(part) for name, part in parts.items()}
    own |= {f"words_{name}": part.words for name, part in parts.items()}
    return own | {"vocabulary": len(words.words), "unknown": words.unknown_share}


def _general(path: Path, n_words: int, min_count: int) -> dict[str, Any]:
    """As many words of general text, with the same tokens and the same rule for rare ones."""
    from clinveil.utility.casing.lines import read_lines

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
    """Read what `save_notes` wrote. Raises InputError if it is not there."""
    try:
        texts, ids, patients = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError("cannot be read", where=path.name, remedy="run the study again with --force") from None
    return PlainNotes(tuple(texts), tuple(ids), tuple(patients))


def part_of(store: Store, parts: Parts, name: str) -> PlainNotes:
    """One part of a finished split."""
    return load_notes(store.folder(parts) / f"{name}.json")


def vocabulary_of_parts(store: Store, parts: Parts) -> WordVocabulary:
    """The words of all parts, as in paper C."""
    return WordVocabulary(json.loads((store.folder(parts) / "words.json").read_text(encoding="utf-8")))
