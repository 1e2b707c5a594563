"""What a release of notes should take in time and memory, from rates measured on one core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Words a second of one core's time, November 2026: reading and counting, with the pass that looks for the words of a
# part to train on (docs/scale.md).
READ_PER_SECOND = 2.0e6
# Seconds for a million words on one core of a shared x86-64 machine, November 2026: one pass with up to 100 dimensions,
# and what each window word adds to it (benchmarks/vectors.md).
PASS = {"cbow": (0.9, 0.022), "skipgram": (1.2, 0.15), "fasttext": (2.0, 0.5), "glove": (0.3, 0.1)}
# Of more words than these, training and measuring take a part (`--train-words`, `--measure-words`).
TRAIN_WORDS, MEASURE_WORDS = 4_000_000, 2_000_000
# Small notes need more passes before vectors know anything: so many words of training, in so many passes.
TRAINING_WORDS, FEWEST_PASSES, MOST_PASSES = 10_000_000, 5, 20
# Words a second and core, of invented notes, November 2026 (docs/scale.md); replacing without the order of the rows.
PHI_PER_SECOND = 8.0e4
REPLACE_PER_SECOND = 2.3e6
CHECK_PER_SECOND = 0.95e6
MEASURE_PER_SECOND = 2.0e4  # in one process, of the words that are measured
# Multiply-adds of exact neighbour search, a second and core; seconds to import, compile and draw the report.
PRODUCTS_PER_SECOND = 2.0e10
FIXED_SECONDS = 20.0
# Libraries and buffers; then per word type the two float32 matrices of training, a dictionary (measured: 1,200 bytes at
# 100 dimensions), a copy for the neighbour search, and 14 neighbours of 8 bytes.
FIXED_BYTES = 700e6
FLOATS_PER_TYPE = 3
DICTIONARY_PER_TYPE = 400 + 14 * 8


def passes(n_words: int) -> int:
    """Passes over notes of so many words where nobody says how many: by `benchmarks/vectors.md`."""
    return min(MOST_PASSES, max(FEWEST_PASSES, -(-TRAINING_WORDS // max(n_words, 1))))


def pass_seconds(algorithm: str, window: int, dim: int) -> float:
    """Seconds of one core for one training pass over a million words; of an unknown algorithm as of skip-gram."""
    base, each = PASS.get(algorithm, PASS["skipgram"])
    return (base + each * window) * max(1.0, dim / 100)


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
    algorithm: str = "skipgram",
    window: int = 40,
    epochs: int | None = None,
    dim: int = 100,
    train: bool = True,
    more_words: int = 0,
    train_words: int = TRAIN_WORDS,
    measure_words: int = MEASURE_WORDS,
) -> Estimate:
    """What a release of so many words and word types should take; the defaults are those of a release.

    Args:
        epochs: passes; by `passes` if None. train: False where vectors are given.
        more_words: of other text that vectors are trained on as well. train_words: of the notes, at most; 0: all.
        measure_words: of the notes that attacks look at, at most; 0: all.
    """
    learnt = min(n_words, train_words or n_words) + more_words
    seen = min(n_words, measure_words or n_words)
    trained = learnt / 1e6 * (epochs or passes(learnt)) * pass_seconds(algorithm, window, dim) / workers
    stages = {
        "read and count": n_words / READ_PER_SECOND / workers,
        "replace PHI": n_words / PHI_PER_SECOND / workers if phi else 0.0,
        "train vectors": trained + more_words / READ_PER_SECOND if train else 0.0,
        "find neighbours": float(n_types) ** 2 * dim / PRODUCTS_PER_SECOND / workers,
        "replace words": n_words / REPLACE_PER_SECOND / workers,
        "check and report": FIXED_SECONDS + n_words / CHECK_PER_SECOND / workers + seen / MEASURE_PER_SECOND,
    }
    memory = FIXED_BYTES + n_types * (4 * FLOATS_PER_TYPE * dim + DICTIONARY_PER_TYPE)
    return Estimate(stages, memory, workers)
