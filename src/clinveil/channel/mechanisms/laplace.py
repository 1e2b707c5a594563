"""Mechanism `laplace`: noise with density ~ exp(-epsilon |z|) on a word's vector, rounded to the nearest word.

Source: Fernandes, Dras and McIver 2018 (arXiv 1805.08866); 2019 (POST); the same word mechanism in Feyisetan et al.
2020 (WSDM). Before rounding to words and for one word it satisfies epsilon·d-privacy in the Euclidean metric of the
vectors; the compiled channel has no epsilon (see `noise.py`). A word may be replaced by itself.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator

from clinveil.channel.mechanism import mechanisms
from clinveil.channel.noise import NoiseMechanism
from clinveil.channel.settings import EPSILON_HELP
from clinveil.core.settings import flag
from clinveil.core.types import Floats


@mechanisms.register("laplace")
class LaplaceMechanism(NoiseMechanism):
    """n-dimensional Laplace noise; epsilon per unit of distance of the unnormalised vectors, small means much noise."""

    name: ClassVar[str] = "laplace"
    size_name: ClassVar[str] = "epsilon"
    epsilon: float | None = flag(None, EPSILON_HELP, ge=1e-6, le=1e6)

    def noise(self, size: float, rng: Generator, draws: int, dim: int) -> Floats:
        """Return noise of length Gamma(dim, 1/epsilon) in a uniform direction, shape (draws, dim).

        A direction is a normalised vector of independent normals. Source: Fernandes et al. 2018.
        """
        directions = rng.standard_normal((draws, dim), dtype=np.float32)
        squares = np.einsum("ij,ij->i", directions, directions, dtype=np.float64)
        stretch = rng.standard_gamma(dim, draws) / (size * np.sqrt(squares))
        return directions * stretch[:, None].astype(np.float32)

    def expected_length(self, size: float, dim: int) -> float:
        """Return dim / epsilon."""
        return dim / size
