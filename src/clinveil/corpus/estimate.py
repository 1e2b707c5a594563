"""Estimate the time and memory of a release, from the rates of a reference machine.

The reference machine has two hyperthreads of an AMD EPYC (November 2026). All rates are in one
table, `RATES`. `python benchmarks/estimates.py NOTES` runs a release and prints, for each row, the
estimate, the measured seconds and the rate to put into the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from clinveil.core.compiled import at_most_cores

# Relative seconds per million words on one core: one pass with up to 100 dimensions, and what each
# word of the window adds to it (benchmarks/vectors.md). The row "vectors" of RATES is in units of
# these.
PASS = {"cbow": (0.9, 0.022), "skipgram": (0.5, 0.07), "fasttext": (2.0, 0.5), "glove": (0.3, 0.1)}
# Above this many words, training and measuring use a sample (settings `train-words`,
# `measure-words`).
TRAIN_WORDS = 4_000_000
MEASURE_WORDS = 2_000_000
# Small corpora need more passes: this many words of training, in this many passes.
TRAINING_WORDS = 10_000_000
FEWEST_PASSES = 5
MOST_PASSES = 20


class Rate(NamedTuple):
    """The cost of one step of a release in processor seconds of the reference machine.

    Attributes:
        stage: the stage of a plan that the step belongs to.
        fixed: seconds per release. each: seconds per unit. unit: what is counted; a "pass" is in
            seconds of `PASS`.
        shared: whether the workers divide the units among them.
    """

    stage: str
    fixed: float
    each: float
    unit: Literal["million words", "million words measured", "pass", "10^12 products", "release"]
    shared: bool = False


# Keys are the step names of the manifest (`releases/stage_timer.py`). Fitted by
# benchmarks/estimates.py, November 2026.
RATES: Mapping[str, Rate] = {
    "identifiers": Rate("replace PHI", 6.0, 12.0, "million words", shared=True),
    "vocabulary": Rate("read and count", 0.0, 0.6, "million words", shared=True),
    "vectors": Rate("train vectors", 0.5, 1.6, "pass", shared=True),
    "neighbours": Rate("find neighbours", 0.2, 10.0, "10^12 products"),
    "obfuscate": Rate("replace words", 0.1, 0.5, "million words", shared=True),
    "check": Rate("check and report", 0.2, 0.9, "million words", shared=True),
    "measure": Rate("check and report", 35.0, 65.0, "million words measured"),
    "rest": Rate("check and report", 9.0, 0.0, "release"),
}
STAGES = (
    "read and count",
    "replace PHI",
    "train vectors",
    "find neighbours",
    "replace words",
    "check and report",
)
CHARACTERS_PER_WORD = 6.6  # of MTSamples, punctuation and spaces included
HEAPS = (44.0, 0.445)  # word types = 44 · words^0.445, fitted on MTSamples
# Libraries and buffers; then per word type the two float32 matrices of training, a dictionary
# (measured: 1,200 bytes at 100 dimensions), a copy for the neighbour search, and 14 neighbours of 8
# bytes.
FIXED_BYTES = 700e6
FLOATS_PER_TYPE = 3
DICTIONARY_PER_TYPE = 400 + 14 * 8


def types_of(n_words: int) -> int:
    """Return the expected number of word types among this many words."""
    return round(HEAPS[0] * max(n_words, 1) ** HEAPS[1])


def duration(seconds: float) -> str:
    """Return seconds, minutes or hours as text: `90 s`, `75 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def passes(n_words: int) -> int:
    """Return the default number of training passes over this many words (benchmarks/vectors.md)."""
    return min(MOST_PASSES, max(FEWEST_PASSES, -(-TRAINING_WORDS // max(n_words, 1))))


@dataclass(frozen=True)
class Estimate:
    """Time and memory of a release with given settings.

    Attributes:
        stages: seconds per stage of the plan, in the order of `STAGES`.
        memory: bytes at the peak; it grows with the word types, not with the notes.
        workers: number of workers that it holds for.
        steps: seconds per step of the manifest, in the order in which they run.
    """

    stages: Mapping[str, float]
    memory: float
    workers: int
    steps: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Total of all stages."""
        return sum(self.stages.values())


def estimate(
    n_words: int,
    n_types: int | None = None,
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
    """Estimate a release of notes with this many words; the defaults are those of a release.

    Args:
        n_types: word types, for the memory; expected from the words if None.
        epochs: training passes; `passes` decides if None. train: False if vectors are given.
        more_words: words of additional training text. train_words: maximum number of words of the
            notes to train on; 0: all. measure_words: maximum number of words of the notes that
            attacks read; 0: all.
    """
    at_once = at_most_cores(workers)
    trained_words = min(n_words, train_words or n_words) + more_words
    base, each = PASS.get(algorithm, PASS["skipgram"])
    one_pass = (base + each * window) * max(1.0, dim / 100)  # seconds of one core per million words
    units = {
        "million words": n_words / 1e6,
        "million words measured": min(n_words, measure_words or n_words) / 1e6,
        "pass": trained_words / 1e6 * (epochs or passes(trained_words)) * one_pass,
        "10^12 products": float(types_of(n_words)) ** 2 * dim / 1e12,
        "release": 1.0,
    }
    left_out = {name for name, enabled in (("identifiers", phi), ("vectors", train)) if not enabled}
    steps = {
        name: 0.0
        if name in left_out
        else rate.fixed + rate.each * units[rate.unit] / (at_once if rate.shared else 1)
        for name, rate in RATES.items()
    }
    stages = {
        stage: sum(s for name, s in steps.items() if RATES[name].stage == stage) for stage in STAGES
    }
    memory = FIXED_BYTES + (n_types or types_of(n_words)) * (
        4 * FLOATS_PER_TYPE * dim + DICTIONARY_PER_TYPE
    )
    return Estimate(stages, memory, workers, steps)
