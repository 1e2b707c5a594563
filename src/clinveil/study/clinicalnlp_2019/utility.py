"""What each corpus is good for: word vectors, inference, letter case, and predicting real notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.attacks.models._from_text import model_of_text
from clinveil.attacks.models.leaveout.models import AuditModel
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.lm.model import fit_of
from clinveil.lm.models.unigram import train_unigram
from clinveil.lm.notes import PlainNotes, encode
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.clinicalnlp_2019.corpora import Written
from clinveil.study.clinicalnlp_2019.parts import Parts, part_of, vocabulary_of_parts
from clinveil.study.clinicalnlp_2019.settings import SCALES
from clinveil.utility.casing.lines import Lines


def told(findings: list[Finding], **more: Any) -> Result:
    """Findings ready for JSON, with more in their details."""
    rows = [finding.as_dict() for finding in findings]
    return {"findings": [{**row, "detail": {**row["detail"], **more}} for row in rows]}


@dataclass(frozen=True)
class Embedding:
    """Skip-gram vectors of a corpus by paper C's settings: tokens as they stand, a sentence a line, bit for bit."""

    corpus: Written
    dim: int
    seed: int

    @property
    def title(self) -> str:
        """For people."""
        return f"vectors of: {self.corpus.label}"

    def identity(self) -> Mapping[str, Any]:
        """Corpus and settings."""
        return {"corpus": name_of(self.corpus), "dim": self.dim, "seed": self.seed, "version": 2}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Train and write them."""
        from clinveil.core.files import remove
        from clinveil.vectors.files import save_vectors
        from clinveil.vectors.sentences import token_lines
        from clinveil.vectors.settings import VectorSettings
        from clinveil.vectors.train import train

        how = VectorSettings(algorithm="skipgram", dim=self.dim, window=5, negative=10, min_count=5, epochs=10)
        notes = self.corpus.load(store).as_corpus()
        vectors = train(notes, how, seed=self.seed, workers=1, scratch=folder / "scratch", split=token_lines)
        save_vectors(vectors, folder / "vectors")
        remove(folder / "scratch")
        return {"words": len(vectors)}


@dataclass(frozen=True)
class Similar:
    """Vectors against people's judgements, protocol clinicalnlp: the pairs that the real notes hold often enough."""

    embedding: Embedding
    pairs: tuple[Path, ...]
    digests: tuple[str, ...]
    min_count: int

    @property
    def title(self) -> str:
        """For people."""
        return f"word pairs of: {self.embedding.corpus.label}"

    def identity(self) -> Mapping[str, Any]:
        """Vectors and lists."""
        own = {"vectors": name_of(self.embedding), "pairs": list(self.digests), "min_count": self.min_count}
        return own | {"version": 2}

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings of all lists; a term counts where the real notes hold it in lower case (paper C's code)."""
        from clinveil.utility.pairs import read_pairs
        from clinveil.utility.similarity import similarity
        from clinveil.vectors.files import load_vectors

        corpus = self.embedding.corpus
        vectors = load_vectors(store.folder(self.embedding) / "vectors")
        real = Counter(token for text in part_of(store, corpus.parts, "train").texts for token in text.split())
        found: list[Finding] = []
        for path in self.pairs:
            rng = np.random.default_rng([self.embedding.seed, 5])
            own = {"protocol": "clinicalnlp", "frequencies": real, "min_count": self.min_count}
            try:
                found += similarity(vectors, read_pairs(path), rng, **own)  # type: ignore[arg-type]
            except InputError as error:
                detail = {"why": error.what, "list": path.name}
                found.append(Finding("utility.similarity", None, 0, "higher", detail=detail, unit="word pairs"))
        return told(found, corpus=corpus.label)


@dataclass(frozen=True)
class Inference:
    """The bag-of-words model of paper C with these vectors."""

    embedding: Embedding
    pairs: Path
    digest: str
    size: str

    @property
    def title(self) -> str:
        """For people."""
        return f"inference with vectors of: {self.embedding.corpus.label}"

    def identity(self) -> Mapping[str, Any]:
        """Vectors and pairs."""
        return {"vectors": name_of(self.embedding), "pairs": self.digest, "size": self.size, "version": 2}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Accuracy, and that of random vectors."""
        from clinveil.utility.nli.measure import nli
        from clinveil.utility.nli.pairs import nli_parts, read_sentence_pairs
        from clinveil.vectors.files import load_vectors

        vectors = load_vectors(store.folder(self.embedding) / "vectors")
        rng = np.random.default_rng([self.embedding.seed, 6])
        parts = nli_parts(read_sentence_pairs(self.pairs), None, None, rng)
        found = nli(vectors, parts, rng, SCALES[self.size].nli)
        return told(found, corpus=self.embedding.corpus.label)


@dataclass(frozen=True)
class Casing:
    """A character model of a corpus restores the case of whole real test notes, all of them."""

    corpus: Written
    size: str
    seed: int

    @property
    def title(self) -> str:
        """For people."""
        return f"letter case of: {self.corpus.label}"

    def identity(self) -> Mapping[str, Any]:
        """Corpus and settings."""
        return {"corpus": name_of(self.corpus), "size": self.size, "seed": self.seed, "version": 2}

    def __call__(self, folder: Path, store: Store) -> Result:
        """F1 of the model, beside that of each word's usual casing."""
        from clinveil.utility.casing.measure import casing

        parts = self.corpus.parts
        dev, test = (part_of(store, parts, name) for name in ("valid", "test"))
        three = (
            lines_of(self.corpus.load(store), "training notes"),
            lines_of(dev, "validation notes"),
            lines_of(test, "test notes", by_note=parts.by_note),
        )
        found = casing(three, np.random.default_rng([self.seed, 7]), SCALES[self.size].casing)
        return told(found, corpus=self.corpus.label, notes=len(test), lines=len(three[2]))


def lines_of(notes: PlainNotes, name: str, *, by_note: bool = False) -> Lines:
    """All lines of whole notes, each with its patient (or its note, where notes count as patients)."""
    rows = zip(notes.texts, notes.note_ids if by_note else notes.patients, strict=True)
    pairs = [(line, owner) for text, owner in rows for line in text.split("\n")]
    return Lines(name, [line for line, _ in pairs], [owner for _, owner in pairs])


@dataclass(frozen=True)
class Predicted:
    """Perplexity of the real validation and test notes under a model, or under n-grams of a corpus."""

    corpus: Written
    member: AuditModel | None = None

    @property
    def title(self) -> str:
        """For people."""
        return f"perplexity of: {self.corpus.label}"

    def identity(self) -> Mapping[str, Any]:
        """Corpus and model."""
        return {"corpus": name_of(self.corpus), "member": name_of(self.member) if self.member else "", "version": 4}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Of the model itself (a unigram's for the unigram), and of n-grams of the corpus."""
        from clinveil.utility.perplexity import perplexity_findings

        parts = self.corpus.parts
        vocabulary = vocabulary_of_parts(store, parts)
        models = [("n-grams of the notes", model_of_text(self.corpus.load(store), vocabulary))]
        if self.member is not None:
            from clinveil.lm.checkpoint import load_model

            models.append(("the model", load_model(store.folder(self.member) / "model")[0]))  # type: ignore[arg-type]
        elif self.corpus.label == "unigram":
            train = encode(part_of(store, parts, "train").texts, vocabulary)
            models.append(("the model", train_unigram(train, vocabulary)))  # type: ignore[arg-type]
        rows: list[dict[str, Any]] = []
        for name in ("valid", "test"):
            part = part_of(store, parts, name)
            notes = encode(part.texts, vocabulary)
            for by, model in models:
                found = perplexity_findings(model, fit_of(model, notes), part, name)
                rows += told(found, corpus=self.corpus.label, by=by)["findings"]
        return {"findings": rows}


def digests(paths: tuple[Path, ...]) -> tuple[str, ...]:
    """SHA-256 of files."""
    from clinveil.core.files import sha256

    return tuple(sha256(path) for path in paths)


__all__ = ["Casing", "Embedding", "Inference", "Parts", "Predicted", "Similar", "digests", "told"]
