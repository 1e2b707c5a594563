"""Writing synthetic notes: many at once, each from its own keyed stream of random numbers.

Note k takes its numbers from (key, k) and no other place, so it is the same for any number of lanes. A word is the
first whose cumulated probability exceeds the number: with probabilities in double precision, rounding of another batch
shape moves that border by about 1e-16, and no word with it.
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
    """How notes are drawn.

    Attributes:
        batch_size: notes written at once. max_new_tokens: tokens of a note at most; a longer one is cut there.
        temperature: 1 draws from the model as it is. top_p: only the likeliest words that make up this share; 1: all.
    """

    batch_size: int = 64
    max_new_tokens: int = 4_000
    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.max_new_tokens < 1 or not self.temperature > 0 or not 0 < self.top_p <= 1:
            raise ValueError("drawing needs lanes, a length, a positive temperature, and a share between 0 and 1")


@dataclass(frozen=True)
class GeneratedNote:
    """One note: its number, its tokens (the end is not among them), and whether it was cut at the longest length."""

    number: int
    ids: Ids = field(repr=False)
    truncated: bool


def batch_size_for(notes: int, most: int = 64) -> int:
    """How many lanes suit about so many notes: what is under way when the last one is done is thrown away."""
    return max(1, min(most, notes // 4))


class _Lane:
    """A note that is being written, and its random numbers."""

    def __init__(self, key: Key, number: int) -> None:
        seed = key.stream("synthetic note", str(number))
        self.random = np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()]))
        self.number, self.ids = number, list[int]()


def generate(model: LanguageModel, key: Key, config: SamplingConfig, *, first: int = 0) -> Iterator[GeneratedNote]:
    """Endless notes, in the order of their numbers from `first` on."""
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
    """(lanes,) one number a row, by inverting the cumulated probabilities (not normalised) at uniform numbers."""
    sums = np.cumsum(probabilities, axis=1)
    above = sums > (uniform * sums[:, -1])[:, None]
    places = above.argmax(axis=1)
    # Rounding can put the number on the very end: the last word that has any probability is meant.
    for row in np.flatnonzero(~above[np.arange(places.size), places]):
        places[row] = np.flatnonzero(probabilities[row])[-1]
    return places.astype(np.int64)


def _shaped(probabilities: Doubles, config: SamplingConfig) -> Doubles:
    """After temperature, and with 0 for all but the likeliest words that make up the share `top_p`."""
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
