"""Confidence intervals and statistical tests; the tests compare them with SciPy or statsmodels."""

from __future__ import annotations

from clinveil.stats.hypotheses import (
    benjamini_hochberg,
    holm,
    hypergeometric_tail,
    permutation_p,
    rank_biserial,
    smallest_holm_p,
    wilcoxon_p,
)
from clinveil.stats.intervals import (
    Interval,
    bootstrap_clusters,
    bootstrap_weights,
    clopper_pearson,
    jackknife_t,
    ratio,
    ratio_of_intervals,
    share_by_patient,
    share_method,
    sum_of_intervals,
    t_interval,
    weighted_poisson,
    wilson,
)

__all__ = ["Interval", "bootstrap_clusters", "bootstrap_weights", "clopper_pearson", "jackknife_t"]
__all__ += [
    "ratio",
    "ratio_of_intervals",
    "share_by_patient",
    "share_method",
    "sum_of_intervals",
    "t_interval",
    "weighted_poisson",
    "wilson",
]
__all__ += ["benjamini_hochberg", "holm", "hypergeometric_tail", "permutation_p", "rank_biserial"]
__all__ += ["smallest_holm_p", "wilcoxon_p"]
