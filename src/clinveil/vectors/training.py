"""Train word vectors on notes with the algorithm of the settings, on a subsample of large corpora.

Beyond a few million words, more notes do not improve the vectors of frequent words, but take
proportionally longer. The subsample has all notes of a random sample of patients. From the other
notes it has the contexts of words that occur fewer than `ENOUGH` times in the sample, so that every
word is trained on some of its real contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from clinveil.core import InputError, private_folder
from clinveil.corpus import (
    NOTE_ID,
    PATIENT_ID,
    ROLE_FIELDS,
    TEXT,
    Corpus,
    KeyedShare,
    MemoryCorpus,
    Note,
    concatenated,
    open_text,
    rows,
)
from clinveil.scale import Map, each_batch, serial
from clinveil.vectors.algorithm import Algorithm, Notes, OnEpoch
from clinveil.vectors.algorithms import ALGORITHMS
from clinveil.vectors.count import WordCounts, count_words, over_words
from clinveil.vectors.imported import of_notes
from clinveil.vectors.sentences import Splitter, whole_note
from clinveil.vectors.settings import VectorSettings
from clinveil.vectors.table import Vectors

ENOUGH = 3  # occurrences wanted of each word
NEAR = 5  # words on either side of a rare word


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
    executor: Map | None = None,
) -> Vectors:
    """Train word vectors on the notes, and on `more_text` if the settings name some.

    Rows, counts and patients cover the words of the notes only; other text only adds contexts.

    Args:
        corpus: the notes; read once, and a second time without `counts` or with other text.
        settings: algorithm and its parameters; `cbow` and `fasttext` predict a word from the mean
            of its context, `skipgram` predicts the context from the word, and `glove` fits
            co-occurrence counts.
        seed: public; where `meta["determinism"]` is bitwise, the same seed gives the same bits.
        workers: threads; fewer are used if there are few notes.
        scratch: a private folder for temporary files.
        counts: word counts of the same notes, if known.
        on_epoch: called with (epochs done, epochs in all) after each epoch.
        split: splits a note into lines of words; GloVe requires whole notes.
        executor: map that draws the subsample, from part files where they are read (default:
            processes here).

    Returns:
        One vector for each word with at least `min_count` occurrences, with counts and patients;
        for fastText with subwords.

    Raises:
        InputError: fewer than two words to train on, GloVe with lines, or unusable other text or
            start vectors.
    """
    private_folder(scratch)
    counts = counts or count_words(corpus, scratch, split=split)
    n_words = int((counts.counts >= settings.min_count).sum())
    if n_words < 2:
        raise InputError(
            f"{n_words} words occur at least {settings.min_count} times; training requires two",
            hint="pass more notes"
            + (" or a smaller vectors.min_count" if settings.min_count > 1 else ""),
        )
    rule = Subsampling.of(counts, settings.train_words, seed)
    sample = (
        subsampled(corpus, rule, split, executor or over_words(counts.n_tokens, workers))
        if rule
        else corpus
    )
    run = seed, workers, scratch, on_epoch, split
    if settings.more_text is None:
        return _with_share(algorithm_of(settings).train(Notes(sample, counts, *run)), rule)
    further = open_text(settings.more_text)
    all_counts = count_words(concatenated(corpus, further), scratch, split=split)
    trained = algorithm_of(settings).train(Notes(concatenated(sample, further), all_counts, *run))
    return _with_share(of_notes(trained, counts), rule)


def _with_share(vectors: Vectors, rule: Subsampling | None) -> Vectors:
    """Add the share of sampled patients to the meta data, if there was a subsample."""
    return (
        replace(vectors, meta={**vectors.meta, "patients_share": rule.patients.share})
        if rule
        else vectors
    )


def algorithm_of(settings: VectorSettings) -> Algorithm:
    """Return the algorithm of the settings with its parameters; `glove_variant` is GloVe's
    `variant`.
    """
    kind = ALGORITHMS.get(settings.algorithm)
    values = dict(settings)
    chosen = {name: values[name] for name in kind.model_fields if values.get(name) is not None}
    prefix = f"{settings.algorithm}_"
    chosen |= {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }
    return kind.model_validate(chosen)


@dataclass(frozen=True)
class Subsampling:
    """Rule of a subsample.

    Attributes:
        patients: sampled patients, all of whose notes are used.
        rare: word -> probability that one of its occurrences in the other notes is used.
    """

    patients: KeyedShare
    rare: Mapping[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, counts: WordCounts, words: int, seed: int) -> Subsampling | None:
        """Return the rule for about `words` words of a corpus; None for 0 or if the corpus is not
        larger.
        """
        if not 0 < words < counts.n_tokens:
            return None
        share = words / counts.n_tokens
        expected = counts.counts * share
        lacking = np.flatnonzero(expected < ENOUGH)
        chance = np.minimum(
            1.0, (ENOUGH - expected[lacking]) / (counts.counts[lacking] - expected[lacking])
        )
        rare = dict(zip((counts.words[i] for i in lacking.tolist()), chance.tolist(), strict=True))
        salt = np.random.SeedSequence(seed).generate_state(4).tobytes()
        return cls(KeyedShare(share, salt), rare)

    def pieces(self, note: Note, split: Splitter) -> Iterator[str]:
        """Yield the contexts of rare words in a note of a patient who is not in the sample."""
        for number, line in enumerate(split(note.text)):
            if self.rare.keys().isdisjoint(line):
                continue
            rare = [i for i, word in enumerate(line) if word in self.rare]
            rng = np.random.default_rng([int(self.patients.draw(note.note_id) * 2**53), number])
            uniform = rng.random(len(rare)).tolist()
            taken = [i for i, draw in zip(rare, uniform, strict=True) if draw < self.rare[line[i]]]
            yield from (" ".join(line[max(0, i - NEAR) : i + NEAR + 1]) for i in taken)


def subsampled(
    corpus: Corpus, rule: Subsampling, split: Splitter = whole_note, executor: Map = serial
) -> Corpus:
    """Return the subsample of a corpus, in source order; each context of a rare word is a row.

    `executor`: map that processes the batches, or the part files; it does not change the rows.
    """
    return MemoryCorpus(
        lambda: each_batch(executor, partial(subsampled_batch, rule, split), corpus)
    )


def subsampled_batch(rule: Subsampling, split: Splitter, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the subsample of one batch."""
    taken: list[Note] = []
    for note in rows([batch.select([NOTE_ID, PATIENT_ID, TEXT])]):
        if note.patient_id in rule.patients:
            taken.append(note)
        else:
            taken += [note._replace(text=piece) for piece in rule.pieces(note, split)]
    columns = zip(*taken, strict=True) if taken else ([], [], [])
    arrays = [
        pa.array(list(column), role.type) for column, role in zip(columns, ROLE_FIELDS, strict=True)
    ]
    return pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS))
