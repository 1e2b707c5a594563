"""Mechanism `gaussian`: independent normal noise on each coordinate of a word's vector, rounded to the nearest word.

This is the noise that paper A argues against ("a static amount drawn from a Gaussian"). Fernandes et al. 2018 propose
`laplace` instead. The channel has no epsilon (see `noise.py`). A word may be replaced by itself.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator

from clinveil.channel.mechanism import mechanisms
from clinveil.channel.noise import NoiseMechanism
from clinveil.channel.settings import SIGMA_HELP
from clinveil.core.settings import flag
from clinveil.core.types import Floats


@mechanisms.register("gaussian")
class GaussianMechanism(NoiseMechanism):
    """Isotropic Gaussian noise; sigma in units of the unnormalised vectors, expected length about sigma sqrt(dim)."""

    name: ClassVar[str] = "gaussian"
    size_name: ClassVar[str] = "sigma"
    sigma: float | None = flag(None, SIGMA_HELP, ge=1e-6, le=1e6)

    def noise(self, size: float, rng: Generator, draws: int, dim: int) -> Floats:
        """Return independent normals of standard deviation sigma, shape (draws, dim)."""
        return rng.standard_normal((draws, dim), dtype=np.float32) * np.float32(size)

    def expected_length(self, size: float, dim: int) -> float:
        """Return sigma sqrt(2) Γ((dim + 1)/2) / Γ(dim/2), the mean of a chi distribution."""
        from scipy.special import gammaln

        return float(size * np.sqrt(2) * np.exp(gammaln((dim + 1) / 2) - gammaln(dim / 2)))
