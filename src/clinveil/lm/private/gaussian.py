"""Noise of the Gaussian mechanism for (epsilon, delta), exact, and the exact composition of several
releases.

Source: Balle & Wang 2018 (Theorem 8); Dong, Roth & Su 2022 (Corollary 3.3, composition).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri

from clinveil.core import Doubles, InputError, Stream, UsageError

LOWEST_EPSILON = 1e-3
HIGHEST_EPSILON = 100.0
LOWEST_DELTA = 1e-100


def delta_of(sigma: float, epsilon: float) -> float:
    """Return the smallest delta of Gaussian noise with this deviation, for L2 sensitivity 1 and
    this epsilon.
    """
    return exp(log_ndtr(0.5 / sigma - epsilon * sigma)) - exp(
        epsilon + log_ndtr(-0.5 / sigma - epsilon * sigma)
    )


def noise_for(epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation for (epsilon, delta) and L2 sensitivity 1.

    Raises UsageError for an epsilon or a delta outside the supported range.
    """
    refuse_parameters(epsilon, delta)
    sigma: float = brentq(
        lambda sigma: delta_of(sigma, epsilon) - delta, 1e-3, 1e7, xtol=1e-14, rtol=1e-14
    )
    return sigma * (1 + 1e-12)  # the root's rounding must not exceed delta


def epsilon_of(sigma: float, delta: float) -> float:
    """Return the smallest epsilon of Gaussian noise with this deviation, for L2 sensitivity 1 and
    this delta.
    """
    if delta_of(sigma, 0.0) <= delta:
        return 0.0
    high = 0.5 / sigma**2 + sqrt(2 * log(1 / delta)) / sigma + 1  # a sufficient epsilon
    epsilon: float = brentq(
        lambda epsilon: delta_of(sigma, epsilon) - delta, 0.0, high, xtol=1e-12, rtol=1e-14
    )
    return epsilon


def composed(sigmas: Iterable[float]) -> float:
    """Return the deviation of the one Gaussian release that is as private as all of these
    together.
    """
    return 1 / sqrt(sum(sigma**-2 for sigma in sigmas))


def default_delta(patients: int) -> float:
    """Return delta = 1 / (n ln n)."""
    return 1 / (patients * log(max(patients, 3)))


def delta_for(patients: int, epsilon: float, delta: float | None) -> float:
    """Return delta; None: 1 / (n ln n). Raises UsageError for a value out of range, InputError
    above 1 / patients.
    """
    delta = default_delta(patients) if delta is None else delta
    refuse_parameters(epsilon, delta)
    if delta > 1 / patients:
        what = f"synthetic.delta {delta:g} exceeds 1/patients ({1 / patients:.2g})"
        raise InputError(
            what, hint="a patient's notes could be published whole; omit it for 1/(n ln n)"
        )
    return delta


def refuse_parameters(epsilon: float, delta: float) -> None:
    """Raise UsageError for an epsilon outside .001 to 100, or a delta outside 1e-100 to 1."""
    if not LOWEST_EPSILON <= epsilon <= HIGHEST_EPSILON:
        raise UsageError(
            "synthetic.epsilon must be between .001 and 100", hint="values of 1 to 8 are usual"
        )
    if not LOWEST_DELTA <= delta < 1:
        raise UsageError("synthetic.delta must be at least 1e-100 and below 1")


def normals(stream: Stream, n: int) -> Doubles:
    """Return n standard normal numbers, each by inversion of one number of 53 random bits of a
    keyed stream.
    """
    bits = np.array([stream.uint64() >> 11 for _ in range(n)], dtype=np.float64)
    return np.asarray(ndtri((bits + 0.5) * 2.0**-53), dtype=np.float64)
