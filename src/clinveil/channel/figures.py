"""Compute exact distances between rows, and the number of outputs that carry a row's mass.

Being dropped counts as a separate output, shared by all dropped words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from clinveil.core.compiled import kernel
from clinveil.core.types import Doubles, Ints

ROUNDING = 1e-12


def deltas(matrix: csr_matrix, one: Ints, other: Ints, epsilons: Doubles) -> Doubles:
    """Return the least delta for which each pair of rows is (epsilon, delta)-indistinguishable, (n_pairs, n_epsilons).

    It is the larger of sum_y max(0, C(y|x) - e^epsilon C(y|x')) and the same with x and x' exchanged; at epsilon 0 it
    is the total variation distance.

    Args:
        matrix: (n_words + 1, n_words), rows sorted. one, other: (n_pairs,) rows. epsilons: 0 or more.

    Source: Barthe, Olmedo 2013 (hockey-stick divergence); Dwork, Roth 2014, definition 2.4.
    """
    factors = np.exp(np.asarray(epsilons, dtype=np.float64))
    return np.asarray(_deltas(*_parts(matrix, one, other), factors), dtype=np.float64)


def epsilons(matrix: csr_matrix, one: Ints, other: Ints) -> Doubles:
    """Return the largest |ln C(y|x) / C(y|x')| of each pair, (n_pairs,); infinite if only one row has some output."""
    return np.asarray(_epsilons(*_parts(matrix, one, other)), dtype=np.float64)


def _parts(matrix: csr_matrix, one: Ints, other: Ints) -> tuple[Ints, Ints, Doubles, Ints, Ints]:
    pairs = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (one, other))
    return matrix.indptr, matrix.indices, matrix.data, *pairs


def spread(matrix: csr_matrix, eta: float) -> Ints:
    """Return the fewest outputs that carry 1 - eta of each row's mass, (n_words + 1,); 0 for dropped words.

    Raises ValueError unless 0 <= eta < 1.
    """
    if not 0 <= eta < 1:
        raise ValueError("eta must be at least 0 and below 1")
    return np.asarray(_spread(matrix.indptr, matrix.data, 1.0 - eta), dtype=np.int64)


@kernel
def _deltas(
    indptr: Ints, outputs: Ints, chances: Doubles, one: Ints, other: Ints, factors: Doubles
) -> NDArray[np.float64]:
    found = np.zeros((one.size, factors.size))
    forth, back = np.zeros(factors.size), np.zeros(factors.size)
    for pair in range(one.size):
        i, i_end = indptr[one[pair]], indptr[one[pair] + 1]
        j, j_end = indptr[other[pair]], indptr[other[pair] + 1]
        if i == i_end or j == j_end:  # a word is dropped
            found[pair] = 0.0 if i_end - i == j_end - j else 1.0
            continue
        forth[:], back[:] = 0.0, 0.0
        while i < i_end or j < j_end:
            here, there = 0.0, 0.0
            first = j == j_end or (i < i_end and outputs[i] <= outputs[j])
            second = i == i_end or (j < j_end and outputs[j] <= outputs[i])
            if first:
                here = chances[i]
                i += 1
            if second:
                there = chances[j]
                j += 1
            for f in range(factors.size):
                forth[f] += max(0.0, here - factors[f] * there)
                back[f] += max(0.0, there - factors[f] * here)
        for f in range(factors.size):
            found[pair, f] = min(1.0, max(forth[f], back[f]))
    return found


@kernel
def _epsilons(indptr: Ints, outputs: Ints, chances: Doubles, one: Ints, other: Ints) -> NDArray[np.float64]:
    found = np.zeros(one.size)
    for pair in range(one.size):
        start, size = indptr[one[pair]], indptr[one[pair] + 1] - indptr[one[pair]]
        start_other = indptr[other[pair]]
        if size != indptr[other[pair] + 1] - start_other:
            found[pair] = np.inf
            continue
        for k in range(size):
            if outputs[start + k] != outputs[start_other + k]:
                found[pair] = np.inf
                break
            found[pair] = max(found[pair], abs(np.log(chances[start + k] / chances[start_other + k])))
    return found


@kernel
def _spread(indptr: Ints, chances: Doubles, mass: float) -> NDArray[np.int64]:
    sizes = np.zeros(indptr.size - 1, dtype=np.int64)
    for row in range(sizes.size):
        ordered = np.sort(chances[indptr[row] : indptr[row + 1]])
        held, k = 0.0, 0
        while k < ordered.size and held < mass - ROUNDING:
            k += 1
            held += ordered[ordered.size - k]
        sizes[row] = k
    return sizes
