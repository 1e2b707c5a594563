"""How well a score tells members from non-members: the area under the curve, and hits at a rate of false alarms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.errors import InputError
from clinveil.stats import Interval, clopper_pearson

# False alarms that must be expected before a rate of them can be spoken of: 1,000 non-members for 1 %.
FALSE_ALARMS = 10
DRAWS = 2_000
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Separation:
    """Scores of members and of non-members, one a patient; higher means "more likely a member".

    Raises InputError where one side is empty or a score is no number.
    """

    members: Scores = field(repr=False)
    others: Scores = field(repr=False)

    def __post_init__(self) -> None:
        if not self.members.size or not self.others.size:
            raise InputError("members and non-members are both needed, by patient")
        if not np.isfinite(self.members).all() or not np.isfinite(self.others).all():
            raise InputError("a score is no finite number")

    @property
    def auc(self) -> float:
        """P(a member scores higher than a non-member), ties by half (Mann & Whitney 1947)."""
        return float(_wins(self.members, np.sort(self.others)).mean())

    def auc_interval(self, rng: Generator, *, draws: int = DRAWS) -> Interval:
        """95 %, by drawing patients of both sides anew (percentile bootstrap).

        Where the sides are wholly apart every draw is 0 or 1; there the exact interval of the smaller side stands in.
        """
        if self.auc in (0.0, 1.0):
            n = min(self.members.size, self.others.size)
            return clopper_pearson(n if self.auc else 0, n)
        shares = _shares(self.members, self.others)
        values = [_redrawn(shares, rng) for _ in range(draws)]
        low, high = np.quantile(values, [0.025, 0.975])
        return Interval(float(low), float(high))

    def measurable(self, rate: float) -> bool:
        """Whether there are enough non-members for a rate of false alarms."""
        return rate * self.others.size >= FALSE_ALARMS - 1e-9

    def hits_at(self, rate: float) -> tuple[float, Interval]:
        """The share of members above the threshold that at most `rate` of the non-members pass, and its exact interval.

        Raises InputError where fewer than ten false alarms are to be expected: then it cannot be measured.
        """
        if not self.measurable(rate):
            need = int(np.ceil(FALSE_ALARMS / rate))
            raise InputError(f"{self.others.size} non-members cannot measure a rate of {rate:g}; {need} can")
        ordered = np.sort(self.others)
        allowed = int(np.floor(rate * ordered.size + 1e-9))
        hits = int((self.members > ordered[ordered.size - allowed - 1]).sum())
        return hits / self.members.size, clopper_pearson(hits, self.members.size)


def _wins(members: Scores, ordered: Scores) -> Scores:
    """(n_members,) the share of non-members below each member, ties by half."""
    below, upto = np.searchsorted(ordered, members, "left"), np.searchsorted(ordered, members, "right")
    return (below + upto) / 2 / ordered.size


def _shares(members: Scores, others: Scores) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Ranks of both among their distinct values: all that the area depends on."""
    values, ranks = np.unique(np.concatenate([members, others]), return_inverse=True)
    return ranks[: members.size], ranks[members.size :], values.size


def _redrawn(ranks: tuple[NDArray[np.int64], NDArray[np.int64], int], rng: Generator) -> float:
    members, others, n = ranks
    drawn = [side[rng.integers(side.size, size=side.size)] for side in (members, others)]
    ours, theirs = (np.bincount(side, minlength=n) for side in drawn)
    below = np.cumsum(theirs) - theirs / 2
    return float((ours * below).sum() / (members.size * others.size))
