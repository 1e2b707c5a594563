"""Forward-backward algorithm over the candidate inputs of a note, with word-pair probabilities; compiled.

P(x | w) is the share of an observed pair plus a backoff to the word frequency. The backoff has the same form for all
pairs, so a step costs as much as the number of observed pairs, not the square of the number of candidates.
"""

from __future__ import annotations

import numpy as np

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

Links = tuple[Ints, Ints, Ints, Doubles]
"""Offset of the first link of each position; then the two candidates of each link and the pair's discounted share."""

_TINY = 1e-300


@helper
def _index(row: Ints, wanted: int) -> int:
    """Return the index of a word in a sorted row; -1 if absent."""
    low, high = 0, row.size
    while low < high:
        middle = (low + high) >> 1
        if row[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < row.size and row[low] == wanted else -1


@kernel
def links(begin: Ints, rows: Ints, pairs: Pairs) -> Links:
    """Return the observed pairs between candidates of adjacent positions.

    Args:
        begin: (n + 1,) offset of the first candidate of each position. rows: candidates, sorted within a position.
    """
    n, capacity, size = begin.size - 1, 1024, 0
    left, right, share = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
    starts, column = np.zeros(n + 1, np.int64), np.zeros(pairs.unigram.size, np.int64)
    for t in range(1, n):
        starts[t] = size
        low, high = begin[t], begin[t + 1]
        for j in range(low, high):
            column[rows[j]] = j + 1
        for i in range(begin[t - 1], low):
            first, last = pairs.indptr[rows[i]], pairs.indptr[rows[i] + 1]
            most = min(last - first, high - low)
            if size + most > capacity:
                capacity = 2 * capacity + most
                left = np.append(left, np.empty(capacity - left.size, np.int64))
                right = np.append(right, np.empty(capacity - right.size, np.int64))
                share = np.append(share, np.empty(capacity - share.size))
            if last - first <= 8 * (high - low):  # few successors: look each up among the candidates
                for p in range(first, last):
                    j = column[pairs.indices[p]] - 1
                    if j >= 0:
                        left[size], right[size], share[size] = i, j, pairs.pairs[p]
                        size += 1
            else:
                row = pairs.indices[first:last]
                for j in range(low, high):
                    p = _index(row, rows[j])
                    if p >= 0:
                        left[size], right[size], share[size] = i, j, pairs.pairs[first + p]
                        size += 1
        for j in range(low, high):
            column[rows[j]] = 0
    starts[n] = size
    return starts, left[:size], right[:size], share[:size]


@helper
def _normalize(values: Doubles, low: int, high: int) -> None:
    """Normalize the values of a position to a sum of 1."""
    total = 0.0
    for j in range(low, high):
        total += values[j]
    for j in range(low, high):
        values[j] = max(values[j] / total, _TINY) if total > 0 else 1.0 / (high - low)


@helper
def _forward(begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, linked: Links, forward: Doubles) -> None:
    starts, left, right, share = linked
    for t in range(begin.size - 1):
        low, high, before = begin[t], begin[t + 1], begin[max(t - 1, 0)]
        total = 0.0 if before < low else 1.0
        for i in range(before, low):
            total += forward[i] * pairs.backoff[rows[i]]
        for j in range(low, high):
            forward[j] = total * pairs.unigram[rows[j]]
        for k in range(starts[t], starts[t + 1]):
            forward[right[k]] += forward[left[k]] * share[k]
        for j in range(low, high):
            forward[j] *= weights[j]
        _normalize(forward, low, high)


@helper
def _backward(begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, linked: Links, backward: Doubles) -> None:
    starts, left, right, share = linked
    for t in range(begin.size - 2, 0, -1):
        low, high, before = begin[t], begin[t + 1], begin[t - 1]
        total = 0.0 if low < high else 1.0
        for j in range(low, high):
            total += pairs.unigram[rows[j]] * weights[j] * backward[j]
        for i in range(before, low):
            backward[i] = total * pairs.backoff[rows[i]] if low < high else 1.0
        for k in range(starts[t], starts[t + 1]):
            backward[left[k]] += share[k] * weights[right[k]] * backward[right[k]]
        _normalize(backward, before, low)


@kernel
def marginals(begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, linked: Links) -> Doubles:
    """Return P(candidate | all outputs of the note); a position without candidates breaks the chain.

    Args:
        weights: P(output | candidate). linked: from `links`.
    Source: Baum et al. 1970, Ann. Math. Stat. 41:164.
    """
    forward, backward = np.zeros(rows.size), np.ones(rows.size)
    _forward(begin, rows, weights, pairs, linked, forward)
    _backward(begin, rows, weights, pairs, linked, backward)
    for t in range(begin.size - 1):
        for j in range(begin[t], begin[t + 1]):
            forward[j] *= backward[j]
        _normalize(forward, begin[t], begin[t + 1])
    return forward


def lattice(outputs: Ints, candidates: Candidates) -> tuple[Ints, Ints, Doubles]:
    """Return the offsets (n + 1,), rows and weights of the candidates of a note's outputs."""
    sizes = candidates.starts[outputs + 1] - candidates.starts[outputs]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    indices = np.repeat(candidates.starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
    return begin, candidates.rows[indices], candidates.weights[indices]
