"""Nulls that keep what is no link: names permuted over patients who are alike in it.

A name that occurs often has another kind of vector than a rare one, and who is ill more often is written about more
often. Names are therefore permuted only among patients of like name frequency and as many diagnoses; permuting them
freely rejects far too often where frequency tracks the burden of disease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.vectors.groups import crossed

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
SMALLEST = 20  # patients of a stratum
_BLOCK = 256


def strata(sizes: Ints, frequency: Doubles | None, smallest: int = SMALLEST) -> list[Ints]:
    """Patients alike in number of diagnoses and name frequency; every patient in one stratum.

    Neighbouring numbers of diagnoses are joined until there are `smallest` patients, and each such group is cut by
    frequency into parts of at least so many. Without frequencies the groups are not cut.

    Args: sizes: (n,) diagnoses of each patient; frequency: (n,) or None.
    Returns: arrays of rows.
    """
    parts: list[Ints] = []
    for group in _of_like_size(sizes, smallest):
        if frequency is None:
            parts.append(group)
            continue
        by_frequency = group[np.argsort(frequency[group], kind="stable")]
        parts += np.array_split(by_frequency, max(1, len(group) // smallest))
    return parts


def _of_like_size(sizes: Ints, smallest: int) -> list[Ints]:
    groups: list[Ints] = []
    waiting = np.empty(0, dtype=np.int64)
    for size in np.unique(sizes):
        waiting = np.concatenate([waiting, np.flatnonzero(sizes == size)])
        if len(waiting) >= smallest:
            groups.append(waiting)
            waiting = np.empty(0, dtype=np.int64)
    if len(waiting) and groups:
        groups[-1] = np.concatenate([groups[-1], waiting])
    elif len(waiting):
        groups.append(waiting)
    return groups


def permuted(parts: Sequence[Ints], rng: Generator) -> Ints:
    """One permutation within strata, shape (n,): the row whose name each patient gets."""
    order = np.empty(sum(map(len, parts)), dtype=np.int64)
    for rows in parts:
        order[rows] = rng.permutation(rows)
    return order


@dataclass(frozen=True)
class NamePermutations:
    """in - out under permutations of names within strata.

    Attributes:
        expected: (n_patients,) each patient's exact mean over all permutations; expected_absolute: that of |in - out|.
        means: (draws,) mean over patients of in - out; absolute: (draws,) of |in - out|.
    """

    expected: Doubles
    expected_absolute: Doubles
    means: Doubles
    absolute: Doubles


def permute_names(far: Doubles, has: Mask, parts: Sequence[Ints], draws: int, rng: Generator) -> NamePermutations:
    """in - out with names permuted within strata, `draws` times.

    Args: far, has: (n_patients, n_codes); parts: strata of the patients.
    """
    n = len(far)
    expected, expected_absolute = np.empty(n), np.empty(n)
    means, absolute = np.zeros(draws), np.zeros(draws)
    for rows in parts:
        table = crossed(far[rows], has[rows])
        expected[rows], expected_absolute[rows] = table.mean(axis=1), np.abs(table).mean(axis=1)
        for at in range(0, draws, _BLOCK):
            block = slice(at, min(at + _BLOCK, draws))
            orders = np.tile(np.arange(len(rows)), (block.stop - at, 1))
            drawn = table[np.arange(len(rows)), rng.permuted(orders, axis=1)]
            means[block] += drawn.sum(axis=1)
            absolute[block] += np.abs(drawn).sum(axis=1)
    return NamePermutations(expected, expected_absolute, means / n, absolute / n)


def name_ranks(far: Doubles, has: Mask, frequency: Doubles | None, smallest: int = SMALLEST) -> Doubles:
    """For each patient the share of all names that lie as oddly to his diagnoses as his own does: a P-value.

    A name's oddness is how far its in - out lies from the mean of names of like frequency, in their standard
    deviations. The smallest P is 1 / n_patients.

    Args: far, has: (n_patients, n_codes).
    Returns: (n_patients,).
    """
    n = len(far)
    parts = strata(np.zeros(n, dtype=np.int64), frequency, smallest)
    p = np.empty(n)
    for at in range(0, n, _BLOCK):
        rows = slice(at, min(at + _BLOCK, n))
        odd = np.abs(_standardised(crossed(far, has[rows]), parts))
        own = odd[np.arange(len(odd)), np.arange(rows.start, rows.stop)]
        p[rows] = (odd >= own[:, None] * (1 - 1e-9)).mean(axis=1)
    return p


def _standardised(table: Doubles, parts: Sequence[Ints]) -> Doubles:
    """Each row's columns less the mean of their stratum, in its standard deviations; 0 where there is no spread."""
    out = np.zeros_like(table)
    for columns in parts:
        centred = table[:, columns] - table[:, columns].mean(axis=1, keepdims=True)
        spread = centred.std(axis=1, keepdims=True)
        sure = spread > 1e-12 * (1.0 + np.abs(table[:, columns]).max(axis=1, keepdims=True))
        out[:, columns] = np.divide(centred, spread, out=np.zeros_like(centred), where=sure)
    return out
