"""Writing synthetic notes: many at once, each from its own keyed stream of random numbers.

Note k takes its numbers from (key, k) and no other place, so it is the same for any number of lanes. A word is the
first whose cumulated probability exceeds the number: with probabilities in double precision, rounding of another batch
shape moves that border by about 1e-16, and no word with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from clinveil.core.keys import Key
from clinveil.core.types import Doubles, Ints
from clinveil.lm.model import LanguageModel, Stream
from clinveil.lm.vocabulary import END, Ids

BLOCK = 256  # random numbers drawn at once for a note


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


def generate(model: LanguageModel, key: Key, config: SamplingConfig, *, first: int = 0) -> Iterator[GeneratedNote]:
    """Endless notes, in the order of their numbers from `first` on."""
    decoding = _Decoding(model.stream(config.batch_size), key, config, first)
    waiting: dict[int, GeneratedNote] = {}
    number = first
    while True:
        while number not in waiting:
            waiting.update((note.number, note) for note in decoding.step())
        yield waiting.pop(number)
        number += 1


class _Decoding:
    """The lanes, and what has been written in each."""

    def __init__(self, stream: Stream, key: Key, config: SamplingConfig, first: int) -> None:
        self._stream, self._key, self._config = stream, key, config
        self._next = first
        self._numbers = np.zeros(config.batch_size, dtype=np.int64)
        self._random: list[np.random.Generator] = [np.random.default_rng(0)] * config.batch_size
        self._uniform = np.empty((config.batch_size, BLOCK))
        self._length = np.zeros(config.batch_size, dtype=np.int64)
        self._rows: list[list[int]] = [[] for _ in range(config.batch_size)]
        for lane in range(config.batch_size):
            self._begin(lane)

    def _begin(self, lane: int) -> None:
        seed = self._key.stream("synthetic note", str(self._next))
        self._random[lane] = np.random.Generator(np.random.Philox(key=[seed.uint64(), seed.uint64()]))
        self._numbers[lane], self._length[lane], self._rows[lane] = self._next, 0, []
        self._next += 1

    def step(self) -> list[GeneratedNote]:
        """One more token in every lane; the notes that ended with it."""
        ids = drawn(_shaped(self._stream.probabilities(), self._config), self._numbers_now())
        self._length += 1
        ended = ids == END
        over = ended | (self._length >= self._config.max_new_tokens)
        for lane in np.flatnonzero(~ended):
            self._rows[lane].append(int(ids[lane]))
        lanes = np.flatnonzero(over)
        done = [
            GeneratedNote(int(self._numbers[lane]), np.array(self._rows[lane], dtype=np.int32), not ended[lane])
            for lane in lanes
        ]
        self._stream.push(ids)
        if lanes.size:
            self._stream.reset(lanes)
        for lane in lanes:
            self._begin(int(lane))
        return done

    def _numbers_now(self) -> Doubles:
        """(lanes,) the random number of each lane's place in its note."""
        place = self._length % BLOCK
        for lane in np.flatnonzero(place == 0):
            self._uniform[lane] = self._random[lane].random(BLOCK)
        return self._uniform[np.arange(place.size), place]


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
    if config.temperature != 1.0:
        logs = np.log(np.maximum(probabilities, 1e-300)) / config.temperature
        probabilities = np.exp(logs - logs.max(axis=1, keepdims=True))
    if config.top_p < 1.0:
        probabilities = _top(probabilities / probabilities.sum(axis=1, keepdims=True), config.top_p)
    return probabilities


def _top(probabilities: Doubles, share: float) -> Doubles:
    """The likeliest words until they make up the share; the rest get 0."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=1)
    keep = np.cumsum(ranked, axis=1) - ranked < share
    kept = np.zeros_like(probabilities)
    np.put_along_axis(kept, order, np.where(keep, ranked, 0.0), axis=1)
    return kept
