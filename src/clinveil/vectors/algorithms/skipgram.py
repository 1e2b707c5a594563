"""Skip-gram with negative samples; the result is bitwise the same for any number of workers.

Learning rate, windows, sampling and subsampling are those of the program of Mikolov et al. (2013)
and of gensim. Three things differ (`_steps.py`): the samples of a centre are shared by all words
around it, repeated samples of a centre count once, and each epoch reads the lines in a new order.
benchmarks/vectors.md compares the result with gensim.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from clinveil.core import Doubles, Floats, InputError, Ints, at_most_cores
from clinveil.vectors.algorithm import Notes, OnEpoch, Predicting
from clinveil.vectors.algorithms._steps import (
    PairSampling,
    SampledVectors,
    add_changes,
    new_lane,
    subsample_lines,
    train_rounds,
)
from clinveil.vectors.sentences import END, IdFile, Ids, encoded_file, words_in
from clinveil.vectors.settings import passes
from clinveil.vectors.table import Vectors

LANES = (
    4  # parts of the text that are trained concurrently; changes the result, so it is not a setting
)
FIRST_RATE = 0.025
LAST_RATE = 0.0001
SAMPLE = 1e-3  # words above this share of all words are subsampled
POWER = 0.75  # negative samples are drawn in proportion to count ** POWER
# Lanes do not see each other's changes until they are added up. This limits the unseen steps of one
# row. With 1,500 vectors were as good on MTSamples, OHSUMED and invented notes; with 6,000 training
# diverged on these.
UNSEEN = 1_000
FEWER = 8  # if training diverges, it restarts with UNSEEN divided by this, at most twice
_MOST_CENTRES = 512
_CHUNK = 1 << 20  # words that are subsampled and trained on at a time


class Skipgram(Predicting):
    """Predict the context from a word."""

    name: ClassVar[str] = "skipgram"

    def train(self, notes: Notes) -> Vectors:
        """Train the vectors; the result is the same for any number of workers.

        Raises InputError if training diverges.
        """
        counts = notes.counts.counts[notes.counts.counts >= self.min_count]
        words = {word: row for row, word in enumerate(notes.counts.words[: len(counts)])}
        first = np.random.default_rng(notes.seed).random((len(counts), self.dim), np.float32)
        matrix = (2 * first - 1) / np.float32(self.dim)  # as gensim begins
        with encoded_file(notes.corpus, words, notes.split, notes.scratch) as ids:
            epochs = self.epochs or passes(words_in(ids))
            plan = Plan(self.window, self.negative, epochs, notes.workers, notes.seed)
            train_skipgram(ids, counts, matrix, plan, notes.on_epoch)
        return notes.table(matrix, self.description(notes, epochs, "clinveil"))


@dataclass(frozen=True)
class Plan:
    """Parameters of a training."""

    window: int
    negative: int
    epochs: int
    workers: int
    seed: int


def train_skipgram(
    ids: Ids | IdFile, counts: Ints, inputs: Floats, plan: Plan, on_epoch: OnEpoch | None
) -> Floats:
    """Train the vectors in place; the same seed gives the same bits on the same machine, for any
    number of workers.

    Args:
        ids: word ids of the notes, `END` after each line.
        counts: (n_words,) occurrences in all notes, for subsampling and negative sampling.
        inputs: (n_words, dim) initial vectors.
        on_epoch: called with (epochs done, epochs in all) after each epoch.

    Returns: (n_words, dim) the output vectors, of words as centres and samples.

    Raises InputError if training diverges.
    """
    words = words_in(ids)
    first = inputs.copy()
    centres = stretch(counts, plan.window, plan.negative)
    for unseen in (centres, centres // FEWER, centres // FEWER**2):
        inputs[:] = first
        with ThreadPoolExecutor(LANES) as pool:
            training = _Training(counts, inputs, plan, pool, max(1, unseen))
            if all(training.one_pass(ids, words, epoch, on_epoch) for epoch in range(plan.epochs)):
                return training.model.outputs
    raise InputError(
        "skip-gram training diverged", hint="pass a smaller vectors.window or vectors.negative"
    )


class _Training:
    """A model and its concurrent lanes."""

    def __init__(
        self, counts: Ints, inputs: Floats, plan: Plan, pool: ThreadPoolExecutor, centres: int
    ) -> None:
        self.plan = plan
        self.pool = pool
        self.centres = centres
        self.model = SampledVectors(inputs, np.zeros_like(inputs), *_samples(counts))
        self.keep = _keep(counts)
        self.lanes = tuple(
            new_lane(*inputs.shape, centres=centres, window=plan.window, negative=plan.negative)
            for _ in range(LANES)
        )

    def one_pass(self, ids: Ids | IdFile, words: int, epoch: int, on_epoch: OnEpoch | None) -> bool:
        """Train once on all lines (`words` words); return whether all numbers are finite."""
        before = 0
        for number, chunk in enumerate(chunks(ids, _CHUNK)):
            size = int(np.count_nonzero(chunk != END))
            done, then = (
                (epoch + part / max(1, words)) / self.plan.epochs
                for part in (before, before + size)
            )
            self.chunk(chunk, done, then, [self.plan.seed, epoch, number])
            before += size
        if on_epoch:
            on_epoch(epoch + 1, self.plan.epochs)
        return bool(np.isfinite(self.model.inputs).all())

    def chunk(self, ids: Ids, done: float, then: float, seed: list[int]) -> None:
        """Train on some lines once, while the share of words done grows from `done` to `then`."""
        *rngs, last = (np.random.default_rng([*seed, lane]) for lane in range(LANES + 1))
        kept = self._subsampled(ids, last)
        share = -(-kept.size // LANES)  # each lane has a separate part of the lines
        firsts = np.arange(0, share, self.centres)
        ends = np.stack([firsts, np.minimum(firsts + self.centres, share)], axis=1)
        centres = np.minimum(ends[:, None] + np.arange(LANES)[:, None] * share, kept.size)
        alphas = rate(done + (then - done) * firsts / max(1, share)).astype(np.float32)
        self._rounds(kept, centres, alphas, tuple(rngs))

    def _rounds(
        self, ids: Ids, centres: Ints, alphas: Floats, rngs: tuple[np.random.Generator, ...]
    ) -> None:
        """Train all lanes, some of them in this thread; after each round, their changes are added
        up.
        """
        workers = max(1, min(at_most_cores(self.plan.workers), LANES))
        rule = PairSampling(self.plan.window, self.plan.negative)

        def train(worker: int, rounds: slice) -> None:
            train_rounds(
                ids,
                centres[rounds],
                alphas[rounds],
                self.model,
                self.lanes,
                rule,
                rngs,
                worker,
                workers,
            )

        at_once = 1 if workers > 1 else 256  # a signal is handled between calls
        for first in range(0, len(alphas), at_once):
            rounds = slice(first, first + at_once)
            futures = [self.pool.submit(train, worker, rounds) for worker in range(1, workers)]
            train(0, rounds)
            for future in futures:
                future.result()
            if workers > 1:
                add_changes(self.lanes, self.model)

    def _subsampled(self, ids: Ids, rng: np.random.Generator) -> Ids:
        """Return the words to train on, with lines in random order."""
        ends = np.flatnonzero(ids == END)
        starts = np.concatenate([[0], ends[:-1] + 1])
        kept = np.empty_like(ids)
        return kept[
            : subsample_lines(ids, starts, rng.permutation(len(starts)), self.keep, rng, kept)
        ]


def chunks(ids: Ids | IdFile, size: int) -> Iterator[Ids]:
    """Yield whole lines of about `size` words at a time; a longer line is cut in pieces."""
    first = 0
    while first < ids.size:
        part = ids[first : first + size]
        ends = np.flatnonzero(part == END)
        part = part[: ends[-1] + 1] if len(ends) else part
        first += part.size
        yield part if len(ends) else np.append(part, np.int32(END))


def stretch(counts: Ints, window: int, negative: int) -> int:
    """Return the number of centres per lane before the changes of all lanes are added up, 1 to
    512.
    """
    share = counts.max() / counts.sum()
    use = min(1.0, negative * float((counts**POWER).max() / (counts**POWER).sum())) + share * float(
        _keep(counts).min()
    )
    return max(1, min(_MOST_CENTRES, int(UNSEEN / (LANES * use * (window + 1)))))


def rate(done: Doubles) -> Doubles:
    """Return the learning rates after these shares of all words, from 0 to 1."""
    return FIRST_RATE - (FIRST_RATE - LAST_RATE) * done


def _keep(counts: Ints) -> Floats:
    """Return the probability that an occurrence of a word is trained on (the program of Mikolov et
    al. 2013).
    """
    share = np.maximum(counts, 1) / max(1, counts.sum()) / SAMPLE
    return np.minimum(1.0, (np.sqrt(share) + 1) / share).astype(np.float32)


def _samples(counts: Ints) -> tuple[NDArray[np.float64], Ids]:
    """Return the cumulative probabilities of words as negative samples, and an index for the search
    of a draw.
    """
    cumulative = np.cumsum(counts.astype(np.float64) ** POWER)
    cumulative /= cumulative[-1]
    cumulative[-1] = 1.0
    grid = np.arange(len(counts)) / len(counts)
    return cumulative, np.searchsorted(cumulative, grid).astype(np.int32)
