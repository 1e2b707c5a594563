"""What is drawn for the attacks on a channel: outputs of its rows, and patients with the words of their notes."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.random import Generator

from clinveil.channel.channel import Channel
from clinveil.core.tokens import words
from clinveil.core.types import Ints
from clinveil.corpus.corpus import Corpus, rows
from clinveil.corpus.sample import KeySample


def drawn_outputs(channel: Channel, rows: Ints, m: int, rng: Generator) -> Ints:
    """m independent outputs of each of these rows, (n, m); none of them may be empty."""
    ends = np.cumsum(channel.probabilities)
    starts = np.concatenate([[0.0], ends])[channel.indptr]
    low, high = starts[rows][:, None], starts[rows + 1][:, None]
    places = np.searchsorted(ends, low + rng.random((rows.size, m)) * (high - low), side="right")
    places = np.clip(places, channel.indptr[rows][:, None], channel.indptr[rows + 1][:, None] - 1)
    return channel.indices[places].astype(np.int64)


def sampled_words(corpus: Corpus, patients: int, rng: Generator) -> KeySample[Counter[str]]:
    """How often each word stands in the notes of each of at most `patients` patients, drawn uniformly; streams."""
    sample: KeySample[Counter[str]] = KeySample(patients, rng)
    for note in rows(corpus):
        counter = sample.offer(note.patient_id, Counter)
        if counter is not None:
            counter.update(words(note.text))
    return sample
