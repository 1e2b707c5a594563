"""What a release of notes should take in time and memory, from rates measured on one core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Words a second of one core's time, November 2026, a shared 4-core x86-64 machine: reading and counting (MTSamples 150
# times over, 123 M words), and gensim's CBOW (100 dimensions, window 5, 5 negatives, min_count 1, an epoch of
# MTSamples, 0.8 M words); beside it, skip-gram and fastText took 4.3 and 6.3 times as long.
READ_PER_SECOND = 1.1e6
TRAIN_PER_SECOND = 4.0e5
SLOWER = {"cbow": 1.0, "skipgram": 4.3, "fasttext": 6.3}
# Not measured here but budgeted, as in the release plan: words a second and core.
PHI_PER_SECOND = 1.5e5
REPLACE_PER_SECOND = 5.0e6
CHECK_PER_SECOND = 2.0e5
# Multiply-adds of exact neighbour search, a second and core; seconds to import, compile and draw the report.
PRODUCTS_PER_SECOND = 2.0e10
FIXED_SECONDS = 20.0
# Libraries and buffers; then per word type gensim's two float32 matrices, its dictionary (measured: 1,200 bytes at 100
# dimensions), a copy for the neighbour search, and 14 neighbours of 8 bytes.
FIXED_BYTES = 700e6
FLOATS_PER_TYPE = 3
DICTIONARY_PER_TYPE = 400 + 14 * 8


@dataclass(frozen=True)
class Estimate:
    """Time and memory of a release with given settings: a guess from measured rates, good to a factor of two or so.

    Attributes:
        stages: seconds by stage.
        memory: bytes at the peak; it grows with the word types, not with the notes.
        workers: how many workers it is for.
    """

    stages: Mapping[str, float]
    memory: float
    workers: int

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(self.stages.values())


def estimate(
    n_words: int,
    n_types: int,
    *,
    workers: int = 2,
    phi: bool = True,
    algorithm: str = "cbow",
    epochs: int = 5,
    dim: int = 100,
) -> Estimate:
    """What a release of so many words and word types should take; the defaults are those of a release."""
    stages = {
        "read and count": n_words / READ_PER_SECOND,
        "replace PHI": n_words / PHI_PER_SECOND / workers if phi else 0.0,
        "train vectors": n_words * epochs * SLOWER[algorithm] / TRAIN_PER_SECOND / workers,
        "find neighbours": float(n_types) ** 2 * dim / PRODUCTS_PER_SECOND / workers,
        "replace words": n_words / REPLACE_PER_SECOND / workers,
        "check and report": FIXED_SECONDS + n_words / CHECK_PER_SECOND,
    }
    memory = FIXED_BYTES + n_types * (4 * FLOATS_PER_TYPE * dim + DICTIONARY_PER_TYPE)
    return Estimate(stages, memory, workers)
