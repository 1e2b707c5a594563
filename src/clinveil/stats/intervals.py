"""Confidence intervals for shares, means over runs, and statistics clustered by patient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import special

from clinveil.core import Doubles, InputError, Ints

LEVEL = 0.95
DRAWS = 1000


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


def wilson(k: int, n: int) -> Interval:
    """Return the score interval of a share k/n.

    Raises ValueError for k outside [0, n] or n < 1.
    Source: Wilson 1927, J. Am. Stat. Assoc. 22:209; recommended by Brown, Cai & DasGupta 2001,
    Stat. Sci. 16:101.
    """
    from scipy.stats import binomtest  # slow import: half a second

    return Interval(*map(float, binomtest(k, n).proportion_ci(method="wilson")))


def clopper_pearson(k: float, n: float) -> Interval:
    """Return the exact (conservative) interval of a share k/n, from the beta distribution; k and n
    may be fractions.

    Raises ValueError for k outside [0, n], or n of 0.
    Source: Clopper & Pearson 1934, Biometrika 26:404; effective numbers of cases: Korn & Graubard
    1998, Surv. Methodol. 24:193.
    """
    if not (0 <= k <= n and n > 0):
        raise ValueError(f"invalid share: {k:g} of {n:g}")
    tail = (1 - LEVEL) / 2
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1 - tail))
    return Interval(low, high)


def weighted_poisson(weights: ArrayLike, *, most: float = 1.0) -> Interval:
    """Return the interval of the expected sum of weights of rare events; `weights` has one entry
    per observed event.

    With weights of 1 it is the exact interval of a Poisson count (Garwood 1936); unequal weights
    widen it. `most`: the largest possible weight of an event.

    Raises ValueError for a weight of 0 or less.
    Source: Fay & Feuer 1997, Stat. Med. 16:791.
    """
    each = np.asarray(weights, dtype=np.float64)
    if not (each > 0).all():
        raise ValueError("weights must be greater than 0")
    total = float(each.sum())
    square = float(each @ each)
    most = float(each.max(initial=most))
    tail = (1 - LEVEL) / 2
    low = (
        0.0
        if not each.size
        else square / total * float(special.gammaincinv(total**2 / square, tail))
    )
    total = total + most
    square = square + most**2
    return Interval(low, square / total * float(special.gammaincinv(total**2 / square, 1 - tail)))


def sum_of_intervals(values: ArrayLike, intervals: ArrayLike) -> Interval:
    """Return the interval of a sum of independent estimates, from their intervals, (n, 2).

    Source: method of variance estimates recovery, Zou & Donner 2008, Stat. Med. 27:1693.
    """
    each = np.asarray(values, dtype=np.float64)
    ends = np.asarray(intervals, dtype=np.float64).reshape(-1, 2)
    below = each - ends[:, 0]
    above = ends[:, 1] - each
    total = float(each.sum())
    return Interval(total - float(np.sqrt(below @ below)), total + float(np.sqrt(above @ above)))


def ratio_of_intervals(
    top: float, of_top: Interval, bottom: float, of_bottom: Interval
) -> Interval:
    """Return the interval of the ratio of two independent non-negative estimates, from their
    intervals.

    The upper end is infinite if the interval of `bottom` contains 0. Raises ValueError if `bottom`
    is 0.
    Source: method of variance estimates recovery, Donner & Zou 2012, Stat. Methods Med. Res.
    21:347.
    """
    if bottom <= 0 or top < 0:
        raise ValueError("a ratio needs a numerator of at least 0 and a denominator above 0")
    product = top * bottom

    def end(a: float, b: float, sign: int) -> float:
        spread = max(product**2 - a * b * (2 * top - a) * (2 * bottom - b), 0.0)
        return float((product + sign * np.sqrt(spread)) / (b * (2 * bottom - b)))

    # An upper end beyond twice the denominator's value would change the sign of the divisor.
    high_bottom = min(of_bottom.high, 1.999 * bottom)
    low = max(0.0, end(of_top.low, high_bottom, -1)) if of_top.low > 0 else 0.0
    return Interval(low, end(of_top.high, of_bottom.low, 1) if of_bottom.low > 0 else float("inf"))


def t_interval(values: ArrayLike, level: float = LEVEL) -> Interval:
    """Return the t interval of a mean of independent runs (seeds, folds).

    Raises ValueError for fewer than two values.
    Source: Student 1908, Biometrika 6:1.
    """
    runs = np.asarray(values, dtype=np.float64)
    if runs.ndim != 1 or runs.size < 2:
        raise ValueError(f"the interval of a mean needs at least two runs, got {runs.size}")
    half = float(
        special.stdtrit(runs.size - 1, (1 + level) / 2) * runs.std(ddof=1) / np.sqrt(runs.size)
    )
    return Interval(float(runs.mean()) - half, float(runs.mean()) + half)


def bootstrap_weights(
    n_clusters: int, statistic: Callable[[Ints], float], rng: Generator, *, draws: int = DRAWS
) -> Interval:
    """Return the percentile bootstrap interval of a statistic, with clusters (patients) drawn with
    replacement.

    Args:
        statistic: maps weights, shape (n_clusters,), the number of times each patient was drawn, to
            a number, or to NaN for draws to be excluded.

    Raises InputError for no cluster, or if all draws give NaN.
    Source: Efron 1979, Ann. Stat. 7:1; of clusters: Davison & Hinkley 1997, section 3.8.
    """
    if n_clusters < 1 or draws < 1:
        what = f"a bootstrap needs patients and draws, got {n_clusters} and {draws}"
        raise InputError(what, hint="use at least 1 of each")
    drawn = (
        np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters)
        for _ in range(draws)
    )
    values = np.array([statistic(weights) for weights in drawn], dtype=np.float64)
    values = values[~np.isnan(values)]
    if not values.size:
        raise InputError(
            "the statistic is undefined in all bootstrap draws", hint="use more patients"
        )
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def bootstrap_clusters(
    values: NDArray[Any],
    statistic: Callable[[NDArray[Any]], float],
    rng: Generator,
    *,
    draws: int = DRAWS,
) -> Interval:
    """Return the percentile bootstrap interval of a statistic of per-patient values.

    Args:
        values: shape (n_patients, ...), for example each patient's hits and tokens.
        statistic: maps an array of the same shape to a number, for example `ratio`.

    Errors and source: as for `bootstrap_weights`.
    """
    return bootstrap_weights(
        len(values), lambda w: statistic(np.repeat(values, w, axis=0)), rng, draws=draws
    )


def ratio(values: NDArray[Any]) -> float:
    """Return the sum of column 1 over the sum of column 2, shape (n_patients, 2); NaN if the second
    is 0.
    """
    top = values[:, 0].sum()
    bottom = values[:, 1].sum()
    return float(top / bottom) if bottom else float("nan")


def share_by_patient(values: NDArray[Any]) -> Interval:
    """Return the interval of a share with cases clustered by patient, from hits and cases per
    patient, (n_patients, 2).

    Clopper-Pearson with the effective number of cases: the number of independent cases with the
    same variance. If few patients have most of the hits, that variance is uncertain and has fewer
    degrees of freedom: 2n / (kurtosis - 1). If none or all cases are hits, there is no variance and
    the number of patients is used.

    Hits may be fractions. Raises ValueError if there are no cases.
    Source: Korn & Graubard 1998, Surv. Methodol. 24:193; degrees of freedom: O'Neill 2014, Am.
    Stat. 68:282.
    """
    hits = values[:, 0].astype(np.float64)
    cases = values[:, 1].astype(np.float64)
    if _all_alike(values):
        patients = int((cases > 0).sum())
        return clopper_pearson(patients if hits.any() else 0, patients)
    share = float(hits.sum() / cases.sum())
    n = _effective(hits - share * cases, share, float(cases.sum()))
    return clopper_pearson(share * n, n)


def _effective(residuals: Doubles, share: float, cases: float) -> float:
    """Return the number of independent cases with the same information about the share."""
    n = len(residuals)
    square = float(residuals @ residuals)
    if n < 2:
        return 1.0
    if not square:  # every patient has the same share
        return cases
    t = special.stdtrit(np.array([max(cases - 1, 1.0), _freedom(residuals)]), (1 + LEVEL) / 2)
    alike = share * (1 - share) * cases**2 * (n - 1) / (n * square)
    return float(min(cases, alike * (t[0] / t[1]) ** 2))


def _freedom(residuals: Doubles) -> float:
    """Return the degrees of freedom of the residuals' variance; fewer if few patients dominate
    it.
    """
    n = len(residuals)
    square = float(residuals @ residuals)
    if not square:
        return n - 1.0
    kurtosis = n * float((residuals**4).sum()) / square**2
    return min(n - 1.0, 2 * n / max(kurtosis - 1, 1.0))


def share_method(values: NDArray[Any], of: str) -> str:
    """Describe the method of `share_by_patient` for these values, for a finding; `of`: the unit
    ("patients").
    """
    if _all_alike(values):
        return f"exact where 0 or 1, for as many {of} (Clopper-Pearson), 95 %"
    return f"Korn-Graubard by {of}, 95 %"


def _all_alike(values: NDArray[Any]) -> bool:
    """Return whether none or all of the cases are hits."""
    return not 0 < float(values[:, 0].sum()) < float(values[:, 1].sum())


def jackknife_t(values: NDArray[Any], statistic: Callable[[NDArray[Any]], float]) -> Interval:
    """Return the jackknife interval of a smooth function of sums (ratio, difference of ratios).

    Student's t around the statistic of all patients, with the degrees of freedom of
    `share_by_patient`.

    Args:
        values: each patient's contributions to the sums, (n_patients, n_sums).
        statistic: maps the sums, (n_sums,), to a number.

    Raises InputError for fewer than two patients, or if the statistic is undefined without one of
    them.
    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 11; t: Tukey 1958.
    """
    if (n := len(values)) < 2:
        raise InputError(
            f"an interval needs at least two patients, got {n}", hint="use more patients"
        )
    sums = values.sum(axis=0)
    whole = statistic(sums)
    without = np.array([statistic(sums - row) for row in values])
    if not np.isfinite(without).all():
        raise InputError(
            "the statistic is undefined without one of the patients", hint="use more patients"
        )
    deviations = without - without.mean()
    half = float(
        special.stdtrit(_freedom(deviations), (1 + LEVEL) / 2) * np.sqrt((n - 1) * without.var())
    )
    return Interval(whole - half, whole + half)
