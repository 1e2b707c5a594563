"""Refuse a private release that would contain only noise, before anything is spent.

The prediction uses the numbers of patients and labels, never the notes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, sqrt

from clinveil.core import InputError
from clinveil.lm.private.gaussian import default_delta, delta_for, noise_for
from clinveil.lm.private.table import LABELS, TERMS

# of a label's patients with its most frequent specific word; .60 to .95 for 4 types of MTSamples
TOP_SHARE = 0.6
LEAST_SIGNAL = 4.0  # expected cell of such a word, in standard deviations of the noise


@dataclass(frozen=True)
class PrivatePlan:
    """Parameters of a private release, and the expected ratio of signal to noise.

    Attributes:
        patients, labels: numbers, assumed public. delta: at most 1 / patients. given: the delta
            that was asked for.
    """

    patients: int
    labels: int
    epsilon: float
    delta: float
    given: float | None = None

    @classmethod
    def of(cls, patients: int, labels: int, epsilon: float, delta: float | None) -> PrivatePlan:
        """Return the plan, with the default delta 1 / (n ln n).

        Raises UsageError for an epsilon or a delta outside its range, InputError for a delta above
        1 / patients.
        """
        return cls(patients, labels, epsilon, delta_for(patients, epsilon, delta), delta)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise for L2 sensitivity 1."""
        return noise_for(self.epsilon, self.delta)

    @property
    def top_cell(self) -> float:
        """Expected sum of a label's most frequent specific word."""
        return self.patients / self.labels * TOP_SHARE * sqrt(1 - LABELS**2) / sqrt(TERMS)

    @property
    def signal(self) -> float:
        """Expected ratio of that sum to the noise."""
        return self.top_cell / self.sigma

    @property
    def description(self) -> str:
        """The prediction as text."""
        return (
            f"epsilon {self.epsilon:g}, delta {self.delta:.2g}: noise {self.sigma:.2f} per cell,"
            f" the most frequent word of a label expected at {self.top_cell:.2f} ({self.patients:,}"
            f" patients, {self.labels} labels)"
        )

    def refuse_hopeless(self) -> None:
        """Raise InputError if the most frequent words of a label are expected to disappear in the
        noise.
        """
        if self.signal >= LEAST_SIGNAL:
            return
        what = f"{self.description}; it must be {LEAST_SIGNAL:g} times the noise"
        fewer = int(self.labels * self.signal / LEAST_SIGNAL)
        otherwise = f", or at most {fewer} labels" if fewer > 1 else ""
        raise InputError(
            what, hint=f"about {self.patients_needed:,} patients are needed{otherwise}"
        )

    @property
    def patients_needed(self) -> int:
        """Smallest sufficient number of patients, to two digits, rounded up; a delta above 1 / n is
        lowered to it.
        """

        def enough(patients: int) -> bool:
            delta = default_delta(patients) if self.given is None else min(self.given, 1 / patients)
            return PrivatePlan(patients, self.labels, self.epsilon, delta).signal >= LEAST_SIGNAL

        numbers = range(self.patients + 1, 2**62)
        needed = numbers[bisect_left(numbers, x=True, key=enough)]
        unit = 10 ** max(0, len(str(needed)) - 2)
        return ceil(needed / unit) * unit
