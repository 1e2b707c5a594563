"""Intervals of what is counted by patient (or note, or premise) and sums over them; nothing is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from clinveil.core.errors import InputError
from clinveil.stats.intervals import LEVEL, Interval, clopper_pearson, effective_share


def share_by_patient(values: NDArray[Any], *, level: float = LEVEL) -> Interval:
    """The interval of a share of things counted by patient, from each patient's hits and things, (n_patients, 2).

    Clopper-Pearson with the effective number of things: as many independent ones as have the variance that patients
    show. Its degrees of freedom fall where few patients hold most of the hits, for then that variance is little known
    itself: 2n / (kurtosis - 1). Where none or all are hits there is no variance, and patients take the place of things.

    Args:
        values: hits and things of each patient; hits may be fractions.

    Raises ValueError where there are no things.
    Source: Korn & Graubard 1998, Surv. Methodol. 24:193; degrees of freedom: O'Neill 2014, Am. Stat. 68:282.
    """
    hits, things = values[:, 0].astype(np.float64), values[:, 1].astype(np.float64)
    if _all_alike(values):
        patients = int((things > 0).sum())
        return clopper_pearson(patients if hits.any() else 0, patients, level)
    share = float(hits.sum() / things.sum())
    n = _effective(hits - share * things, share, float(things.sum()), level)
    return effective_share(share * n, n, level)


def _effective(residuals: NDArray[np.float64], share: float, things: float, level: float) -> float:
    """How many independent things tell as much of the share as these patients do."""
    n, square = len(residuals), float(residuals @ residuals)
    if n < 2:
        return 1.0
    if not square:  # every patient has the same share
        return things
    t = special.stdtrit(np.array([max(things - 1, 1.0), _freedom(residuals)]), (1 + level) / 2)
    alike = share * (1 - share) * things**2 * (n - 1) / (n * square)
    return float(min(things, alike * (t[0] / t[1]) ** 2))


def _freedom(residuals: NDArray[np.float64]) -> float:
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
