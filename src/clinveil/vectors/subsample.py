"""A part of many notes that stands for all of them in training: some patients, and every word with its neighbours.

Beyond a few million words more notes teach frequent words nothing, and cost time in proportion. So all notes of a
random sample of patients are taken; and of the others the nearest surroundings of those words that the sample shows
fewer than `ENOUGH` times, so that every word of the notes has been seen where it stands.
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

ENOUGH = 3  # occurrences of a word that are wanted
NEAR = 5  # words on either side of a rare word that are taken from notes that are not


@dataclass(frozen=True)
class Subsampling:
    """What is taken of the notes.

    Attributes:
        patients: those whose notes are taken, all of them.
        rare: word -> chance that one of its occurrences in the other notes is taken.
    """

    patients: KeyedShare
    rare: Mapping[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, counts: WordCounts, words: int, seed: int) -> Subsampling | None:
        """About so many words of notes with these counts; None where there are no more, or for 0 (all)."""
        if not 0 < words < counts.n_tokens:
            return None
        share = words / counts.n_tokens
        seen = counts.counts * share
        lacking = np.flatnonzero(seen < ENOUGH)
        chance = np.minimum(1.0, (ENOUGH - seen[lacking]) / (counts.counts[lacking] - seen[lacking]))
        rare = dict(zip((counts.words[i] for i in lacking.tolist()), chance.tolist(), strict=True))
        salt = np.random.SeedSequence(seed).generate_state(4).tobytes()
        return cls(KeyedShare(share, salt), rare)

    def pieces(self, note: Note, split: Splitter) -> Iterator[str]:
        """The surroundings of rare words in a note of a patient who is not taken."""
        for number, line in enumerate(split(note.text)):
            if self.rare.keys().isdisjoint(line):
                continue
            places = [i for i, word in enumerate(line) if word in self.rare]
            rng = np.random.default_rng([int(self.patients.draw(note.note_id) * 2**53), number])
            drawn = rng.random(len(places)).tolist()
            taken = [i for i, at in zip(places, drawn, strict=True) if at < self.rare[line[i]]]
            yield from (" ".join(line[max(0, i - NEAR) : i + NEAR + 1]) for i in taken)


def subsampled(corpus: Corpus, how: Subsampling, split: Splitter = whole_note, over: Map = serial) -> Corpus:
    """The notes of a corpus that training sees, in source order; a piece of a note is a row of its own.

    `over`: who cuts the notes; the rows are the same for any.
    """
    return MemoryCorpus(lambda: over(partial(thin, how, split), corpus.batches()))


def thin(how: Subsampling, split: Splitter, batch: pa.RecordBatch) -> pa.RecordBatch:
    """What is taken of one batch."""
    taken: list[Note] = []
    for note in rows([batch.select([NOTE_ID, PATIENT_ID, TEXT])]):
        if note.patient_id in how.patients:
            taken.append(note)
        else:
            taken += [note._replace(text=piece) for piece in how.pieces(note, split)]
    columns = zip(*taken, strict=True) if taken else ([], [], [])
    arrays = [pa.array(list(column), role.type) for column, role in zip(columns, ROLE_FIELDS, strict=True)]
    return pa.record_batch(arrays, schema=pa.schema(ROLE_FIELDS))
