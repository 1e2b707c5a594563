"""Small vocabularies and channels, and notes to obfuscate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from clinveil.channel import Channel, NeighbourRange, common_pool, neighbour_channel
from clinveil.channel.neighbour_rows import NO_POOL
from clinveil.corpus import memory_corpus
from clinveil.vectors import Neighbours, Vectors

WORDS = [
    "the",
    "patient",
    "has",
    "pain",
    "in",
    "chest",
    "and",
    "fever",
    "with",
    "cough",
    "of",
    "smith",
    "josé",
    "zoë",
    "иван",
    "王芳",
    "strasse",
    "müller",
    "cholecystectomy",
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "hydroxychloroquine",
    "a",
    "b",
]


def all_others(words: Sequence[str], k: int) -> Neighbours:
    """A table in which the neighbours of word i are i + 1, i + 2, … around the circle."""
    n = len(words)
    ids = (np.arange(n)[:, None] + np.arange(1, k + 1)) % n
    similarities = np.tile(np.linspace(0.9, 0.1, k, dtype=np.float32), (n, 1))
    return Neighbours(ids.astype(np.int32), similarities, np.ones(n, dtype=np.bool_))


def vectors_of(words: Sequence[str]) -> Vectors:
    """Vectors of these words, the first the most frequent."""
    counts = np.arange(len(words), 0, -1, dtype=np.int64)
    return Vectors(words, np.eye(len(words), dtype=np.float32), counts)


def circle(words: Sequence[str] = WORDS, low: int = 3, high: int = 5, *, pool: int = 6) -> Channel:
    """The channel of the circle; unknown words draw from the first `pool` words."""
    table = all_others(words, high)
    counts = vectors_of(words).counts
    common = common_pool(counts, table.eligible, pool) if pool else NO_POOL
    return neighbour_channel(words, NeighbourRange(low=low, high=high), table, common)


def batch_of(*notes: tuple[str, str, str | None]) -> pa.RecordBatch:
    """One batch of (note id, patient id, text)."""
    return next(iter(memory_corpus(notes).batches()))


def texts_of(batch: pa.RecordBatch) -> list[str]:
    """The texts of a batch."""
    return batch.column("text").to_pylist()
