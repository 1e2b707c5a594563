"""Intervals and tests; each names its source, and each is held against SciPy or statsmodels in the tests."""

from __future__ import annotations

from clinveil.stats.hypotheses import benjamini_hochberg, holm, hypergeometric_tail, permutation_p
from clinveil.stats.intervals import (
    Interval,
    bootstrap_clusters,
    bootstrap_weights,
    clopper_pearson,
    ratio,
    rule_of_three,
    share_by_patient,
    share_method,
    t_interval,
    wilson,
)

__all__ = [
    "Interval",
    "benjamini_hochberg",
    "bootstrap_clusters",
    "bootstrap_weights",
    "clopper_pearson",
    "holm",
    "hypergeometric_tail",
    "permutation_p",
    "ratio",
    "rule_of_three",
    "share_by_patient",
    "share_method",
    "t_interval",
    "wilson",
]
