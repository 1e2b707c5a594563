"""How well a score tells members from non-members: the area under the ROC curve, and the TPR at a given FPR."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from clinveil.core.errors import InputError
from clinveil.stats import Interval, clopper_pearson, effective_share

# False positives that must be expected before a rate of them can be spoken of: 500 non-members for 1 %.
FALSE_POSITIVES = 5
LEVEL = 0.95
Scores = NDArray[np.float64]


class Difference(NamedTuple):
    """The difference of two areas on the same patients, its 95 % interval, and the two-sided P that there is none."""

    value: float
    interval: Interval
    p: float


@dataclass(frozen=True)
class RocScores:
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
        return float(self.placements[0].mean())

    @cached_property
    def placements(self) -> tuple[Scores, Scores]:
        """Of each member the share of non-members below, of each non-member the share of members above; ties by half.

        Source: DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837, their structural components.
        """
        return _below(self.members, self.others), 1 - _below(self.others, self.members)

    def auc_interval(self) -> Interval:
        """95 %, of both sides' patients: DeLong's variance on the logit scale, t with Brunner and Munzel's freedom.

        Where that variance is 0 (sides wholly apart, ties only) or a side has one patient: Clopper-Pearson, of as many
        patients as the smaller side has.

        Source: logit: Qin & Hotilovac 2008, Stat. Methods Med. Res. 17:207; freedom: Brunner & Munzel 2000, Biom. J.
        42:17.
        """
        spread = _spread(*self.placements)
        if spread is None:
            n = min(self.members.size, self.others.size)
            return effective_share(self.auc * n, n, LEVEL)
        half = spread.t * spread.error / (self.auc * (1 - self.auc))
        low, high = special.expit(special.logit(self.auc) + np.array([-half, half]))
        return Interval(float(low), float(high))

    @property
    def auc_method(self) -> str:
        """How `auc_interval` is made for these scores, in words."""
        if _spread(*self.placements) is None:
            return "exact where patients do not vary, for as many as the smaller side has (Clopper-Pearson), 95 %"
        return "over patients of both sides (DeLong on the logit scale, t), 95 %"

    def measurable(self, fpr: float) -> bool:
        """Whether there are enough non-members for a false positive rate."""
        return fpr * self.others.size >= FALSE_POSITIVES - 1e-9

    def tpr_at_fpr(self, fpr: float) -> tuple[float, Interval]:
        """The share of members above the threshold that at most `fpr` of the non-members pass, and its 95 % interval.

        The threshold is an order statistic of the non-members. Its own exact interval gives a least and a greatest
        share; these errors and those of the share at the threshold (Clopper-Pearson) are squared and added.

        Raises InputError where fewer than five false positives are to be expected: then it cannot be measured.
        Source: of the threshold: Conover 1999, Practical Nonparametric Statistics, 3.2; adding: Zou & Donner 2008,
        Stat. Med. 27:1693.
        """
        if not self.measurable(fpr):
            need = int(np.ceil(FALSE_POSITIVES / fpr))
            raise InputError(f"{self.others.size} non-members cannot measure a rate of {fpr:g}; {need} can")
        falling, n = np.sort(self.others)[::-1], self.members.size
        hits = int((self.members > falling[int(np.floor(fpr * falling.size + 1e-9))]).sum())
        low, high = clopper_pearson(hits, n, LEVEL)
        least, most = self._strayed(falling, fpr)
        share = hits / n
        down, up = np.hypot(share - low, share - least), np.hypot(high - share, most - share)
        return share, Interval(max(0.0, float(share - down)), min(1.0, float(share + up)))

    def _strayed(self, falling: Scores, fpr: float) -> tuple[float, float]:
        """The least and greatest share of members found, over the 95 % interval of the true threshold."""
        from scipy.stats import binom  # heavy: half a second at import

        few, many = (int(k) for k in binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], falling.size, fpr))
        least = float((self.members > falling[few - 1]).mean()) if few else 0.0
        most = float((self.members > falling[many]).mean()) if many < falling.size else 1.0
        return least, most


def difference_of_areas(one: RocScores, other: RocScores) -> Difference:
    """The area of one less that of the other, two scores of the same patients in the same order.

    Raises InputError where the sides differ in size, or one has fewer than two patients.
    Source: DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837; t with Satterthwaite's degrees of freedom.
    """
    sizes = [(s.members.size, s.others.size) for s in (one, other)]
    if sizes[0] != sizes[1] or min(sizes[0]) < 2:
        raise InputError("two areas are compared on the same patients, two or more of each side")
    value = one.auc - other.auc
    gaps = [mine - theirs for mine, theirs in zip(one.placements, other.placements, strict=True)]
    spread = _spread(gaps[0], gaps[1])
    if spread is None:
        return _all_moved_alike(value, min(sizes[0]))
    half = spread.t * spread.error
    p = 2 * float(special.stdtr(spread.freedom, -(abs(value) / spread.error)))
    return Difference(value, Interval(max(-1.0, value - half), min(1.0, value + half)), p)


def _all_moved_alike(value: float, n: int) -> Difference:
    """Where nobody's placement moved, or all of a side moved by as much: the exact interval and the sign test of n."""
    low, high = (2 * end - 1 for end in effective_share((1 + value) / 2 * n, n, LEVEL))
    return Difference(value, Interval(low, high), min(1.0, 2 * 0.5**n) if value else 1.0)


class _Spread(NamedTuple):
    """The standard error of a difference of two sides' means, and its degrees of freedom."""

    error: float
    freedom: float

    @property
    def t(self) -> float:
        """Student's t of the 95 % interval."""
        return float(special.stdtrit(self.freedom, (1 + LEVEL) / 2))


def _spread(first: Scores, second: Scores) -> _Spread | None:
    """Of two sides' placements; None where they do not vary, or a side has one patient."""
    sides = (first, second)
    if min(side.size for side in sides) < 2:
        return None
    parts = np.array([side.var(ddof=1) / side.size for side in sides])
    if parts.sum() < 1e-24:  # rounding of equal numbers
        return None
    freedom = parts.sum() ** 2 / (parts**2 / np.array([side.size - 1 for side in sides])).sum()
    return _Spread(float(np.sqrt(parts.sum())), float(freedom))


def _below(these: Scores, those: Scores) -> Scores:
    """(n_these,) the share of those below each of these, ties by half."""
    ordered = np.sort(those)
    below, upto = np.searchsorted(ordered, these, "left"), np.searchsorted(ordered, these, "right")
    return (below + upto) / 2 / ordered.size
