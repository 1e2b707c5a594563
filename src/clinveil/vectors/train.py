"""Training word vectors on notes, by the algorithm that the settings name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clinveil.core.errors import InputError
from clinveil.core.files import private_folder
from clinveil.corpus.corpus import Corpus
from clinveil.corpus.extra_text import joined, open_text
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
    """Train word vectors on the words of the notes, and of `more_text` where the settings name some.

    Rows, counts and patients are of the notes' words alone; what other text adds is what surrounds them.

    Args:
        corpus: the notes; read once, and once more where `counts` is not given or there is more text.
        settings: algorithm and its parameters; `cbow` and `fasttext` predict a word from its context's mean,
            `skipgram` the context from the word, and `glove` fits their co-occurrence counts.
        seed: public; where `meta["determinism"]` is bitwise, the same seed gives the same bits.
        workers: threads; fewer are used where the notes are too few to share out.
        scratch: a private folder for the words of the notes, removed at the end.
        counts: the words of these same notes, if counted already.
        on_epoch: called with (done, all) after each pass.
        split: the words of a note, line by line; GloVe takes whole notes only.

    Returns:
        One vector for each word with at least `min_count` occurrences, with counts and patients; of fastText the
        subwords too.

    Raises:
        InputError: fewer than two words to train on, GloVe of lines, other text or vectors that cannot be used.
    """
    private_folder(scratch)
    counts = counts or count_words(corpus, scratch, split=split, over=processes_later(workers))
    n_words = int((counts.counts >= settings.min_count).sum())
    if n_words < 2:
        raise InputError(
            f"{n_words} words occur at least {settings.min_count} times; vectors need two",
            hint="give more notes" + (", or a smaller --min-count" if settings.min_count > 1 else ""),
        )
    how = Subsampling.of(counts, settings.train_words, seed)
    learnt = subsampled(corpus, how, split, over_words(counts.n_tokens, workers)) if how else corpus
    run = seed, workers, scratch, on_epoch, split
    if settings.more_text is None:
        return _said(algorithm_of(settings).train(Notes(learnt, counts, *run)), how)
    more = open_text(settings.more_text)
    all_counts = count_words(joined(corpus, more), scratch, split=split)
    made = algorithm_of(settings).train(Notes(joined(learnt, more), all_counts, *run))
    return _said(of_notes(made, counts), how)


def _said(made: Vectors, how: Subsampling | None) -> Vectors:
    """The vectors, which say of what share of the patients they were learnt; as they are where it was all."""
    return replace(made, meta={**made.meta, "patients_share": how.patients.share}) if how else made


def algorithm_of(settings: VectorSettings) -> Algorithm:
    """The algorithm that the settings name, with its own of them; `glove_variant` is GloVe's `variant`."""
    kind, given = algorithms.get(settings.algorithm), {**dict(settings), **dict(settings.own)}
    own = {name: given[name] for name in kind.model_fields if given.get(name) is not None}
    prefix = f"{settings.algorithm}_"
    return kind(**own, **{name.removeprefix(prefix): given[name] for name in given if name.startswith(prefix)})
