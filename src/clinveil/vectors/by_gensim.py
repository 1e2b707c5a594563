"""word2vec as gensim trains it, with settings, counts and sentences of ours."""

from __future__ import annotations

import logging
import zlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.corpus.estimate import passes
from clinveil.vectors.algorithm import Algorithm, Notes, OnEpoch
from clinveil.vectors.count import WordCounts
from clinveil.vectors.files import load_vectors
from clinveil.vectors.imported import shared_words
from clinveil.vectors.sentences import sentence_file
from clinveil.vectors.subwords import Subwords
from clinveil.vectors.table import Vectors


class Word2Vec(Algorithm):
    """Vectors that predict words from their context, or the context from the word, against negative samples.

    The rest are gensim's defaults. Source: Mikolov et al. 2013; paper A: CBOW, 100 dimensions, window 5, 5 negative,
    5 passes.
    """

    skipgram: ClassVar[bool] = False
    dim: int = flag(100, "Dimensions of a vector.", ge=2, le=2000)
    window: int = flag(40, "Context words on either side.", ge=1, le=100)
    negative: int = flag(5, "Negative samples for each positive one.", ge=1, le=100)
    min_count: int = flag(1, "Words with fewer occurrences get no vector.", ge=1)
    epochs: int | None = flag(None, "Passes over the notes (default: by their words).", ge=1, le=1000)
    start_vectors: Path | None = flag(None, "Vectors to go on training from, where they know a word.")

    def train(self, notes: Notes) -> Vectors:
        """The vectors. Fewer workers are used where the notes are too few to share out.

        Raises InputError for vectors to start from that cannot be read, do not fit, or share next to no word.
        """
        counts = notes.counts
        n_words = int((counts.counts >= self.min_count).sum())
        _quiet()
        with sentence_file(notes.corpus, notes.scratch, notes.split) as sentences:
            epochs = self.epochs or passes(sentences.n_tokens)
            workers = sentences.workers(notes.workers)
            seed = int(np.random.SeedSequence(notes.seed).generate_state(1)[0])  # gensim takes 32 bits
            model = self.model(counts.words[:n_words], seed=seed, workers=workers, hashfxn=_stable_hash)
            model.build_vocab_from_freq(dict(zip(counts.words, counts.counts[:n_words].tolist(), strict=False)))
            self._start(model, counts)
            model.train(
                corpus_file=str(sentences.path),
                total_words=sentences.budget(workers),
                epochs=epochs,
                callbacks=_callbacks(notes.on_epoch, epochs),
            )
        matrix = np.ascontiguousarray(model.wv.vectors, dtype=np.float32)
        known = counts.words[:n_words], matrix, counts.counts[:n_words], counts.patients[:n_words], counts.n_patients
        return Vectors(*known, {**self._meta(notes, workers), "epochs": epochs}, self.subwords(model))

    def _start(self, model: Any, counts: WordCounts) -> None:
        """Put vectors of another training where the random ones stand."""
        if self.start_vectors is None:
            return
        given = load_vectors(self.start_vectors)
        if given.dim != self.dim:
            said = f"its vectors have {given.dim} dimensions, not {self.dim}"
            raise InputError(said, where=self.start_vectors.name, remedy=f"--dim {given.dim}")
        rows = [i for i in shared_words(given, counts).tolist() if i < len(model.wv.vectors)]
        model.wv.vectors[rows] = given.matrix[[given.ids[counts.words[i]] for i in rows]]

    def model(self, words: Any, **how: Any) -> Any:
        """gensim's model, not yet trained."""
        from gensim.models import Word2Vec as Model

        return Model(**self.shared(), **how)

    def shared(self) -> dict[str, Any]:
        """gensim's names of the settings."""
        return {
            "vector_size": self.dim,
            "window": self.window,
            "negative": self.negative,
            "sg": int(self.skipgram),
            "min_count": 1,
            "sorted_vocab": 0,  # ours is sorted, with ties in an order that no machine changes
        }

    def subwords(self, model: Any) -> Subwords | None:
        """What the model knows beside its words."""
        return None

    def _meta(self, notes: Notes, workers: int) -> dict[str, Any]:
        from gensim import __version__

        return {
            "algorithm": self.name,
            **{name: getattr(self, name) for name in ("dim", "window", "negative", "min_count")},
            "seed": notes.seed,
            "workers": workers,
            "determinism": "bitwise" if workers == 1 else "statistical",
            **({"started_from": self.start_vectors.name} if self.start_vectors else {}),
            "library": f"gensim {__version__}",
            "n_notes": notes.counts.n_notes,
            "n_tokens": notes.counts.n_tokens,
        }


def _quiet() -> None:
    logger = logging.getLogger("gensim")
    if not logger.handlers:  # or its warnings would go to stderr
        logger.addHandler(logging.NullHandler())


def _stable_hash(word: str) -> int:
    """A hash that does not change from one Python process to the next."""
    return zlib.crc32(word.encode())


def _callbacks(on_epoch: OnEpoch | None, epochs: int) -> list[Any]:
    if on_epoch is None:
        return []
    from gensim.models.callbacks import CallbackAny2Vec

    report = on_epoch

    class Epochs(CallbackAny2Vec):
        done = 0

        def on_epoch_end(self, model: Any) -> None:
            self.done += 1
            report(self.done, epochs)

    return [Epochs()]
