"""Permutations within strata: a null distribution that preserves confounders of names and
diagnoses.

Vectors of frequent and rare names differ, and patients with more diseases are mentioned more often.
Therefore names are permuted only among patients with similar name frequency and number of
diagnoses. Unrestricted permutation rejects far too often if frequency correlates with the burden of
disease.

`distances` are between names (rows) and diagnoses (columns); `has` is True where a patient (row)
has a diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from clinveil.core import Doubles, Ints, Mask

SMALLEST = 20  # patients of a stratum
_BLOCK = 256


def differences(distances: Doubles, has: Mask) -> Doubles:
    """Return in-group minus out-group mean per patient, (n_patients,); all must have some but not
    all diagnoses.
    """
    sizes = has.sum(axis=1)
    inside = np.einsum("ij,ij->i", distances, has)
    return np.asarray(inside / sizes - (distances.sum(axis=1) - inside) / (has.shape[1] - sizes))


def pairwise_differences(distances: Doubles, has: Mask) -> Doubles:
    """Return `differences` of every patient's diagnoses (rows) with every name (columns),
    (n_patients, n_names).
    """
    sizes = has.sum(axis=1)[:, None]
    inside = has.astype(np.float64) @ distances.T
    return np.asarray(
        inside / sizes - (distances.sum(axis=1)[None, :] - inside) / (has.shape[1] - sizes)
    )


def strata(sizes: Ints, frequency: Doubles | None, smallest: int = SMALLEST) -> list[Ints]:
    """Return strata of similar number of diagnoses and name frequency, as arrays of rows.

    Adjacent numbers of diagnoses are merged until there are `smallest` patients; each group is then
    split by frequency into parts of at least this size. Without frequencies the groups are not
    split.

    Args:
        sizes: (n,) diagnoses of each patient. frequency: (n,) or None.
    """
    groups = _of_similar_size(sizes, smallest)
    if frequency is None:
        return groups
    ordered = (group[np.argsort(frequency[group], kind="stable")] for group in groups)
    return [
        part for group in ordered for part in np.array_split(group, max(1, len(group) // smallest))
    ]


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
    """Return one permutation within strata, shape (n,): the row that provides each patient's
    name.
    """
    order = np.empty(sum(map(len, parts)), dtype=np.int64)
    for rows in parts:
        order[rows] = rng.permutation(rows)
    return order


@dataclass(frozen=True)
class NamePermutations:
    """`differences` under permutations of names within strata.

    Attributes:
        expected: (n_patients,) each patient's exact mean over all permutations. expected_absolute:
            of its absolute value.
        means: (draws,) mean over patients. absolute: (draws,) mean of the absolute values.
    """

    expected: Doubles
    expected_absolute: Doubles
    means: Doubles
    absolute: Doubles


def permute_names(
    distances: Doubles, has: Mask, parts: Sequence[Ints], draws: int, rng: Generator
) -> NamePermutations:
    """Compute `differences` with names permuted within strata, `draws` times."""
    n = len(distances)
    expected = np.empty(n)
    expected_absolute = np.empty(n)
    means = np.zeros(draws)
    absolute = np.zeros(draws)
    for rows in parts:
        table = pairwise_differences(distances[rows], has[rows])
        expected[rows] = table.mean(axis=1)
        expected_absolute[rows] = np.abs(table).mean(axis=1)
        for start in range(0, draws, _BLOCK):
            block = slice(start, min(start + _BLOCK, draws))
            orders = np.tile(np.arange(len(rows)), (block.stop - start, 1))
            drawn = table[np.arange(len(rows)), rng.permuted(orders, axis=1)]
            means[block] += drawn.sum(axis=1)
            absolute[block] += np.abs(drawn).sum(axis=1)
    return NamePermutations(expected, expected_absolute, means / n, absolute / n)


def name_ranks(
    distances: Doubles, has: Mask, frequency: Doubles | None, smallest: int = SMALLEST
) -> Doubles:
    """Return P values, (n_patients,): the share of names at least as extreme for a patient's
    diagnoses as their own.

    A name's extremeness is its difference's distance from the mean of names with similar frequency,
    in their standard deviations. The smallest P is 1 / n_patients.
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
    """Return each row standardised within the strata of columns; 0 if there is no spread."""
    out = np.zeros_like(table)
    for columns in parts:
        centred = table[:, columns] - table[:, columns].mean(axis=1, keepdims=True)
        spread = centred.std(axis=1, keepdims=True)
        sure = spread > 1e-12 * (1.0 + np.abs(table[:, columns]).max(axis=1, keepdims=True))
        out[:, columns] = np.divide(centred, spread, out=np.zeros_like(centred), where=sure)
    return out
