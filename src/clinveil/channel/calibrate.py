"""Find the noise size that leaves a given share of tokens unchanged (inverts N_w of Feyisetan et al. 2020).

A word's Voronoi cell (points nearer to it than to any other eligible word) is convex. So in each direction, noise
leaves the cell at one length, the escape radius, and P(unchanged | direction) is the distribution function of the
noise length at that radius: Gamma(dim, 1/epsilon) for `laplace`, sigma chi(dim) for `gaussian`. One set of rays gives
the whole monotone curve; the noise size is its root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.vectors.search import one_thread_each
from clinveil.vectors.table import Vectors

TOKENS, RAYS = 4000, 4


@dataclass(frozen=True)
class Rays:
    """Escape radii of words sampled by frequency.

    Attributes:
        dim: of the vectors.
        radii: (n_tokens, n_rays) float64: noise length from which the output is another word; 0 for words that are not
            eligible, infinite without another word in that direction.
    """

    dim: int
    radii: NDArray[np.float64]

    def stay(self, mechanism: str, size: float) -> NDArray[np.float64]:
        """Return P(unchanged) per token, (n_tokens,), at an epsilon (`laplace`) or a sigma (`gaussian`)."""
        from scipy.special import gammainc

        if mechanism == "laplace":
            return np.asarray(gammainc(self.dim, size * self.radii).mean(axis=1))
        return np.asarray(gammainc(self.dim / 2, (self.radii / size) ** 2 / 2).mean(axis=1))

    def unchanged(self, mechanism: str, size: float) -> tuple[float, float]:
        """Return the share of unchanged tokens and its standard error over the sampled tokens."""
        stay = self.stay(mechanism, size)
        return float(stay.mean()), float(stay.std(ddof=1) / np.sqrt(stay.size))


def cast_rays(
    vectors: Vectors, eligible: NDArray[np.bool_], rng: Generator, *, tokens: int = TOKENS, rays: int = RAYS
) -> Rays:
    """Cast rays in uniform directions from words sampled by count (uniformly without counts).

    Args:
        vectors: words, matrix, counts. eligible: (n_words,) bool, possible outputs.
        tokens: words to sample, with replacement. rays: directions per word.
    """
    even = np.ones(len(vectors)) if vectors.counts is None or not vectors.counts.any() else vectors.counts
    drawn, times = np.unique(rng.choice(len(vectors), tokens, p=even / even.sum()), return_counts=True)
    others = _Others.of(vectors.matrix, np.flatnonzero(eligible))
    radii = np.zeros((tokens, rays))
    done = 0
    with one_thread_each():
        for row, n in zip(drawn.tolist(), times.tolist(), strict=True):
            directions = rng.standard_normal((n * rays, vectors.dim))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            if eligible[row]:
                own = vectors.matrix[row].astype(np.float64)
                radii[done : done + n] = others.escape(row, own, directions).reshape(n, rays)
            done += n
    return Rays(vectors.dim, radii)


@dataclass(frozen=True)
class _Others:
    """Eligible words: rows (m,), vectors (m, dim) float64, squared lengths (m,)."""

    rows: NDArray[np.int64]
    matrix: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[np.float32], rows: NDArray[np.int64]) -> _Others:
        some = np.asarray(matrix[rows], dtype=np.float64)
        return cls(rows, some, np.einsum("ij,ij->i", some, some))

    def escape(self, row: int, own: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the lengths t, (n,), where own + t u is equally near to another word c.

        t is the minimum of |c - own|² / (2 u·(c - own)) above 0. Of words with equal vectors (within rounding) the
        lowest row is always the output.
        """
        apart = self.squares + own @ own - 2 * self.matrix @ own
        away = apart > 1e-12 * (self.squares + own @ own)
        if (~away & (self.rows < row)).any():
            return np.zeros(len(directions))
        towards = directions @ self.matrix.T - (directions @ own)[:, None]
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
