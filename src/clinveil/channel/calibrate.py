"""How much noise leaves a wanted share of the tokens unchanged: N_w of Feyisetan et al. 2020, turned around.

A word's Voronoi cell, the points nearer to it than to any other eligible word, is convex. So along a direction there is
one length at which noise leaves it (the escape radius), and P(unchanged | direction) is the distribution function of
the noise's length there: Gamma(dim, 1/epsilon) for `laplace`, sigma chi(dim) for `gaussian`. One set of rays gives the
whole curve, exactly monotone; the wanted share is then one root of it.
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
    """Escape radii of words drawn as often as they occur.

    Attributes:
        dim: of the vectors.
        radii: (n_tokens, n_rays) float64: how long noise in a direction must be for the word to come out as another;
            0 for a word that may not come out at all, infinite where nothing lies that way.
    """

    dim: int
    radii: NDArray[np.float64]

    def stay(self, mechanism: str, size: float) -> NDArray[np.float64]:
        """P(unchanged) of each token, (n_tokens,), at an epsilon (`laplace`) or a sigma (`gaussian`)."""
        from scipy.special import gammainc

        if mechanism == "laplace":
            return np.asarray(gammainc(self.dim, size * self.radii).mean(axis=1))
        return np.asarray(gammainc(self.dim / 2, (self.radii / size) ** 2 / 2).mean(axis=1))

    def unchanged(self, mechanism: str, size: float) -> tuple[float, float]:
        """The share of tokens that come out unchanged, and its standard error (over the tokens drawn)."""
        stay = self.stay(mechanism, size)
        return float(stay.mean()), float(stay.std(ddof=1) / np.sqrt(stay.size))


def cast_rays(
    vectors: Vectors, eligible: NDArray[np.bool_], rng: Generator, *, tokens: int = TOKENS, rays: int = RAYS
) -> Rays:
    """Rays from words drawn by their counts (by word where there are none), in uniform directions.

    Args:
        vectors: words, matrix, counts. eligible: (n_words,) bool, what may come out.
        tokens: words drawn, with replacement. rays: directions of each.
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
    """The words that may come out: rows (m,), vectors (m, dim) float64, squared lengths (m,)."""

    rows: NDArray[np.int64]
    matrix: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[np.float32], rows: NDArray[np.int64]) -> _Others:
        some = np.asarray(matrix[rows], dtype=np.float64)
        return cls(rows, some, np.einsum("ij,ij->i", some, some))

    def escape(self, row: int, own: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) lengths t at which own + t u is as near to another word c: min of |c - own|² / (2 u·(c - own)) over 0.

        Of words at the same place (within rounding) the lowest row comes out, wherever the noise goes.
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
    """The epsilon (`laplace`) or sigma (`gaussian`) at which this share of tokens comes out unchanged.

    Raises:
        InputError: a share that is not between 0 and 1, or more than the share of tokens that may come out at all.
    """
    from scipy.optimize import brentq

    if not 0 < unchanged < 1:
        raise InputError(f"a share of unchanged tokens lies between 0 and 1, not at {unchanged}")
    finite = rays.radii[(rays.radii > 0) & np.isfinite(rays.radii)]
    most, least = float((rays.radii > 0).mean()), float(np.isinf(rays.radii).mean())
    if not finite.size or not least < unchanged < most:
        raise InputError(
            f"no noise leaves {unchanged:.1%} of the tokens unchanged: {most:.1%} are words that may come out",
            hint="a smaller share, or a lower rare-word floor",
        )
    # Noise of a typical length between far below the shortest and far above the longest ray.
    short, long = 1e-4 * float(finite.min()), 1e4 * float(finite.max())
    sizes = (rays.dim / long, rays.dim / short) if mechanism == "laplace" else (short, long)

    def over(log_size: float) -> float:
        return rays.unchanged(mechanism, float(np.exp(log_size)))[0] - unchanged

    return float(np.exp(brentq(over, *np.log(sizes), xtol=1e-10)))
