"""CBOW predicts a word from the mean of its context (Mikolov et al. 2013), trained with gensim;
used by paper A.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from clinveil.core import MissingExtra, at_most_cores
from clinveil.vectors.algorithm import Notes, OnEpoch, Predicting
from clinveil.vectors.sentences import sentence_file
from clinveil.vectors.settings import passes
from clinveil.vectors.table import Subwords, Vectors

_WORDS_EACH = 80_000  # minimum words of a worker


def need_gensim(algorithm: str) -> None:
    """Raise MissingExtra, with the pip line, where an algorithm needs gensim and it is not
    installed.
    """
    if algorithm in ("cbow", "fasttext") and find_spec("gensim") is None:
        raise MissingExtra(f"gensim, which trains {algorithm} vectors,", "gensim")


class Cbow(Predicting):
    """Predict a word from the mean of its context (gensim)."""

    name: ClassVar[str] = "cbow"

    def train(self, notes: Notes) -> Vectors:
        """Train the vectors; uses fewer workers if there are few notes."""
        need_gensim(self.name)
        from gensim import __version__
        from gensim.models.word2vec import LineSentence

        counts = notes.counts
        n_words = int((counts.counts >= self.min_count).sum())
        _quiet()
        with sentence_file(notes.corpus, notes.scratch, notes.split) as (path, n_tokens):
            epochs = self.epochs or passes(n_tokens)
            workers = max(1, min(at_most_cores(notes.workers), n_tokens // _WORDS_EACH))
            # Gensim takes 32 bits.
            seed = int(np.random.SeedSequence(notes.seed).generate_state(1)[0])
            model = self.model(counts.words[:n_words], seed=seed, workers=workers)
            model.build_vocab_from_freq(
                dict(zip(counts.words, counts.counts[:n_words].tolist(), strict=False))
            )
            lines = LineSentence(str(path))
            report = _callbacks(notes.on_epoch, epochs)
            model.train(lines, total_words=n_tokens, epochs=epochs, callbacks=report)
        matrix = np.ascontiguousarray(model.wv.vectors, dtype=np.float32)
        meta = self.description(notes, epochs, f"gensim {__version__}", workers)
        return notes.table(matrix, meta, self.subwords(model))

    def model(self, words: Sequence[str], *, seed: int, workers: int) -> Any:
        """Return gensim's untrained model; `words`: its vocabulary."""
        from gensim.models import Word2Vec

        return Word2Vec(
            vector_size=self.dim,
            window=self.window,
            negative=self.negative,
            sg=0,
            min_count=1,
            sorted_vocab=0,  # already sorted, with the same order of ties on every machine
            seed=seed,
            workers=workers,
            hashfxn=stable_hash,
        )

    def subwords(self, model: Any) -> Subwords | None:
        """Return the subword vectors of the model, or None."""
        return None


def _quiet() -> None:
    logger = logging.getLogger("gensim")
    if not logger.handlers:  # without a handler, Python prints its warnings to stderr
        logger.addHandler(logging.NullHandler())


def stable_hash(word: str) -> int:
    """Return a hash that is the same in every Python process."""
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
