"""Permutations within strata: nulls that keep what is no link between a name and a diagnosis.

A name that occurs often has another kind of vector than a rare one, and who is ill more often is written about more
often. Names are therefore permuted only among patients of similar name frequency and as many diagnoses; permuting them
freely rejects far too often where frequency tracks the burden of disease.

`distances` are those of names (rows) to diagnoses (columns); `has` says which patient (row) has which diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from clinveil.core.types import Doubles, Ints, Mask

SMALLEST = 20  # patients of a stratum
_BLOCK = 256


def differences(distances: Doubles, has: Mask) -> Doubles:
    """In-group mean less out-group mean of each patient, (n_patients,); everybody has some diagnoses and not all."""
    sizes = has.sum(axis=1)
    inside = np.einsum("ij,ij->i", distances, has)
    return np.asarray(inside / sizes - (distances.sum(axis=1) - inside) / (has.shape[1] - sizes))


def pairwise_differences(distances: Doubles, has: Mask) -> Doubles:
    """`differences` of every patient's diagnoses (rows) under every name (columns), (n_patients, n_names)."""
    sizes = has.sum(axis=1)[:, None]
    inside = has.astype(np.float64) @ distances.T
    return np.asarray(inside / sizes - (distances.sum(axis=1)[None, :] - inside) / (has.shape[1] - sizes))


def strata(sizes: Ints, frequency: Doubles | None, smallest: int = SMALLEST) -> list[Ints]:
    """Patients alike in number of diagnoses and name frequency: arrays of rows, every patient in one.

    Neighbouring numbers of diagnoses are joined until there are `smallest` patients, and each such group is cut by
    frequency into parts of at least as many. Without frequencies the groups are not cut.

    Args:
        sizes: (n,) diagnoses of each patient. frequency: (n,) or None.
    """
    groups = _of_similar_size(sizes, smallest)
    if frequency is None:
        return groups
    ordered = (group[np.argsort(frequency[group], kind="stable")] for group in groups)
    return [part for group in ordered for part in np.array_split(group, max(1, len(group) // smallest))]


def _of_similar_size(sizes: Ints, smallest: int) -> list[Ints]:
    groups: list[Ints] = []
    waiting = np.empty(0, dtype=np.int64)
    for size in np.unique(sizes):
        waiting = np.concatenate([waiting, np.flatnonzero(sizes == size)])
        if len(waiting) >= smallest:
            groups.append(waiting)
            waiting = np.empty(0, dtype=np.int64)
    last = [groups.pop()] if groups and len(waiting) else []
    return groups + ([np.concatenate([*last, waiting])] if len(waiting) else [])


def permuted(parts: Sequence[Ints], rng: Generator) -> Ints:
    """One permutation within strata, shape (n,): the row whose name each patient gets."""
    order = np.empty(sum(map(len, parts)), dtype=np.int64)
    for rows in parts:
        order[rows] = rng.permutation(rows)
    return order


@dataclass(frozen=True)
class NamePermutations:
    """`differences` under permutations of names within strata.

    Attributes:
        expected: (n_patients,) each patient's exact mean over all permutations; expected_absolute: of its absolute.
        means: (draws,) mean over patients; absolute: (draws,) mean of the absolute values.
    """

    expected: Doubles
    expected_absolute: Doubles
    means: Doubles
    absolute: Doubles


def permute_names(distances: Doubles, has: Mask, parts: Sequence[Ints], draws: int, rng: Generator) -> NamePermutations:
    """`differences` with names permuted within strata, `draws` times."""
    n = len(distances)
    expected, expected_absolute = np.empty(n), np.empty(n)
    means, absolute = np.zeros(draws), np.zeros(draws)
    for rows in parts:
        table = pairwise_differences(distances[rows], has[rows])
        expected[rows], expected_absolute[rows] = table.mean(axis=1), np.abs(table).mean(axis=1)
        for start in range(0, draws, _BLOCK):
            block = slice(start, min(start + _BLOCK, draws))
            orders = np.tile(np.arange(len(rows)), (block.stop - start, 1))
            drawn = table[np.arange(len(rows)), rng.permuted(orders, axis=1)]
            means[block] += drawn.sum(axis=1)
            absolute[block] += np.abs(drawn).sum(axis=1)
    return NamePermutations(expected, expected_absolute, means / n, absolute / n)


def name_ranks(distances: Doubles, has: Mask, frequency: Doubles | None, smallest: int = SMALLEST) -> Doubles:
    """(n_patients,) P-values: the share of all names that lie as oddly to a patient's diagnoses as their own does.

    A name's oddness is how far its difference lies from the mean of names of similar frequency, in their standard
    deviations. The smallest P is 1 / n_patients.
    """
    n = len(distances)
    parts = strata(np.zeros(n, dtype=np.int64), frequency, smallest)
    p = np.empty(n)
    for start in range(0, n, _BLOCK):
        rows = slice(start, min(start + _BLOCK, n))
        odd = np.abs(_standardised(pairwise_differences(distances, has[rows]), parts))
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
