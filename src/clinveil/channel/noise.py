"""Mechanisms that add noise to a word's vector and round to the nearest word, compiled to a channel by Monte Carlo.

What is drawn from is the compiled channel: each word's row holds the outputs of a number of draws, each as likely as it
was drawn. So an output that the mechanism has with a small probability may be missing from a row (`mc_missing_mass`
says how much), and where an output is missing from one row and not from another, no bound on the ratio of their
probabilities holds: **a compiled channel has no epsilon**, whatever the mechanism before it has. The nominal epsilon is
a setting, not a guarantee. Another reason is the rare-word floor: a word below it is rounded to another word always.

Vectors are taken as they are trained, not normalised: epsilon and sigma are in units of that space, and mean nothing
without its distances. `parameters` therefore carry the expected length of the noise and the median distance to the
nearest eligible word, over words and over tokens (the two differ much: vectors of rare words are short and lie close
together); `calibrate.py` finds the epsilon or sigma at which a wanted share of tokens comes out unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.mechanisms.mechanism import NO_POOL, Mechanism, Pool, assemble
from clinveil.core.errors import InputError
from clinveil.scale.local import threads as in_threads
from clinveil.vectors.euclidean import Candidates, nearest_distances
from clinveil.vectors.search import alone, one_thread_each
from clinveil.vectors.table import Vectors

# Noise of some draws, (m, dim) float32, from a generator, m and dim.
Noise = Callable[[Generator, int, int], NDArray[np.float32]]
DRAWS, FEWEST = 200, 100
_PIECE, _BATCH = 1024, 2048  # draws of one stream, and of one search


@dataclass(frozen=True, slots=True)
class Piece:
    """Draws of one word from one stream: the seed of stream `number` of row `row` gives the same noise anywhere."""

    row: int
    number: int
    draws: int


def check_draws(draws: int, threads: int) -> None:
    """Raise InputError unless there are enough draws for a row to be worth something, and a thread."""
    if threads < 1:
        raise InputError(f"{threads} threads draw nothing")
    if draws < FEWEST:
        raise InputError(f"{draws} draws a word are too few for a channel", remedy=f"use {FEWEST} or more")


def shared_draws(counts: NDArray[np.int64] | None, n_words: int, draws: int) -> NDArray[np.int64]:
    """How many draws each word gets, (n_words,): at least half of `draws` (and 100), and `draws` on average.

    The rest is shared as counts^(2/3), which makes the token-weighted mean standard error, sum of p_w s / sqrt(n_w),
    least for a given total. Without counts every word gets `draws`.
    """
    if counts is None or not counts.any():
        return np.full(n_words, draws, dtype=np.int64)
    fewest = max(FEWEST, draws // 2)
    weights = counts.astype(np.float64) ** (2 / 3)
    return fewest + np.floor((draws - fewest) * n_words * weights / weights.sum() + 1e-9).astype(np.int64)


def compile_noise(
    mechanism: Mechanism,
    noise: Noise,
    vectors: Vectors,
    eligible: NDArray[np.bool_],
    *,
    draws: int,
    seed: int,
    threads: int,
    pool: Pool = NO_POOL,
) -> Channel:
    """The channel of a noise mechanism: z = v(w) + noise, output the eligible word nearest to z (Euclidean).

    The same for a seed and any number of threads; at any time about `threads` batches of 2,048 draws are in memory,
    beside the outputs of all draws (4 bytes each) and the channel.

    Args:
        mechanism: whose name and parameters the channel carries.
        noise: draws of it.
        vectors: words and matrix; their counts share out the draws.
        eligible: (n_words,) bool, what may come out.
        draws: a word, on average.
        seed: of the noise; each word has streams of its own.
        threads: how many.
        pool: the row of unknown words.

    Raises:
        InputError: no word may come out.
    """
    totals = shared_draws(vectors.counts, len(vectors), draws)
    candidates = Candidates.of(vectors.matrix, eligible)
    work = partial(alone, partial(_drawn, candidates, vectors.matrix, noise, seed))
    outputs = np.empty(int(totals.sum()), dtype=np.int32)
    done = 0
    with one_thread_each():
        for found in in_threads(threads)(work, _batches(totals)):
            outputs[done : done + found.size] = found
            done += found.size
    rows = _rows(outputs, totals)
    measured = monte_carlo_error(rows, totals, vectors.counts)
    distances = nearest_distances(vectors.matrix, eligible, threads=threads)
    measured |= {
        "nearest_distance_words": weighted_median(distances, None),
        "nearest_distance_tokens": weighted_median(distances, vectors.counts),
    }
    return assemble(mechanism, vectors, eligible, rows, pool, measured)


def _batches(totals: NDArray[np.int64]) -> Iterator[list[Piece]]:
    """The pieces of all words in order, in lists of about `_BATCH` draws."""
    batch: list[Piece] = []
    held = 0
    for row, total in enumerate(totals.tolist()):
        for number, start in enumerate(range(0, total, _PIECE)):
            piece = Piece(row, number, min(_PIECE, total - start))
            batch.append(piece)
            held += piece.draws
            if held >= _BATCH:
                yield batch
                batch, held = [], 0
    if batch:
        yield batch


def _drawn(
    candidates: Candidates, matrix: NDArray[np.float32], noise: Noise, seed: int, batch: list[Piece]
) -> NDArray[np.int32]:
    """The outputs of a batch's draws."""
    dim = matrix.shape[1]
    points = [matrix[p.row] + noise(np.random.default_rng([seed, p.row, p.number]), p.draws, dim) for p in batch]
    return candidates.nearest(np.concatenate(points).astype(np.float32, copy=False))[0]


def _rows(
    outputs: NDArray[np.int32], totals: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Lengths, outputs and probabilities of all rows from the outputs of all draws."""
    starts = np.concatenate([[0], np.cumsum(totals)])
    found = [
        np.unique(outputs[a:b], return_counts=True)
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    lengths = np.array([len(ids) for ids, _ in found], dtype=np.int64)
    counted = np.concatenate([n for _, n in found])
    return lengths, np.concatenate([ids for ids, _ in found]), counted / np.repeat(totals, lengths)


def monte_carlo_error(
    rows: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]],
    totals: NDArray[np.int64],
    counts: NDArray[np.int64] | None,
) -> dict[str, Any]:
    """How far the compiled channel may be from the mechanism; means are weighted by tokens (words without counts).

    With k of n draws of a word unchanged and p = (k + 1) / (n + 2), the standard error of P(unchanged) is
    sqrt(p (1 - p) / n): `mc_se_unchanged_mean` and `mc_se_unchanged_greatest`. `mc_missing_mass` is the probability of
    outputs that a row lacks, estimated as the share of its draws that came once (Good 1953, Biometrika).
    `unchanged` is the mean of P(unchanged).
    """
    lengths, outputs, chances = rows
    owner = np.repeat(np.arange(totals.size), lengths)
    stayed = np.bincount(owner, chances * (outputs == owner), minlength=totals.size)
    once = np.bincount(owner, np.rint(chances * totals[owner]) == 1, minlength=totals.size) / totals
    smoothed = (stayed * totals + 1) / (totals + 2)
    errors = np.sqrt(smoothed * (1 - smoothed) / totals)
    weights = np.ones(totals.size) if counts is None or not counts.any() else counts
    return {
        "unchanged": float(np.average(stayed, weights=weights)),
        "fewest_draws": int(totals.min()),
        "mc_se_unchanged_mean": float(np.average(errors, weights=weights)),
        "mc_se_unchanged_greatest": float(errors.max()),
        "mc_missing_mass": float(np.average(once, weights=weights)),
    }


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.int64] | None) -> float:
    """The least value that half of the weight does not exceed; equal weights where there are none; 0 for no values."""
    if not values.size:
        return 0.0
    even = np.ones(values.size) if weights is None or not weights.any() else weights.astype(np.float64)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(even[order])
    value = float(values[order][np.searchsorted(reached, reached[-1] / 2)])
    return value if np.isfinite(value) else 0.0


def noise_parameters(nominal: Mapping[str, Any], draws: int) -> dict[str, Any]:
    """What both mechanisms say of themselves before they see vectors."""
    return {**nominal, "draws": draws, "maps_to_itself": True, "epsilon_guaranteed": False}
