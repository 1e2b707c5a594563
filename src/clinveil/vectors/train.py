"""Train word vectors on notes with the algorithm of the settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.files import private_folder
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.open import joined, open_text
from clinveil.scale import processes_later
from clinveil.vectors.algorithm import Algorithm, Notes, OnEpoch, algorithms
from clinveil.vectors.count import WordCounts, count_words, over_words
from clinveil.vectors.imported import of_notes
from clinveil.vectors.sentences import Splitter, whole_note
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.subsample import Subsampling, subsampled
from clinveil.vectors.table import Vectors


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
    """Train word vectors on the notes, and on `more_text` if the settings name some.

    Rows, counts and patients cover the words of the notes only; other text only adds contexts.

    Args:
        corpus: the notes; read once, and a second time without `counts` or with other text.
        settings: algorithm and its parameters; `cbow` and `fasttext` predict a word from the mean of its context,
            `skipgram` predicts the context from the word, and `glove` fits co-occurrence counts.
        seed: public; where `meta["determinism"]` is bitwise, the same seed gives the same bits.
        workers: threads; fewer are used if there are few notes.
        scratch: a private folder for temporary files.
        counts: word counts of the same notes, if known.
        on_epoch: called with (epochs done, epochs in all) after each epoch.
        split: splits a note into lines of words; GloVe requires whole notes.

    Returns:
        One vector for each word with at least `min_count` occurrences, with counts and patients; for fastText with
        subwords.

    Raises:
        InputError: fewer than two words to train on, GloVe with lines, or unusable other text or start vectors.
    """
    private_folder(scratch)
    counts = counts or count_words(corpus, scratch, split=split, over=processes_later(workers))
    n_words = int((counts.counts >= settings.min_count).sum())
    if n_words < 2:
        raise InputError(
            f"{n_words} words occur at least {settings.min_count} times; training requires two",
            hint="pass more notes" + (" or a smaller --min-count" if settings.min_count > 1 else ""),
        )
    rule = Subsampling.of(counts, settings.train_words, seed)
    sample = subsampled(corpus, rule, split, over_words(counts.n_tokens, workers)) if rule else corpus
    run = seed, workers, scratch, on_epoch, split
    if settings.more_text is None:
        return _with_share(algorithm_of(settings).train(Notes(sample, counts, *run)), rule)
    more = open_text(settings.more_text)
    all_counts = count_words(joined(corpus, more), scratch, split=split)
    trained = algorithm_of(settings).train(Notes(joined(sample, more), all_counts, *run))
    return _with_share(of_notes(trained, counts), rule)


def _with_share(vectors: Vectors, rule: Subsampling | None) -> Vectors:
    """Add the share of sampled patients to the meta data, if there was a subsample."""
    return replace(vectors, meta={**vectors.meta, "patients_share": rule.patients.share}) if rule else vectors


def algorithm_of(settings: VectorSettings) -> Algorithm:
    """Return the algorithm of the settings with its parameters; `glove_variant` is GloVe's `variant`."""
    kind, given = algorithms.get(settings.algorithm), {**dict(settings), **dict(settings.own)}
    own = {name: given[name] for name in kind.model_fields if given.get(name) is not None}
    prefix = f"{settings.algorithm}_"
    return kind(**own, **{name.removeprefix(prefix): given[name] for name in given if name.startswith(prefix)})
