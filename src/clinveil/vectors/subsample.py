"""Subsample a large corpus for training: all notes of some patients, and contexts of words that these lack.

Beyond a few million words, more notes do not improve the vectors of frequent words, but take proportionally longer. The
subsample has all notes of a random sample of patients. From the other notes it has the contexts of words that occur
fewer than `ENOUGH` times in the sample, so that every word is trained on some of its real contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID, ROLE_FIELDS, TEXT, Corpus, MemoryCorpus, Note, rows
from clinveil.corpus.sample import KeyedShare
from clinveil.scale import Map, serial
from clinveil.vectors.count import WordCounts
from clinveil.vectors.sentences import Splitter, whole_note

ENOUGH = 3  # occurrences wanted of each word
NEAR = 5  # words on either side of a rare word


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
        """Return the rule for about `words` words of a corpus; None for 0 or if the corpus is not larger."""
        if not 0 < words < counts.n_tokens:
            return None
        share = words / counts.n_tokens
        expected = counts.counts * share
        lacking = np.flatnonzero(expected < ENOUGH)
        chance = np.minimum(1.0, (ENOUGH - expected[lacking]) / (counts.counts[lacking] - expected[lacking]))
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


def subsampled(corpus: Corpus, rule: Subsampling, split: Splitter = whole_note, over: Map = serial) -> Corpus:
    """Return the subsample of a corpus, in source order; each context of a rare word is a row.

    `over`: map that processes the batches; it does not change the rows.
    """
    return MemoryCorpus(lambda: over(partial(subsampled_batch, rule, split), corpus.batches()))


def subsampled_batch(rule: Subsampling, split: Splitter, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the subsample of one batch."""
    taken: list[Note] = []
    for note in rows([batch.select([NOTE_ID, PATIENT_ID, TEXT])]):
        if note.patient_id in rule.patients:
            taken.append(note)
        else:
            taken += [note._replace(text=piece) for piece in rule.pieces(note, split)]
    columns = zip(*taken, strict=True) if taken else ([], [], [])
    arrays = [pa.array(list(column), role.type) for column, role in zip(columns, ROLE_FIELDS, strict=True)]
    return pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS))
