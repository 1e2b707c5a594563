"""Noise mechanisms: add noise to a word's vector and round to the nearest word, compiled by Monte Carlo.

Each row contains the outputs of a number of draws with their relative frequencies. An unlikely output can be missing
from a row (`mc_missing_mass` estimates their probability). If an output is missing from one row only, the ratio of
probabilities is unbounded. So **a compiled channel has no epsilon**, whatever the continuous mechanism guarantees; the
nominal epsilon is only a setting. The rare-word floor also prevents a guarantee: words below it are always replaced.

Vectors are not normalised: epsilon and sigma are in units of the trained space and need its distances to be
interpreted. `parameters` therefore contain the expected noise length and the median distance to the nearest eligible
word, over words and over tokens (these differ: vectors of rare words are short and close together).

`calibrate` finds the size that leaves a given share of tokens unchanged (inverts N_w of Feyisetan et al. 2020). The
Voronoi cell of a word (points nearer to it than to any other eligible word) is convex. So in each direction, noise
leaves the cell at one length, the escape radius, and P(unchanged | direction) is the distribution function of the noise
length at that radius: Gamma(dim, 1/epsilon) for `laplace`, sigma chi(dim) for `gaussian`. One set of rays gives the
whole monotone curve; the noise size is its root.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from pydantic import model_validator

from clinveil.channel.channel import Channel
from clinveil.channel.mechanism import Material, Mechanism
from clinveil.channel.settings import UNCHANGED_HELP
from clinveil.core.errors import InputError
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Floats, Ints, Mask, SmallInts
from clinveil.scale.local import threads as in_threads
from clinveil.vectors.search import Candidates, alone, nearest_distances, one_thread_each
from clinveil.vectors.table import Vectors

# Function of generator, m and dim that returns noise of shape (m, dim), float32.
Noise = Callable[[Generator, int, int], Floats]
Rows = tuple[Ints, SmallInts, Doubles]  # row lengths; outputs and probabilities of all rows, concatenated
FEWEST = 100  # minimum draws per word
TOKENS, RAYS = 4000, 4
_PIECE, _BATCH = 1024, 2048  # draws per stream, and per search
Piece = tuple[int, int, int]  # draws of one word from one random stream, by row and number: row, number, draws


class NoiseMechanism(Mechanism):
    """Noise of constant size: z = v(w) + noise; the output is the eligible word nearest to z (Euclidean).

    The size is a setting, or calibrated to a share of unchanged tokens (`calibrate`).
    """

    size_name: ClassVar[str]
    unchanged: float | None = flag(None, UNCHANGED_HELP, ge=0.001, le=0.999)

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.size is None) == (self.unchanged is None):
            raise ValueError(f"{self.name} requires exactly one of {self.size_name} and the share of unchanged tokens")
        return self

    @property
    def size(self) -> float | None:
        """Epsilon or sigma in units of the unnormalised vectors; None: calibrated to `unchanged`."""
        size: float | None = getattr(self, self.size_name, None)
        return size

    @abstractmethod
    def noise(self, size: float, rng: Generator, draws: int, dim: int) -> Floats:
        """Return noise of a size, shape (draws, dim)."""

    @abstractmethod
    def expected_length(self, size: float, dim: int) -> float:
        """Return the mean length of the noise."""

    def compile(self, material: Material) -> Channel:
        """Return the channel, estimated by Monte Carlo; its parameters contain the error and the scale of the space.

        Raises ValueError for fewer than 100 draws, InputError without eligible words.
        """
        if material.threads < 1 or material.draws < FEWEST:
            raise ValueError(f"{material.draws} draws per word in {material.threads} threads are too few for a channel")
        size = self.size or self._calibrated(material)
        rows, measured = compile_noise(partial(self.noise, size), material)
        parameters = {self.size_name: size, "draws": material.draws, "maps_to_itself": True}
        parameters |= {"epsilon_guaranteed": False, **measured}
        parameters |= {"expected_radius": self.expected_length(size, material.vectors.dim)}
        return material.channel(self.name, parameters, *rows)

    def _calibrated(self, material: Material) -> float:
        rays = cast_rays(material.vectors, material.eligible, np.random.default_rng(material.seed))
        return calibrate(self.name, rays, self.unchanged or 0.0)


def shared_draws(counts: Ints | None, n_words: int, draws: int) -> Ints:
    """Return the number of draws per word, (n_words,): at least half of `draws` (and 100), `draws` on average.

    The remainder is proportional to counts^(2/3), which minimises the token-weighted mean standard error, sum of
    p_w s / sqrt(n_w), for a given total. Without counts every word gets `draws`.
    """
    if counts is None or not counts.any():
        return np.full(n_words, draws, dtype=np.int64)
    fewest = max(FEWEST, draws // 2)
    weights = counts.astype(np.float64) ** (2 / 3)
    return fewest + np.floor((draws - fewest) * n_words * weights / weights.sum() + 1e-9).astype(np.int64)


def compile_noise(noise: Noise, material: Material) -> tuple[Rows, dict[str, Any]]:
    """Return the rows of a noise mechanism and their measures; independent of the number of threads.

    Memory: about `threads` batches of 2,048 draws, the outputs of all draws (4 bytes each, twice while they are
    concatenated), and the channel.
    """
    vectors, eligible, threads = material.vectors, material.eligible, material.threads
    totals = shared_draws(vectors.counts, len(vectors), material.draws)
    candidates = Candidates.of(vectors.matrix, eligible)
    work = partial(alone, partial(_drawn, candidates, vectors.matrix, noise, material.seed))
    with one_thread_each():
        outputs = np.concatenate(list(in_threads(threads)(work, _batches(totals))))
    rows = _rows(outputs, totals)
    distances = nearest_distances(vectors.matrix, eligible, threads=threads)
    return rows, {
        **monte_carlo_error(rows, totals, vectors.counts),
        "nearest_distance_words": weighted_median(distances, None),
        "nearest_distance_tokens": weighted_median(distances, vectors.counts),
    }


def _batches(totals: Ints) -> Iterator[list[Piece]]:
    """Yield the pieces of all words in order, in lists of about `_BATCH` draws."""
    batch: list[Piece] = []
    held = 0
    for row, total in enumerate(totals.tolist()):
        for number, start in enumerate(range(0, total, _PIECE)):
            draws = min(_PIECE, total - start)
            batch.append((row, number, draws))
            held += draws
            if held >= _BATCH:
                yield batch
                batch, held = [], 0
    if batch:
        yield batch


def _drawn(candidates: Candidates, matrix: Floats, noise: Noise, seed: int, batch: list[Piece]) -> SmallInts:
    """Return the outputs of the draws of a batch."""
    dim = matrix.shape[1]
    points = [matrix[row] + noise(np.random.default_rng([seed, row, number]), n, dim) for row, number, n in batch]
    return candidates.nearest(np.concatenate(points).astype(np.float32, copy=False))


def _rows(outputs: SmallInts, totals: Ints) -> Rows:
    """Return lengths, outputs and probabilities of all rows from the outputs of all draws."""
    starts = np.concatenate([[0], np.cumsum(totals)])
    found = [
        np.unique(outputs[a:b], return_counts=True)
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    lengths = np.array([len(ids) for ids, _ in found], dtype=np.int64)
    counted = np.concatenate([n for _, n in found])
    return lengths, np.concatenate([ids for ids, _ in found]), counted / np.repeat(totals, lengths)


def monte_carlo_error(rows: Rows, totals: Ints, counts: Ints | None) -> dict[str, Any]:
    """Return the Monte Carlo error of the compiled channel; means are weighted by tokens (words without counts).

    With k of n draws of a word unchanged and p = (k + 1) / (n + 2), the standard error of P(unchanged) is
    sqrt(p (1 - p) / n): `mc_se_unchanged_mean` and `mc_se_unchanged_greatest`. `mc_missing_mass` is the probability of
    outputs missing from a row, estimated as the share of its draws that occurred once (Good 1953, Biometrika).
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


def weighted_median(values: Doubles, weights: Ints | None) -> float:
    """Return the weighted median (equal weights without weights); 0 for no values."""
    if not values.size:
        return 0.0
    even = np.ones(values.size) if weights is None or not weights.any() else weights.astype(np.float64)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(even[order])
    value = float(values[order][np.searchsorted(reached, reached[-1] / 2)])
    return value if np.isfinite(value) else 0.0


@dataclass(frozen=True)
class Rays:
    """Escape radii of words sampled by frequency.

    Attributes:
        dim: of the vectors.
        radii: (n_tokens, n_rays) float64: noise length from which the output is another word; 0 for words that are not
            eligible, infinite without another word in that direction.
    """

    dim: int
    radii: Doubles

    def stay(self, mechanism: str, size: float) -> Doubles:
        """Return P(unchanged) per token, (n_tokens,), at an epsilon (`laplace`) or a sigma (`gaussian`)."""
        from scipy.special import gammainc

        if mechanism == "laplace":
            return np.asarray(gammainc(self.dim, size * self.radii).mean(axis=1))
        return np.asarray(gammainc(self.dim / 2, (self.radii / size) ** 2 / 2).mean(axis=1))

    def unchanged(self, mechanism: str, size: float) -> tuple[float, float]:
        """Return the share of unchanged tokens and its standard error over the sampled tokens."""
        stay = self.stay(mechanism, size)
        return float(stay.mean()), float(stay.std(ddof=1) / np.sqrt(stay.size))


def cast_rays(vectors: Vectors, eligible: Mask, rng: Generator, *, tokens: int = TOKENS, rays: int = RAYS) -> Rays:
    """Cast rays in uniform directions from words sampled by count (uniformly without counts).

    Args:
        vectors: words, matrix, counts. eligible: (n_words,) bool, possible outputs.
        tokens: words to sample, with replacement. rays: directions per word.
    """
    even = np.ones(len(vectors)) if vectors.counts is None or not vectors.counts.any() else vectors.counts
    drawn, times = np.unique(rng.choice(len(vectors), tokens, p=even / even.sum()), return_counts=True)
    rows = np.flatnonzero(eligible)
    others = np.asarray(vectors.matrix[rows], dtype=np.float64)
    squares = np.einsum("ij,ij->i", others, others)
    radii = np.zeros((tokens, rays))
    done = 0
    with one_thread_each():
        for row, n in zip(drawn.tolist(), times.tolist(), strict=True):
            directions = rng.standard_normal((n * rays, vectors.dim))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            if eligible[row]:
                own = vectors.matrix[row].astype(np.float64)
                radii[done : done + n] = _escapes(row, own, directions, rows, others, squares).reshape(n, rays)
            done += n
    return Rays(vectors.dim, radii)


def _escapes(row: int, own: Doubles, directions: Doubles, rows: Ints, others: Doubles, squares: Doubles) -> Doubles:
    """Return the lengths t, (n,), where own + t u is equally near to another word c, of rows with vectors and squares.

    t is the minimum of |c - own|² / (2 u·(c - own)) above 0. Of words with equal vectors (within rounding) the lowest
    row is always the output.
    """
    apart = squares + own @ own - 2 * others @ own
    away = apart > 1e-12 * (squares + own @ own)
    if (~away & (rows < row)).any():
        return np.zeros(len(directions))
    towards = directions @ others.T - (directions @ own)[:, None]
    slopes = np.divide(2 * towards, apart, out=np.full(towards.shape, -1.0), where=away)
    steepest = slopes.max(axis=1, initial=-1.0)
    return np.divide(1.0, steepest, out=np.full(len(directions), np.inf), where=steepest > 0)


def calibrate(mechanism: str, rays: Rays, unchanged: float) -> float:
    """Return the epsilon (`laplace`) or sigma (`gaussian`) that leaves this share of tokens unchanged.

    Raises:
        InputError: the share is not between 0 and 1, or exceeds the share of eligible tokens.
    """
    from scipy.optimize import brentq

    if not 0 < unchanged < 1:
        raise InputError(f"the share of unchanged tokens must be between 0 and 1, not {unchanged}")
    finite = rays.radii[(rays.radii > 0) & np.isfinite(rays.radii)]
    most, least = float((rays.radii > 0).mean()), float(np.isinf(rays.radii).mean())
    if not finite.size or not least < unchanged < most:
        raise InputError(
            f"no noise leaves {unchanged:.1%} of the tokens unchanged: only {most:.1%} are eligible words",
            hint="use a smaller share, or a lower rare-word floor",
        )
    # The search covers noise lengths from far below the shortest to far above the longest ray.
    short, long = 1e-4 * float(finite.min()), 1e4 * float(finite.max())
    sizes = (rays.dim / long, rays.dim / short) if mechanism == "laplace" else (short, long)

    def over(log_size: float) -> float:
        return rays.unchanged(mechanism, float(np.exp(log_size)))[0] - unchanged

    return float(np.exp(brentq(over, *np.log(sizes), xtol=1e-10)))
