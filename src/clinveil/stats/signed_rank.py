"""The signed-rank test over patients, and its effect size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def wilcoxon_p(values: Doubles) -> float:
    """Two-sided P of Wilcoxon's signed-rank test that values lie around nought; 1 where all are nought.

    Noughts are left out. Source: Wilcoxon 1945, Biometrics Bulletin 1:80.
    """
    from scipy.stats import wilcoxon

    moved = values[values != 0]
    return float(wilcoxon(moved).pvalue) if moved.size else 1.0


def rank_biserial(values: Doubles) -> float:
    """The matched-pairs rank-biserial correlation: rank sum of the positive less that of the negative, over all ranks.

    In [-1, 1]; 0 where all values are nought. Source: Kerby 2014, Comprehensive Psychology 3:1.
    """
    from scipy.stats import rankdata

    moved = values[values != 0]
    if not moved.size:
        return 0.0
    ranks = rankdata(np.abs(moved))
    return float((ranks * np.sign(moved)).sum() / ranks.sum())
