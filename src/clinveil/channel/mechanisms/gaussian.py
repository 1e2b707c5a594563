"""Mechanism `gaussian`: independent normal noise on each coordinate of a word's vector, rounded to the nearest word.

Paper A describes the noise that it argues against as a static amount drawn from a Gaussian; this is that, to the
letter. What Fernandes et al. 2018 propose is `laplace`. The channel has no epsilon (see `noise.py`). A word may come
out as itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.channel.channel import Channel
from clinveil.channel.mechanisms.mechanism import NO_POOL, Pool
from clinveil.channel.noise import DRAWS, check_draws, compile_noise, noise_parameters
from clinveil.core.errors import InputError
from clinveil.vectors.table import Neighbours, Vectors


def gaussian_noise(sigma: float, rng: Generator, draws: int, dim: int) -> NDArray[np.float32]:
    """Independent normals of standard deviation sigma, shape (draws, dim)."""
    return rng.standard_normal((draws, dim), dtype=np.float32) * np.float32(sigma)


def expected_length(sigma: float, dim: int) -> float:
    """The mean length of the noise, sigma sqrt(2) Γ((dim + 1)/2) / Γ(dim/2): the mean of a chi distribution."""
    from scipy.special import gammaln

    return float(sigma * np.sqrt(2) * np.exp(gammaln((dim + 1) / 2) - gammaln(dim / 2)))


@dataclass(frozen=True)
class GaussianMechanism:
    """Isotropic Gaussian noise; the expected length of the noise is about sigma sqrt(dim).

    Attributes:
        sigma: standard deviation of each coordinate, in units of the vectors as they are.
        draws: of each word on average, for the Monte Carlo compile (`noise.shared_draws`).
        seed: of the compile. threads: of the compile; they change nothing in the channel.

    Raises:
        InputError: a sigma that is no positive number, or fewer than 100 draws.
    """

    sigma: float
    draws: int = DRAWS
    seed: int = 0
    threads: int = 1

    name = "gaussian"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.sigma) and self.sigma > 0):
            raise InputError(f"sigma is a positive number, not {self.sigma}")
        check_draws(self.draws, self.threads)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Sigma and the draws; the compiled channel adds its Monte Carlo error and the space's scale."""
        return MappingProxyType(noise_parameters({"sigma": self.sigma}, self.draws))

    @property
    def reach(self) -> int:
        """It searches for itself."""
        return 0

    def compile(self, vectors: Vectors, table: Neighbours, pool: Pool = NO_POOL) -> Channel:
        """The channel; see `Mechanism`. Of the table only the rare-word floor is looked at."""
        channel = compile_noise(
            self,
            partial(gaussian_noise, self.sigma),
            vectors,
            table.eligible,
            draws=self.draws,
            seed=self.seed,
            threads=self.threads,
            pool=pool,
        )
        length = expected_length(self.sigma, vectors.dim)
        return replace(channel, parameters={**channel.parameters, "expected_radius": length})
