"""Mechanism `laplace`: noise of density ~ exp(-epsilon |z|) on a word's vector, rounded to the nearest word.

Source: Fernandes, Dras and McIver 2018 (arXiv 1805.08866); 2019 (POST); the same word mechanism in Feyisetan et al.
2020 (WSDM). Before rounding to words and for one word it satisfies epsilon·d-privacy in the Euclidean metric of the
vectors; the channel compiled here has no epsilon (see `noise.py`). A word may come out as itself.
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


def laplace_noise(epsilon: float, rng: Generator, draws: int, dim: int) -> NDArray[np.float32]:
    """Noise of length Gamma(dim, 1/epsilon) in a uniform direction, shape (draws, dim).

    A direction is a normalised vector of independent normals. Source: Fernandes et al. 2018.
    """
    directions = rng.standard_normal((draws, dim), dtype=np.float32)
    squares = np.einsum("ij,ij->i", directions, directions, dtype=np.float64)
    stretch = rng.standard_gamma(dim, draws) / (epsilon * np.sqrt(squares))
    return directions * stretch[:, None].astype(np.float32)


@dataclass(frozen=True)
class LaplaceMechanism:
    """n-dimensional Laplace noise; the expected length of the noise is dim / epsilon.

    Attributes:
        epsilon: per unit of distance of the vectors as they are; small is much noise.
        draws: of each word on average, for the Monte Carlo compile (`noise.shared_draws`).
        seed: of the compile. threads: of the compile; they change nothing in the channel.

    Raises:
        InputError: an epsilon that is no positive number, or fewer than 100 draws.
    """

    epsilon: float
    draws: int = DRAWS
    seed: int = 0
    threads: int = 1

    name = "laplace"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.epsilon) and self.epsilon > 0):
            raise InputError(f"epsilon is a positive number, not {self.epsilon}")
        check_draws(self.draws, self.threads)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Epsilon, nominal, and the draws; the compiled channel adds its Monte Carlo error and the space's scale."""
        return MappingProxyType(noise_parameters({"epsilon": self.epsilon}, self.draws))

    @property
    def reach(self) -> int:
        """It searches for itself."""
        return 0

    def compile(self, vectors: Vectors, table: Neighbours, pool: Pool = NO_POOL) -> Channel:
        """The channel; see `Mechanism`. Of the table only the rare-word floor is looked at."""
        channel = compile_noise(
            self,
            partial(laplace_noise, self.epsilon),
            vectors,
            table.eligible,
            draws=self.draws,
            seed=self.seed,
            threads=self.threads,
            pool=pool,
        )
        return replace(channel, parameters={**channel.parameters, "expected_radius": vectors.dim / self.epsilon})
