"""All words of a note weighed at once: forward-backward over the inputs of its outputs, with word pairs; compiled.

P(x | w) is a seen pair's share or a part of the word's own frequency. The second has the same form for all pairs, so
that a step costs as much as there are seen pairs, not the square of the candidates.
"""

from __future__ import annotations

import numpy as np

from clinveil.attacks.adversaries._candidates import Candidates
from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

Links = tuple[Ints, Ints, Ints, Doubles]
"""Of each place its first link, and of each link the candidates at both ends and the pair's discounted share."""

_TINY = 1e-300


@helper
def _found(row: Ints, wanted: int) -> int:
    """The place of a word in a sorted row; -1 where it is not."""
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
    """The seen pairs between candidates of neighbouring places.

    Args:
        begin: (n + 1,) of each place its first candidate. rows: the candidates, in order within a place.
    """
    n, capacity, size = begin.size - 1, 1024, 0
    left, right, share = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity)
    starts, where = np.zeros(n + 1, np.int64), np.zeros(pairs.unigram.size, np.int64)
    for t in range(1, n):
        starts[t] = size
        low, high = begin[t], begin[t + 1]
        for j in range(low, high):
            where[rows[j]] = j + 1
        for i in range(begin[t - 1], low):
            first, last = pairs.indptr[rows[i]], pairs.indptr[rows[i] + 1]
            most = min(last - first, high - low)
            if size + most > capacity:
                capacity = 2 * capacity + most
                left = np.append(left, np.empty(capacity - left.size, np.int64))
                right = np.append(right, np.empty(capacity - right.size, np.int64))
                share = np.append(share, np.empty(capacity - share.size))
            if last - first <= 8 * (high - low):  # few follow: look each up among the candidates
                for p in range(first, last):
                    j = where[pairs.indices[p]] - 1
                    if j >= 0:
                        left[size], right[size], share[size] = i, j, pairs.pairs[p]
                        size += 1
            else:
                row = pairs.indices[first:last]
                for j in range(low, high):
                    p = _found(row, rows[j])
                    if p >= 0:
                        left[size], right[size], share[size] = i, j, pairs.pairs[first + p]
                        size += 1
        for j in range(low, high):
            where[rows[j]] = 0
    starts[n] = size
    return starts, left[:size], right[:size], share[:size]


@helper
def _to_one(values: Doubles, low: int, high: int) -> None:
    """Bring the values of a place to a sum of 1."""
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
        own = 0.0 if before < low else 1.0
        for i in range(before, low):
            own += forward[i] * pairs.backoff[rows[i]]
        for j in range(low, high):
            forward[j] = own * pairs.unigram[rows[j]]
        for k in range(starts[t], starts[t + 1]):
            forward[right[k]] += forward[left[k]] * share[k]
        for j in range(low, high):
            forward[j] *= weights[j]
        _to_one(forward, low, high)


@helper
def _backward(begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, linked: Links, backward: Doubles) -> None:
    starts, left, right, share = linked
    for t in range(begin.size - 2, 0, -1):
        low, high, before = begin[t], begin[t + 1], begin[t - 1]
        own = 0.0 if low < high else 1.0
        for j in range(low, high):
            own += pairs.unigram[rows[j]] * weights[j] * backward[j]
        for i in range(before, low):
            backward[i] = own * pairs.backoff[rows[i]] if low < high else 1.0
        for k in range(starts[t], starts[t + 1]):
            backward[left[k]] += share[k] * weights[right[k]] * backward[right[k]]
        _to_one(backward, before, low)


@kernel
def marginals(begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, linked: Links) -> Doubles:
    """P(candidate | all outputs of the note) of each candidate; a place without any breaks the chain.

    Args:
        weights: of each candidate, what its own output tells. linked: of `links`.
    Source: Baum et al. 1970, Ann. Math. Stat. 41:164.
    """
    forward, backward = np.zeros(rows.size), np.ones(rows.size)
    _forward(begin, rows, weights, pairs, linked, forward)
    _backward(begin, rows, weights, pairs, linked, backward)
    for t in range(begin.size - 1):
        for j in range(begin[t], begin[t + 1]):
            forward[j] *= backward[j]
        _to_one(forward, begin[t], begin[t + 1])
    return forward


def lattice(outputs: Ints, held: Candidates) -> tuple[Ints, Ints, Doubles]:
    """Of a note's outputs: of each place its first candidate, (n + 1,), the candidates' rows, and their weights."""
    sizes = held.starts[outputs + 1] - held.starts[outputs]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.repeat(held.starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
    return begin, held.rows[places], held.weights[places]
