"""Confidence intervals: for shares, for means over runs, and for anything that is counted by patient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import special

from clinveil.core.errors import InputError
from clinveil.core.types import Doubles, Ints

LEVEL = 0.95
DRAWS = 1000


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


def _counts(k: int, n: int) -> None:
    if not 0 <= k <= n or n < 1:
        raise ValueError(f"{k} of {n} is no share")


def _level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")


def wilson(k: int, n: int, level: float = LEVEL) -> Interval:
    """The score interval of a share k/n.

    Raises ValueError for k outside [0, n] or n < 1.
    Source: Wilson 1927, J. Am. Stat. Assoc. 22:209; recommended by Brown, Cai & DasGupta 2001, Stat. Sci. 16:101.
    """
    _counts(k, n)
    _level(level)
    z = float(special.ndtri((1 + level) / 2))
    share, shrink = k / n, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / shrink
    half = z / shrink * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    # At the ends the sum is exact in theory and an ulp off in floats.
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half)


def clopper_pearson(k: int, n: int, level: float = LEVEL) -> Interval:
    """The exact (conservative) interval of a share k/n, from the beta distribution.

    Raises ValueError for k outside [0, n] or n < 1.
    Source: Clopper & Pearson 1934, Biometrika 26:404.
    """
    _counts(k, n)
    return effective_share(k, n, level)


def effective_share(k: float, n: float, level: float = LEVEL) -> Interval:
    """Clopper-Pearson of k/n where both are effective numbers, not counts: 0 <= k <= n, n > 0.

    Raises ValueError for k outside [0, n].
    Source: Korn & Graubard 1998, Surv. Methodol. 24:193.
    """
    _level(level)
    if not (0 <= k <= n and n > 0):
        raise ValueError(f"{k:g} of {n:g} is no share")
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1 - tail))
    return Interval(low, high)


def weighted_poisson(weights: ArrayLike, level: float = LEVEL, *, most: float = 1.0) -> Interval:
    """The interval of the expected sum of what rare events bring: `weights`, one an event that came; none may have.

    With weights of 1 it is the exact interval of a Poisson count (Garwood 1936); unequal weights widen it.
    `most`: the largest weight that an event could have had.

    Raises ValueError for a weight that is not above 0.
    Source: Fay & Feuer 1997, Stat. Med. 16:791.
    """
    _level(level)
    each = np.asarray(weights, dtype=np.float64)
    if not (each > 0).all():
        raise ValueError("the weight of an event is above 0")
    total, square, most = float(each.sum()), float(each @ each), float(each.max(initial=most))
    tail = (1 - level) / 2
    low = 0.0 if not each.size else square / total * float(special.gammaincinv(total**2 / square, tail))
    total, square = total + most, square + most**2
    return Interval(low, square / total * float(special.gammaincinv(total**2 / square, 1 - tail)))


def sum_of_intervals(values: ArrayLike, intervals: ArrayLike) -> Interval:
    """The interval of a sum of independent estimates, from the interval of each, (n, 2).

    Source: method of variance estimates recovery, Zou & Donner 2008, Stat. Med. 27:1693.
    """
    each, ends = np.asarray(values, dtype=np.float64), np.asarray(intervals, dtype=np.float64).reshape(-1, 2)
    below, above = each - ends[:, 0], ends[:, 1] - each
    total = float(each.sum())
    return Interval(total - float(np.sqrt(below @ below)), total + float(np.sqrt(above @ above)))


def ratio_of_intervals(top: float, of_top: Interval, bottom: float, of_bottom: Interval) -> Interval:
    """The interval of the ratio of two independent estimates that are 0 or more, from the interval of each.

    The upper end is infinite where the interval of `bottom` reaches 0. Raises ValueError for no `bottom`.
    Source: method of variance estimates recovery, Donner & Zou 2012, Stat. Methods Med. Res. 21:347.
    """
    if bottom <= 0 or top < 0:
        raise ValueError("a ratio is of a number from 0 to one above 0")
    product = top * bottom

    def end(a: float, b: float, sign: int) -> float:
        spread = max(product**2 - a * b * (2 * top - a) * (2 * bottom - b), 0.0)
        return float((product + sign * np.sqrt(spread)) / (b * (2 * bottom - b)))

    # An end of the bottom beyond twice its value would turn the sign of the divisor.
    high_bottom = min(of_bottom.high, 1.999 * bottom)
    low = max(0.0, end(of_top.low, high_bottom, -1)) if of_top.low > 0 else 0.0
    return Interval(low, end(of_top.high, of_bottom.low, 1) if of_bottom.low > 0 else float("inf"))


def t_interval(values: ArrayLike, level: float = LEVEL) -> Interval:
    """The interval of a mean of independent runs (seeds, folds), by Student's t.

    Raises ValueError for fewer than two values.
    Source: Student 1908, Biometrika 6:1.
    """
    runs = np.asarray(values, dtype=np.float64)
    _level(level)
    if runs.ndim != 1 or runs.size < 2:
        raise ValueError(f"an interval of a mean needs at least two runs, got {runs.size}")
    half = float(special.stdtrit(runs.size - 1, (1 + level) / 2) * runs.std(ddof=1) / np.sqrt(runs.size))
    return Interval(float(runs.mean()) - half, float(runs.mean()) + half)


def bootstrap_weights(
    n_clusters: int, statistic: Callable[[Ints], float], rng: Generator, *, draws: int = DRAWS, level: float = LEVEL
) -> Interval:
    """The percentile interval of a statistic when whole clusters (patients) are drawn with replacement.

    Args:
        statistic: from weights, shape (n_clusters,), how often each patient was drawn, to a number; NaN where a draw
            has no such number (it is left out).

    Raises InputError for no cluster, or no draw that gave a number.
    Source: Efron 1979, Ann. Stat. 7:1; of clusters: Davison & Hinkley 1997, section 3.8.
    """
    _level(level)
    if n_clusters < 1 or draws < 1:
        raise InputError(f"a bootstrap needs patients and draws, got {n_clusters} and {draws}")
    drawn = (np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters) for _ in range(draws))
    values = np.array([statistic(weights) for weights in drawn], dtype=np.float64)
    values = values[~np.isnan(values)]
    if not values.size:
        raise InputError("no draw of the bootstrap gave a number")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def bootstrap_clusters(
    values: NDArray[Any],
    statistic: Callable[[NDArray[Any]], float],
    rng: Generator,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Interval:
    """The percentile interval of a statistic of what each patient gave, patients drawn with replacement.

    Args:
        values: shape (n_patients, ...), for example each patient's hits and tokens.
        statistic: from an array of the same shape to a number, for example `ratio`.

    Raises and source: as `bootstrap_weights`.
    """

    def of_drawn(weights: Ints) -> float:
        return statistic(np.repeat(values, weights, axis=0))

    return bootstrap_weights(len(values), of_drawn, rng, draws=draws, level=level)


def ratio(values: NDArray[Any]) -> float:
    """Sum of the first column over sum of the second, shape (n_patients, 2); NaN where the second is 0."""
    top, bottom = values[:, 0].sum(), values[:, 1].sum()
    return float(top / bottom) if bottom else float("nan")


def share_by_patient(values: NDArray[Any], *, level: float = LEVEL) -> Interval:
    """The interval of a share of things counted by patient, from each patient's hits and things, (n_patients, 2).

    Clopper-Pearson with the effective number of things: as many independent ones as have the variance that patients
    show. Its degrees of freedom fall where few patients hold most of the hits, for then that variance is little known
    itself: 2n / (kurtosis - 1). Where none or all are hits there is no variance, and patients take the place of things.

    Hits may be fractions. Raises ValueError where there are no things.
    Source: Korn & Graubard 1998, Surv. Methodol. 24:193; degrees of freedom: O'Neill 2014, Am. Stat. 68:282.
    """
    hits, things = values[:, 0].astype(np.float64), values[:, 1].astype(np.float64)
    if _all_alike(values):
        patients = int((things > 0).sum())
        return clopper_pearson(patients if hits.any() else 0, patients, level)
    share = float(hits.sum() / things.sum())
    n = _effective(hits - share * things, share, float(things.sum()), level)
    return effective_share(share * n, n, level)


def _effective(residuals: Doubles, share: float, things: float, level: float) -> float:
    """How many independent things tell as much of the share as these patients do."""
    n, square = len(residuals), float(residuals @ residuals)
    if n < 2:
        return 1.0
    if not square:  # every patient has the same share
        return things
    t = special.stdtrit(np.array([max(things - 1, 1.0), _freedom(residuals)]), (1 + level) / 2)
    alike = share * (1 - share) * things**2 * (n - 1) / (n * square)
    return float(min(things, alike * (t[0] / t[1]) ** 2))


def _freedom(residuals: Doubles) -> float:
    """Degrees of freedom of the variance that residuals show: fewer where few patients make most of it."""
    n, square = len(residuals), float(residuals @ residuals)
    if not square:
        return n - 1.0
    kurtosis = n * float((residuals**4).sum()) / square**2
    return min(n - 1.0, 2 * n / max(kurtosis - 1, 1.0))


def share_method(values: NDArray[Any], of: str) -> str:
    """What `share_by_patient` does with these values, for a finding's `method`; `of`: what is the unit ("patients")."""
    if _all_alike(values):
        return f"exact where 0 or 1, for as many {of} (Clopper-Pearson), 95 %"
    return f"Korn-Graubard by {of}, 95 %"


def _all_alike(values: NDArray[Any]) -> bool:
    """Whether none or all of the things are hits."""
    return not 0 < float(values[:, 0].sum()) < float(values[:, 1].sum())


def jackknife_t(values: NDArray[Any], statistic: Callable[[NDArray[Any]], float], *, level: float = LEVEL) -> Interval:
    """The interval of a smooth function of sums (ratio, difference of ratios) by leaving out each patient in turn.

    Student's t about the statistic of all of them, with the degrees of freedom of `share_by_patient`.

    Args:
        values: what each patient adds to the sums, (n_patients, n_sums).
        statistic: from the sums, (n_sums,), to a number.

    Raises InputError for fewer than two patients, or where leaving one out leaves no number.
    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 11; t: Tukey 1958.
    """
    if (n := len(values)) < 2:
        raise InputError(f"an interval needs at least two patients, got {n}")
    sums = values.sum(axis=0)
    whole, without = statistic(sums), np.array([statistic(sums - row) for row in values])
    if not np.isfinite(without).all():
        raise InputError("with one patient left out there is no number")
    strayed = without - without.mean()
    half = float(special.stdtrit(_freedom(strayed), (1 + level) / 2) * np.sqrt((n - 1) * without.var()))
    return Interval(whole - half, whole + half)
