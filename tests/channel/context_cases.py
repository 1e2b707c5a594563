"""Channels with a context model, of a small language of sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from channel_cases import all_others

from clinveil.channel import Channel, NeighbourRange, common_pool, neighbour_channel, with_context
from clinveil.corpus import ROLE_FIELDS, MemoryCorpus

LABEL = "kind"
LANGUAGE = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(230)]
KINDS = ("left", "right")


def sentence(rng: np.random.Generator, kind: str) -> str:
    """A sentence: each word is followed by one of a few; a kind prefers its half of the words."""
    n = len(LANGUAGE)
    word = int(rng.integers(20))
    words = []
    for _ in range(int(rng.integers(3, 9))):
        words.append(LANGUAGE[word])
        step = int(rng.integers(1, 6)) * 7
        word = (word * 3 + step) % n
        if rng.random() < 0.5:
            word = word // 2 + (n // 2 if kind == KINDS[1] else 0)
    return " ".join(words) + ". "


def labelled_notes(n: int = 400, seed: int = 1) -> MemoryCorpus:
    """Notes of one patient each, of two kinds, with some words outside the language."""
    rng = np.random.default_rng(seed)
    kinds = [KINDS[i % 2] for i in range(n)]
    texts = [
        "".join(sentence(rng, kind) for _ in range(int(rng.integers(2, 8)))) + "Zebra, 12 units."
        for kind in kinds
    ]
    ids = [f"note {i}" for i in range(n)]
    columns = [pa.array(ids), pa.array(ids), pa.array(texts, pa.large_string()), pa.array(kinds)]
    schema = pa.schema([*ROLE_FIELDS, pa.field(LABEL, pa.string())])
    whole = pa.record_batch(columns, schema=schema)
    return MemoryCorpus(tuple(whole.slice(i, 90) for i in range(0, n, 90)))


def contextual(
    scratch: Path, *, low: int = 3, high: int = 8, patients: int = 5, label: str | None = LABEL
) -> Channel:
    """A channel of the language, with a model of its notes."""
    table = all_others(LANGUAGE, high)
    counts = np.arange(len(LANGUAGE), 0, -1)
    pool = common_pool(counts, table.eligible, 20)
    channel = neighbour_channel(LANGUAGE, NeighbourRange(low=low, high=high), table, pool)
    return with_context(
        channel.under(layout="sentences"),
        labelled_notes(),
        ngram_patients=patients,
        label=label,
        workers=1,
        scratch=scratch,
    )
