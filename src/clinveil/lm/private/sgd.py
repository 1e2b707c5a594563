"""The noise of differentially private training (DP-SGD) for (epsilon, delta), and the refusal of
hopeless settings.

Each step takes every patient with the same probability, independently (Poisson sampling), adds one
clipped gradient for each of them, and adds Gaussian noise. Neighbours differ in all notes of one
patient. Source: Abadi et al. 2016; Charles et al. 2024 (one gradient per user); epsilon by privacy
loss distributions (`dp-accounting`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from clinveil.core.errors import InputError, MissingExtra
from clinveil.lm.private.gaussian import delta_for

# expected patients of a step, divided by the noise: a network that starts from random weights
LEAST_SIGNAL = 100.0
LEAST_SIGNAL_PRETRAINED = 20.0
# of privacy losses and of the noise, in the search for it
COARSE = 1e-3
TOLERANCE = 1e-4
# Defaults: passes over the patients; patients of a step: 32, or an eighth.
PASSES = 40
LEAST_BATCH = 32
SHARE = 8


class Noise(NamedTuple):
    """Gaussian noise with this deviation for L2 sensitivity 1, added in each step to a Poisson
    sample of patients.
    """

    sigma: float
    rate: float
    steps: int


def epsilon_of_all(releases: Iterable[Noise], delta: float) -> float:
    """Return the epsilon of several releases together. Raises MissingExtra without
    `dp-accounting`.
    """
    dp = _dp_accounting()
    accountant = dp.pld.PLDAccountant()
    for one in releases:
        accountant.compose(_event(one))
    return float(accountant.get_epsilon(delta))


def _event(noise: Noise) -> Any:
    dp = _dp_accounting()
    gaussian = dp.GaussianDpEvent(noise.sigma)
    step = gaussian if noise.rate == 1 else dp.PoissonSampledDpEvent(noise.rate, gaussian)
    return dp.SelfComposedDpEvent(step, noise.steps)


def _dp_accounting() -> Any:
    if find_spec("dp_accounting") is None:
        raise MissingExtra("dp-accounting", "private")
    import dp_accounting
    import dp_accounting.pld

    return dp_accounting


@lru_cache  # seconds, and a plan is made before a run and in it
def calibrated(epsilon: float, delta: float, rate: float, steps: int) -> Noise:
    """Return the least noise of each step for (epsilon, delta), to `TOLERANCE`. Raises as
    `epsilon_of_all`.
    """
    dp = _dp_accounting()
    sigma = dp.calibrate_dp_mechanism(
        lambda: dp.pld.PLDAccountant(
            value_discretization_interval=COARSE
        ),  # an upper bound, ten times faster
        lambda sigma: _event(Noise(sigma, rate, steps)),
        epsilon,
        delta,
        dp.LowerEndpointAndGuess(min(0.3, 3 / epsilon), 2.0),
        tol=TOLERANCE,
    )
    return Noise(float(sigma) + TOLERANCE, rate, steps)


@dataclass(frozen=True)
class SgdPlan:
    """Parameters of a private training.

    Attributes:
        patients: number, assumed public. batch: expected patients of a step. pretrained: whether it
            starts from a public model.
    """

    patients: int
    epsilon: float
    delta: float
    batch: int
    steps: int
    pretrained: bool

    @classmethod
    def of(
        cls,
        patients: int,
        epsilon: float,
        delta: float | None,
        batch: int | None,
        passes: int | None,
        *,
        pretrained: bool,
    ) -> SgdPlan:
        """Return the plan; None: the defaults. Raises UsageError or InputError for unsuitable
        parameters.
        """
        delta = delta_for(patients, epsilon, delta)
        batch = min(patients, max(LEAST_BATCH, patients // SHARE) if batch is None else batch)
        steps = max(1, round((PASSES if passes is None else passes) * patients / batch))
        return cls(patients, epsilon, delta, batch, steps, pretrained)

    @cached_property
    def noise(self) -> Noise:
        """The noise of each step, for gradients of norm at most 1."""
        return calibrated(self.epsilon, self.delta, self.batch / self.patients, self.steps)

    @property
    def signal(self) -> float:
        """Expected patients of a step, divided by the noise."""
        return self.batch / self.noise.sigma

    @property
    def description(self) -> str:
        """The plan as text."""
        return (
            f"epsilon {self.epsilon:g}, delta {self.delta:.2g}: {self.steps:,} steps of about"
            f" {self.batch:,} of {self.patients:,} patients, noise {self.noise.sigma:.2f}, ratio of"
            f" patients to noise {self.signal:.0f}"
        )

    def refuse_hopeless(self) -> None:
        """Raise InputError if the noise of a step is expected to hide the gradient."""
        least = LEAST_SIGNAL_PRETRAINED if self.pretrained else LEAST_SIGNAL
        if self.signal < least:
            more = "" if self.pretrained else ", start from a public model (synthetic.init)"
            hint = (
                f"use lm.model ngram, a larger epsilon, more patients{more}, or fewer passes"
                " (lm.epochs)"
            )
            raise InputError(f"{self.description}; it must be {least:g} or more", hint=hint)
