"""P values of permutation, overlap and signed-rank tests, and adjustment for multiple testing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from clinveil.core import Doubles


def permutation_p(observed: float, permuted: ArrayLike) -> float:
    """Return the one-sided P that a permuted statistic is at least as large as the observed one:
    (count + 1) / (n + 1).

    P is never 0, because the observed order is one of the permutations. For the other side, negate
    both arguments. Raises ValueError for NaN or no permutation.
    Source: Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39.
    """
    null = np.asarray(permuted, dtype=np.float64)
    if not null.size or np.isnan(null).any() or np.isnan(observed):
        raise ValueError("a permutation test needs at least one permutation and no NaN")
    return float((np.count_nonzero(null >= observed) + 1) / (null.size + 1))


def holm(p: ArrayLike) -> Doubles:
    """Return P values adjusted to control the family-wise error rate; same order, shape (n,).

    Raises ValueError for values outside [0, 1].
    Source: Holm 1979, Scand. J. Stat. 6:65.
    """
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("P values must be one-dimensional and in [0, 1]")
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    return np.asarray(np.minimum(adjusted, 1.0)[np.argsort(order)])


def benjamini_hochberg(p: ArrayLike) -> Doubles:
    """Return P values adjusted to control the false discovery rate; same order, shape (n,).

    Raises ValueError for values outside [0, 1].
    Source: Benjamini & Hochberg 1995, J. R. Stat. Soc. B 57:289.
    """
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(np.asarray(p, dtype=np.float64)))


def hypergeometric_tail(k: int, population: int, marked: int, drawn: int) -> float:
    """Return P of at least k marked ones among `drawn` of a population, without replacement
    (Fisher's one-sided test).

    Raises ValueError for counts that cannot be.
    Source: Fisher 1935, J. R. Stat. Soc. 98:39.
    """
    from scipy.stats import hypergeom  # heavy: half a second at import

    if not (0 <= marked <= population and 0 <= drawn <= population and k >= 0):
        raise ValueError(f"invalid counts: {marked} marked and {drawn} drawn of {population}")
    return float(hypergeom.sf(k - 1, population, marked, drawn))


def wilcoxon_p(values: Doubles) -> float:
    """Return the two-sided P of Wilcoxon's signed-rank test that values are symmetric around zero;
    1 if all are zero.

    Zeros are excluded. Source: Wilcoxon 1945, Biometrics Bulletin 1:80.
    """
    from scipy.stats import wilcoxon

    nonzero = values[values != 0]
    return float(wilcoxon(nonzero).pvalue) if nonzero.size else 1.0


def rank_biserial(values: Doubles) -> float:
    """Return the matched-pairs rank-biserial correlation: (positive - negative rank sum) / total
    rank sum.

    It is in [-1, 1]; 0 if all values are zero. Source: Kerby 2014, Comprehensive Psychology 3:1.
    """
    from scipy.stats import rankdata

    nonzero = values[values != 0]
    if not nonzero.size:
        return 0.0
    ranks = rankdata(np.abs(nonzero))
    return float((ranks * np.sign(nonzero)).sum() / ranks.sum())
