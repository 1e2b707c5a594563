"""word2vec as gensim trains it, with settings, counts and sentences of ours."""

from __future__ import annotations

import logging
import zlib
from importlib.util import find_spec
from typing import Any

import numpy as np

from clinveil.core.errors import MissingExtra
from clinveil.corpus.estimate import passes
from clinveil.vectors.algorithm import Notes, OnEpoch
from clinveil.vectors.prediction import Predicting
from clinveil.vectors.sentences import sentence_file
from clinveil.vectors.subwords import Subwords
from clinveil.vectors.table import Vectors


def need_gensim(algorithm: str) -> None:
    """Raise MissingExtra, with the pip line, where an algorithm needs gensim and it is not installed."""
    if algorithm in ("cbow", "fasttext") and find_spec("gensim") is None:
        raise MissingExtra(f"gensim, which trains {algorithm} vectors,", "gensim")


class ByGensim(Predicting):
    """CBOW, and what is built on it."""

    def train(self, notes: Notes) -> Vectors:
        """The vectors. Fewer workers are used where the notes are too few to share out.

        Raises InputError for vectors to start from that cannot be read, do not fit, or share next to no word.
        """
        need_gensim(self.name)
        from gensim import __version__

        counts = notes.counts
        n_words = int((counts.counts >= self.min_count).sum())
        _quiet()
        with sentence_file(notes.corpus, notes.scratch, notes.split) as sentences:
            epochs = self.epochs or passes(sentences.n_tokens)
            workers = sentences.workers(notes.workers)
            seed = int(np.random.SeedSequence(notes.seed).generate_state(1)[0])  # gensim takes 32 bits
            model = self.model(counts.words[:n_words], seed=seed, workers=workers, hashfxn=_stable_hash)
            model.build_vocab_from_freq(dict(zip(counts.words, counts.counts[:n_words].tolist(), strict=False)))
            self.start(model.wv.vectors, counts)
            model.train(
                corpus_file=str(sentences.path),
                total_words=sentences.budget(workers),
                epochs=epochs,
                callbacks=_callbacks(notes.on_epoch, epochs),
            )
        matrix = np.ascontiguousarray(model.wv.vectors, dtype=np.float32)
        said = self.said(notes, epochs, f"gensim {__version__}", workers)
        return notes.table(matrix, said, self.subwords(model))

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
            "sg": 0,
            "min_count": 1,
            "sorted_vocab": 0,  # ours is sorted, with ties in an order that no machine changes
        }

    def subwords(self, model: Any) -> Subwords | None:
        """What the model knows beside its words."""
        return None


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
