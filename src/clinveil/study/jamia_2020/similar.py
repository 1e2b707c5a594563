"""Vectors retrained on treated notes, and their scores on the word-pair lists (Table 3, Figure 1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clinveil.core.files import sha256
from clinveil.scale.tasks import Result, Store, name_of
from clinveil.study.jamia_2020.prepare import NOTES
from clinveil.study.jamia_2020.treat import VECTORS, Training, Treat

if TYPE_CHECKING:
    from clinveil.vectors.table import Vectors

FAST = "fasttext"
DRAWS = 200  # of the bootstrap over pairs, once a repetition


@dataclass(frozen=True)
class Train:
    """Train vectors on what a `Treat` wrote; for word pairs also fastText on the same text, for unknown words."""

    treat: Treat
    training: Training
    subwords: bool

    @property
    def title(self) -> str:
        """What it does."""
        return f"{self.training.algorithm} vectors of: {self.treat.title}"

    def identity(self) -> dict[str, Any]:
        """The notes and the training; another repetition has another seed."""
        return {"treat": name_of(self.treat), **asdict(self.training), "subwords": self.subwords, "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """Write the vectors."""
        from clinveil.core.files import remove
        from clinveil.corpus.open import open_corpus
        from clinveil.vectors.count import count_words
        from clinveil.vectors.files import save_vectors
        from clinveil.vectors.settings import VectorSettings
        from clinveil.vectors.train import train

        corpus, scratch = open_corpus(store.folder(self.treat) / NOTES), folder / "scratch"
        counts = count_words(corpus, scratch)
        kinds = {VECTORS: self.training} | (
            {FAST: replace(self.training, algorithm="fasttext")} if self.subwords else {}
        )
        for name, training in kinds.items():
            settings = VectorSettings(**asdict(training))
            seed = self.treat.seed + 1_000 * self.treat.repetition
            vectors = train(corpus, settings, seed=seed, workers=1, scratch=scratch, counts=counts)
            save_vectors(vectors, folder / name)
        remove(scratch)
        return {"words": len(counts.words), "tokens": counts.n_tokens}

    def load(self, store: Store, name: str = VECTORS) -> Vectors:
        """What a finished task wrote."""
        from clinveil.vectors.files import load_vectors

        return load_vectors(store.folder(self) / name)


@dataclass(frozen=True)
class Lists:
    """Word-pair lists, named by what they hold."""

    paths: tuple[Path, ...]
    digests: tuple[str, ...]
    any_size: bool

    @classmethod
    def of(cls, paths: tuple[Path, ...], any_size: bool) -> Lists:
        """Read every list once. Raises InputError for one that does not fit."""
        from clinveil.utility.pairs import read_pairs

        for path in paths:
            read_pairs(path, any_size=any_size)
        return cls(paths, tuple(sha256(path) for path in paths), any_size)


@dataclass(frozen=True)
class Similar:
    """Score retrained vectors on every list, protocol jamia."""

    train: Train
    lists: Lists

    @property
    def title(self) -> str:
        """What it does."""
        return f"word pairs of {self.train.title}"

    def identity(self) -> dict[str, Any]:
        """Vectors and lists."""
        return {"train": name_of(self.train), "lists": list(self.lists.digests), "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """The findings of all lists."""
        from clinveil.utility.pairs import read_pairs
        from clinveil.utility.similarity import SimilarityTask, similarity

        vectors = self.train.load(store)
        fast = self.train.load(store, FAST) if self.train.subwords else None
        found = []
        for path in self.lists.paths:
            pairs = read_pairs(path, any_size=self.lists.any_size)
            rng = np.random.default_rng([self.train.treat.seed, 5])
            found += similarity(vectors, pairs, rng, SimilarityTask(subwords=fast, draws=DRAWS))
        return {"findings": [f.as_dict() for f in found]}


@dataclass(frozen=True)
class References:
    """Out-of-domain vectors beside the original's, on the pairs that both cover (Figure 1's horizontal lines)."""

    train: Train
    lists: Lists
    names: tuple[str, ...]
    paths: tuple[Path, ...]
    digests: tuple[str, ...]

    title = "out-of-domain vectors on the same pairs"

    def identity(self) -> dict[str, Any]:
        """Vectors and lists."""
        said = {"train": name_of(self.train), "lists": list(self.lists.digests)}
        return {**said, "names": list(self.names), "vectors": list(self.digests), "version": 1}

    def __call__(self, folder: Path, store: Store) -> Result:
        """For each reference and list: both values and the pairs in common."""
        from clinveil.utility.pairs import read_pairs
        from clinveil.utility.similarity import SimilarityTask, pair_similarities, similarity
        from clinveil.vectors.files import load_vectors

        ours, rows = self.train.load(store), []
        for name, path in zip(self.names, self.paths, strict=True):
            theirs = load_vectors(path)
            for file in self.lists.paths:
                pairs = read_pairs(file, any_size=self.lists.any_size)
                both = ~np.isnan(pair_similarities(ours, pairs)) & ~np.isnan(pair_similarities(theirs, pairs))
                rng = np.random.default_rng([self.train.treat.seed, 6])
                found = [similarity(v, pairs, rng, SimilarityTask(only=both, draws=DRAWS))[0] for v in (ours, theirs)]
                row = {"reference": name, "list": pairs.name, "pairs": int(both.sum())}
                rows.append({**row, "original": found[0].value, "value": found[1].value})
        return {"rows": rows}
