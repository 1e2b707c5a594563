"""Membership inference scores: the area under the ROC curve, and the TPR at a given FPR."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from clinveil.core import InputError
from clinveil.stats.intervals import Interval, clopper_pearson

# Minimum number of expected false positives for measuring a rate: 500 non-members for 1 %.
FALSE_POSITIVES = 5
LEVEL = 0.95
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class RocScores:
    """Scores of members and non-members, one per patient; higher means "more likely a member".

    Raises InputError if one side is empty or a score is not finite.
    """

    members: Scores = field(repr=False)
    others: Scores = field(repr=False)

    def __post_init__(self) -> None:
        if not self.members.size or not self.others.size:
            raise InputError(
                "members or non-members are missing",
                hint="pass scores of at least one patient each",
            )
        if not np.isfinite(self.members).all() or not np.isfinite(self.others).all():
            raise InputError("a score is not finite", hint="remove NaN and infinity")

    @property
    def auc(self) -> float:
        """P(a member scores higher than a non-member), ties count half (Mann & Whitney 1947)."""
        return float(self.placements[0].mean())

    @cached_property
    def placements(self) -> tuple[Scores, Scores]:
        """Share of non-members below each member, and of members above each non-member; ties count
        half.

        Source: DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837, their structural
        components.
        """
        return _below(self.members, self.others), 1 - _below(self.others, self.members)

    def auc_interval(self) -> Interval:
        """Return the 95 % interval: DeLong's variance on the logit scale, t with Brunner and
        Munzel's degrees of
        freedom.

        If that variance is 0 (complete separation, ties only) or a side has one patient, return the
        Clopper-Pearson interval for the number of patients on the smaller side.

        Source: logit: Qin & Hotilovac 2008, Stat. Methods Med. Res. 17:207; degrees of freedom:
        Brunner & Munzel 2000, Biom. J. 42:17.
        """
        spread = _spread(*self.placements)
        if spread is None:
            n = min(self.members.size, self.others.size)
            return clopper_pearson(self.auc * n, n)
        half = spread / (self.auc * (1 - self.auc))
        low, high = special.expit(special.logit(self.auc) + np.array([-half, half]))
        return Interval(float(low), float(high))

    @property
    def auc_method(self) -> str:
        """Description of the method that `auc_interval` uses for these scores."""
        if _spread(*self.placements) is None:
            return (
                "exact where patients do not vary, for as many as the smaller side has"
                " (Clopper-Pearson), 95 %"
            )
        return "over patients of both sides (DeLong on the logit scale, t), 95 %"

    def measurable(self, fpr: float) -> bool:
        """Return whether there are enough non-members for a false positive rate."""
        return fpr * self.others.size >= FALSE_POSITIVES - 1e-9

    def tpr_at_fpr(self, fpr: float) -> tuple[float, Interval]:
        """Return the share of members above the threshold that at most `fpr` of non-members exceed,
        and its 95 %
        interval.

        The threshold is an order statistic of the non-members. Its exact interval gives a smallest
        and a largest share; these errors and those of the share at the threshold (Clopper-Pearson)
        are squared and added.

        Raises InputError if fewer than five false positives are expected.
        Source: threshold: Conover 1999, Practical Nonparametric Statistics, 3.2; sum of errors: Zou
        & Donner 2008, Stat. Med. 27:1693.
        """
        from scipy.stats import binom  # slow import: half a second

        if not self.measurable(fpr):
            need = int(np.ceil(FALSE_POSITIVES / fpr))
            what = (
                f"{self.others.size} non-members are too few for a false positive rate of {fpr:g}"
            )
            raise InputError(what, hint=f"use at least {need}")
        falling = np.sort(self.others)[::-1]
        n = self.members.size
        hits = int((self.members > falling[int(np.floor(fpr * falling.size + 1e-9))]).sum())
        low, high = clopper_pearson(hits, n)
        few, many = (
            int(k) for k in binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], falling.size, fpr)
        )
        least = float((self.members > falling[few - 1]).mean()) if few else 0.0
        most = float((self.members > falling[many]).mean()) if many < falling.size else 1.0
        share = hits / n
        down = np.hypot(share - low, share - least)
        up = np.hypot(high - share, most - share)
        return share, Interval(max(0.0, float(share - down)), min(1.0, float(share + up)))


def _spread(first: Scores, second: Scores) -> float | None:
    """Return half of the 95 % t interval of the difference of two sides' placements.

    None if they do not vary or a side has one patient.
    """
    sides = (first, second)
    if min(side.size for side in sides) < 2:
        return None
    parts = np.array([side.var(ddof=1) / side.size for side in sides])
    if parts.sum() < 1e-24:  # rounding errors of equal numbers
        return None
    freedom = parts.sum() ** 2 / (parts**2 / np.array([side.size - 1 for side in sides])).sum()
    return float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * float(np.sqrt(parts.sum()))


def _below(these: Scores, those: Scores) -> Scores:
    """Return the share of `those` below each of `these`, (n_these,); ties count half."""
    ordered = np.sort(those)
    below = np.searchsorted(ordered, these, "left")
    upto = np.searchsorted(ordered, these, "right")
    return (below + upto) / 2 / ordered.size
