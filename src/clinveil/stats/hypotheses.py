"""P-values: by permutation, of overlaps, and of signed ranks, and adjusted for many questions at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from clinveil.core.types import Doubles


def permutation_p(observed: float, permuted: ArrayLike) -> float:
    """One-sided P that a permuted statistic is at least as large as the observed one: (count + 1) / (n + 1).

    Never 0, for the observed order is one of the permutations. For "as small", negate both.
    Raises ValueError for NaN or no permutation.
    Source: Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39.
    """
    null = np.asarray(permuted, dtype=np.float64)
    if not null.size or np.isnan(null).any() or np.isnan(observed):
        raise ValueError("a permutation test needs permutations, and numbers")
    return float((np.count_nonzero(null >= observed) + 1) / (null.size + 1))


def _p_values(p: ArrayLike) -> Doubles:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("P-values lie in [0, 1]")
    return values


def holm(p: ArrayLike) -> Doubles:
    """P-values adjusted so that the chance of any false alarm stays at the level; same order, shape (n,).

    Raises ValueError for values outside [0, 1].
    Source: Holm 1979, Scand. J. Stat. 6:65.
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    adjusted = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    return np.asarray(np.minimum(adjusted, 1.0)[np.argsort(order)])


def smallest_holm_p(family: int, least: float) -> float:
    """The least P that Holm can give any of `family` questions whose own P is never below `least`.

    Of n permutations the least is 1 / (n + 1). Raises ValueError for no question, or a P outside [0, 1].
    """
    if family < 1 or not 0 <= least <= 1:
        raise ValueError(f"{family} questions with a least P of {least:g} cannot be")
    return min(1.0, family * least)


def benjamini_hochberg(p: ArrayLike) -> Doubles:
    """P-values adjusted so that the expected share of false alarms stays at the level; same order, shape (n,).

    Raises ValueError for values outside [0, 1].
    Source: Benjamini & Hochberg 1995, J. R. Stat. Soc. B 57:289.
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * values.size / np.arange(1, values.size + 1)
    adjusted = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.asarray(np.minimum(adjusted, 1.0)[np.argsort(order)])


def hypergeometric_tail(k: int, population: int, marked: int, drawn: int) -> float:
    """P of at least k marked ones among `drawn` of a population, without replacement (Fisher's one-sided test).

    Raises ValueError for counts that cannot be.
    Source: Fisher 1935, J. R. Stat. Soc. 98:39.
    """
    from scipy.stats import hypergeom  # heavy: half a second at import

    if not (0 <= marked <= population and 0 <= drawn <= population and k >= 0):
        raise ValueError(f"{marked} marked and {drawn} drawn of {population} cannot be")
    return float(hypergeom.sf(k - 1, population, marked, drawn))


def wilcoxon_p(values: Doubles) -> float:
    """Two-sided P of Wilcoxon's signed-rank test that values lie around zero; 1 where all are zero.

    Zeros are left out. Source: Wilcoxon 1945, Biometrics Bulletin 1:80.
    """
    from scipy.stats import wilcoxon

    moved = values[values != 0]
    return float(wilcoxon(moved).pvalue) if moved.size else 1.0


def rank_biserial(values: Doubles) -> float:
    """The matched-pairs rank-biserial correlation: rank sum of the positive less that of the negative, over all ranks.

    In [-1, 1]; 0 where all values are zero. Source: Kerby 2014, Comprehensive Psychology 3:1.
    """
    from scipy.stats import rankdata

    moved = values[values != 0]
    if not moved.size:
        return 0.0
    ranks = rankdata(np.abs(moved))
    return float((ranks * np.sign(moved)).sum() / ranks.sum())
