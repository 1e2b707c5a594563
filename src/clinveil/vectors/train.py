"""Training word vectors on notes: word2vec and fastText by gensim, GloVe by our own code."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.files import private_folder
from clinveil.corpus.corpus import Corpus
from clinveil.vectors.count import WordCounts, count_words
from clinveil.vectors.sentences import Sentences, Splitter, sentence_file, whole_note
from clinveil.vectors.settings import GloveSettings, VectorSettings
from clinveil.vectors.subwords import Subwords
from clinveil.vectors.table import Vectors

# fastText's own defaults: character n-grams of 3 to 6, hashed into at most two million rows.
_SHORTEST, _LONGEST, _MOST_BUCKETS = 3, 6, 2_000_000

OnEpoch = Callable[[int, int], None]


def train(
    corpus: Corpus,
    settings: VectorSettings,
    *,
    seed: int,
    workers: int,
    scratch: Path,
    counts: WordCounts | None = None,
    on_epoch: OnEpoch | None = None,
    split: Splitter = whole_note,
) -> Vectors:
    """Train word vectors on the words of the notes (paper A: CBOW, 100 dimensions, window 5, 5 negative samples).

    Args:
        corpus: the notes; read once, and once more where `counts` is not given.
        settings: algorithm and its parameters; `cbow` and `fasttext` predict a word from its context's mean,
            `skipgram` the context from the word, and `glove` fits their co-occurrence counts (`train_glove`); the rest
            are gensim's defaults, or GloVe's.
        seed: public; with one worker the same seed gives the same bits (`meta["determinism"]`).
        workers: threads; fewer are used where the notes are too few to share out.
        scratch: a private folder for the words of the notes, removed at the end.
        counts: the words of these same notes, if counted already.
        on_epoch: called with (done, all) after each pass.
        split: the words of a note, line by line; GloVe takes whole notes only.

    Returns:
        One vector for each word with at least `min_count` occurrences, with counts and patients; of fastText the
        subwords too.

    Raises:
        InputError: fewer than two words to train on, or GloVe of lines.
    """
    private_folder(scratch)
    counts = counts or count_words(corpus, scratch, split=split)
    n_words = int((counts.counts >= settings.min_count).sum())
    if n_words < 2:
        raise InputError(
            f"{n_words} words occur at least {settings.min_count} times; vectors need two",
            remedy="give more notes, or a smaller --min-count",
        )
    if settings.algorithm == "glove":
        from clinveil.vectors.glove import train_glove

        if split is not whole_note:
            raise InputError("GloVe is trained on whole notes only", remedy="--algorithm skipgram")
        glove = _glove_settings(settings)
        return train_glove(corpus, glove, seed=seed, workers=workers, scratch=scratch, counts=counts, on_epoch=on_epoch)
    with sentence_file(corpus, scratch, split) as sentences:
        workers = sentences.workers(workers)
        model = _fitted(settings, counts, n_words, sentences, _Run(seed, workers, on_epoch))
    return Vectors(
        counts.words[:n_words],
        np.ascontiguousarray(model.wv.vectors, dtype=np.float32),
        counts.counts[:n_words],
        counts.patients[:n_words],
        counts.n_patients,
        _meta(settings, counts, seed, workers),
        _subwords(model) if settings.algorithm == "fasttext" else None,
    )


def _subwords(model: Any) -> Subwords:
    """The n-gram vectors that training reached."""
    reached = np.unique(np.concatenate(model.wv.buckets_word)).astype(np.int64)
    kept = np.ascontiguousarray(model.wv.vectors_ngrams[reached], dtype=np.float32)
    return Subwords(reached, kept, int(model.wv.bucket), _SHORTEST, _LONGEST)


def _glove_settings(settings: VectorSettings) -> GloveSettings:
    shared = {name: getattr(settings, name) for name in ("dim", "window", "min_count", "epochs")}
    return GloveSettings(**shared, variant=settings.glove_variant)


class _Run:
    """What changes the run but not the model's shape."""

    def __init__(self, seed: int, workers: int, on_epoch: OnEpoch | None) -> None:
        self.seed = int(np.random.SeedSequence(seed).generate_state(1)[0])  # gensim takes 32 bits
        self.workers = workers
        self.on_epoch = on_epoch


def _fitted(settings: VectorSettings, counts: WordCounts, n_words: int, sentences: Sentences, run: _Run) -> Any:
    logger = logging.getLogger("gensim")
    if not logger.handlers:  # or its warnings would go to stderr
        logger.addHandler(logging.NullHandler())
    model = _model(settings, counts.words[:n_words], run)
    frequencies = dict(zip(counts.words[:n_words], counts.counts[:n_words].tolist(), strict=True))
    model.build_vocab_from_freq(frequencies)
    model.train(
        corpus_file=str(sentences.path),
        total_words=sentences.budget(run.workers),
        epochs=settings.epochs,
        callbacks=_callbacks(run.on_epoch, settings.epochs),
    )
    return model


def _model(settings: VectorSettings, words: Any, run: _Run) -> Any:
    from gensim.models import FastText, Word2Vec

    shared = {
        "vector_size": settings.dim,
        "window": settings.window,
        "negative": settings.negative,
        "sg": int(settings.algorithm == "skipgram"),
        "min_count": 1,
        "sorted_vocab": 0,  # ours is sorted, with ties in an order that no machine changes
        "seed": run.seed,
        "workers": run.workers,
        "hashfxn": _stable_hash,
    }
    if settings.algorithm != "fasttext":
        return Word2Vec(**shared)
    return FastText(**shared, min_n=_SHORTEST, max_n=_LONGEST, bucket=_buckets(words))


def _stable_hash(word: str) -> int:
    """A hash that does not change from one Python process to the next."""
    return zlib.crc32(word.encode())


def _buckets(words: Any) -> int:
    """Rows for character n-grams: no more than there are n-grams, so that small vocabularies stay small."""
    lengths = np.array([len(word) + 2 for word in words])
    n_grams = sum(int(np.maximum(lengths - n + 1, 0).sum()) for n in range(_SHORTEST, _LONGEST + 1))
    return min(_MOST_BUCKETS, max(1, n_grams))


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


def _meta(settings: VectorSettings, counts: WordCounts, seed: int, workers: int) -> dict[str, Any]:
    from gensim import __version__

    names = [name for name in VectorSettings.model_fields if name != "glove_variant"]
    return {
        **{name: getattr(settings, name) for name in names},
        "seed": seed,
        "workers": workers,
        "determinism": "bitwise" if workers == 1 else "statistical",
        "library": f"gensim {__version__}",
        "n_notes": counts.n_notes,
        "n_tokens": counts.n_tokens,
    }
