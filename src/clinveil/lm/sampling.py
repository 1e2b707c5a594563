"""Write synthetic notes, many at once, each with its own keyed stream of random numbers.

The random numbers of note k depend on (key, k) only, so the note is the same for any number of lanes. A word is the
first one whose cumulative probability exceeds the random number. With probabilities in double precision, another batch
shape moves this limit by about 1e-16, which practically never changes a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from clinveil.core.keys import Key
from clinveil.core.types import Doubles, Ints
from clinveil.lm.model import LanguageModel
from clinveil.lm.vocabulary import END, Ids


@dataclass(frozen=True)
class SamplingConfig:
    """Settings of sampling.

    Attributes:
        batch_size: notes written at once. max_new_tokens: maximum tokens of a note; longer notes are truncated.
        temperature: 1 samples from the unchanged model. top_p: sample from the likeliest words with this total
            probability; 1: from all words.
    """

    batch_size: int = 64
    max_new_tokens: int = 4_000
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.max_new_tokens < 1 or not self.temperature > 0 or not 0 < self.top_p <= 1:
            raise ValueError("batch_size, max_new_tokens and temperature must be positive, and top_p in (0, 1]")


@dataclass(frozen=True)
class GeneratedNote:
    """One note: its number, its tokens without the end, and whether it was truncated."""

    number: int
    ids: Ids = field(repr=False)
    truncated: bool


def batch_size_for(notes: int, most: int = 64) -> int:
    """Return the batch size for about this many notes; unfinished notes are discarded at the end."""
    return max(1, min(most, notes // 4))


class _Lane:
    """A note that is being written, with its random numbers."""

    def __init__(self, key: Key, number: int) -> None:
        seed = key.stream("synthetic note", str(number))
        self.random = np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()]))
        self.number, self.ids = number, list[int]()


def generate(model: LanguageModel, key: Key, config: SamplingConfig, *, first: int = 0) -> Iterator[GeneratedNote]:
    """Yield notes without end, in the order of their numbers from `first` on."""
    stream, numbers, number = model.stream(config.batch_size), count(first), first
    lanes = [_Lane(key, next(numbers)) for _ in range(config.batch_size)]
    waiting: dict[int, GeneratedNote] = {}
    while True:
        uniform = np.array([lane.random.random() for lane in lanes])
        ids = drawn(_shaped(stream.probabilities(), config), uniform)
        for lane, token in zip(lanes, ids.tolist(), strict=True):
            lane.ids.append(token)
        over = [i for i, lane in enumerate(lanes) if lane.ids[-1] == END or len(lane.ids) >= config.max_new_tokens]
        stream.push(ids)
        if over:
            stream.reset(np.array(over))
        for i in over:
            row, truncated = lanes[i].ids, lanes[i].ids[-1] != END
            kept = np.array(row if truncated else row[:-1], dtype=np.int32)
            waiting[lanes[i].number] = GeneratedNote(lanes[i].number, kept, truncated)
            lanes[i] = _Lane(key, next(numbers))
        while number in waiting:
            yield waiting.pop(number)
            number += 1


def drawn(probabilities: Doubles, uniform: Doubles) -> Ints:
    """Return one word per row, (lanes,), by inverting the cumulative probabilities at uniform numbers."""
    sums = np.cumsum(probabilities, axis=1)
    above = sums > (uniform * sums[:, -1])[:, None]
    words = above.argmax(axis=1)
    # If rounding puts the number at the upper end, take the last word with a positive probability.
    for row in np.flatnonzero(~above[np.arange(words.size), words]):
        words[row] = np.flatnonzero(probabilities[row])[-1]
    return words.astype(np.int64)


def _shaped(probabilities: Doubles, config: SamplingConfig) -> Doubles:
    """Apply the temperature, and set all but the likeliest words with total probability `top_p` to 0."""
    if config.temperature != 1.0:
        logs = np.log(np.maximum(probabilities, 1e-300)) / config.temperature
        probabilities = np.exp(logs - logs.max(axis=1, keepdims=True))
    if config.top_p < 1.0:
        probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        ranked = np.take_along_axis(probabilities, order, axis=1)
        probabilities = np.zeros_like(probabilities)
        keep = np.cumsum(ranked, axis=1) - ranked < config.top_p
        np.put_along_axis(probabilities, order, np.where(keep, ranked, 0.0), axis=1)
    return probabilities
