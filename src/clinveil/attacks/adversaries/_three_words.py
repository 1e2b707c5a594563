"""Forward-backward algorithm with word triples, over the few candidates that word pairs leave; compiled.

A state is the words at two positions. P(x | v, w) is the share of an observed triple plus a backoff to P(x | w), which
is the same for all v: a step costs as much as the number of candidate pairs and observed triples.
"""

from __future__ import annotations

import numpy as np

from clinveil.attacks.adversaries._ngrams import Pairs, Triples
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints


@helper
def _index(row: Ints, low: int, high: int, wanted: int) -> int:
    end = high
    while low < high:
        middle = (low + high) >> 1
        if row[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and row[low] == wanted else -1


@helper
def _normalize(values: Doubles, low: int, high: int) -> None:
    total = 0.0
    for i in range(low, high):
        total += values[i]
    for i in range(low, high):
        values[i] = values[i] / total if total > 0 else 1.0 / (high - low)


@helper
def _pairs_between(t: int, begin: Ints, cells: Ints, rows: Ints, pairs: Pairs, number: Ints, chance: Doubles) -> None:
    """Store P(second | first) of each candidate pair at t - 1 and t, and its index among observed pairs (or -1)."""
    width = begin[t + 1] - begin[t]
    for a in range(begin[t - 1], begin[t]):
        low, high = pairs.indptr[rows[a]], pairs.indptr[rows[a] + 1]
        for b in range(begin[t], begin[t + 1]):
            cell, p = cells[t] + (a - begin[t - 1]) * width + b - begin[t], _index(pairs.indices, low, high, rows[b])
            number[cell] = p
            chance[cell] = pairs.backoff[rows[a]] * pairs.unigram[rows[b]] + (pairs.pairs[p] if p >= 0 else 0.0)


@helper
def _forward(
    t: int,
    begin: Ints,
    cells: Ints,
    weights: Doubles,
    third: Triples,
    at: Ints,
    number: Ints,
    two: Doubles,
    alpha: Doubles,
) -> None:
    """Compute P(words at t - 1 and t, outputs up to t) from t - 2 and t - 1; `at`: candidates at t by word."""
    first, low, high, end = begin[t - 2], begin[t - 1], begin[t], begin[t + 1]
    for b in range(low, high):
        left = 0.0
        for a in range(first, low):
            cell = cells[t - 1] + (a - first) * (high - low) + b - low
            p = number[cell]
            left += alpha[cell] * (third.backoff[p] if p >= 0 else 1.0)
            for k in range(third.indptr[p] if p >= 0 else 0, third.indptr[p + 1] if p >= 0 else 0):
                c = at[third.indices[k]] - 1
                if c >= 0:
                    alpha[cells[t] + (b - low) * (end - high) + c - high] += alpha[cell] * third.triples[k]
        for c in range(high, end):
            cell = cells[t] + (b - low) * (end - high) + c - high
            alpha[cell] = (alpha[cell] + left * two[cell]) * weights[c]
    _normalize(alpha, cells[t], cells[t + 1])


@helper
def _backward(
    t: int,
    begin: Ints,
    cells: Ints,
    weights: Doubles,
    third: Triples,
    at: Ints,
    number: Ints,
    two: Doubles,
    beta: Doubles,
) -> None:
    """Compute P(outputs after t | words at t - 1 and t) from t and t + 1."""
    first, low, high, end = begin[t - 1], begin[t], begin[t + 1], begin[t + 2]
    for b in range(low, high):
        ahead = 0.0
        for c in range(high, end):
            cell = cells[t + 1] + (b - low) * (end - high) + c - high
            ahead += two[cell] * weights[c] * beta[cell]
        for a in range(first, low):
            cell = cells[t] + (a - first) * (high - low) + b - low
            p = number[cell]
            beta[cell] = ahead * (third.backoff[p] if p >= 0 else 1.0)
            for k in range(third.indptr[p] if p >= 0 else 0, third.indptr[p + 1] if p >= 0 else 0):
                c = at[third.indices[k]] - 1
                if c >= 0:
                    after = cells[t + 1] + (b - low) * (end - high) + c - high
                    beta[cell] += third.triples[k] * weights[c] * beta[after]
    _normalize(beta, cells[t], cells[t + 1])


@helper
def _enter(at: Ints, rows: Ints, low: int, high: int, there: int) -> None:
    """Record the index of some candidates (there: 1), or clear it (0)."""
    for c in range(low, high):
        at[rows[c]] = (c + 1) * there


@helper
def _collect(begin: Ints, cells: Ints, alpha: Doubles, beta: Doubles, found: Doubles) -> None:
    """Sum the pairs of words for each candidate."""
    for t in range(1, begin.size - 1):
        width = begin[t + 1] - begin[t]
        for cell in range(cells[t], cells[t + 1]):
            mass = alpha[cell] * beta[cell]
            found[begin[t] + (cell - cells[t]) % width] += mass
            if t == 1:
                found[(cell - cells[t]) // width] += mass


@kernel
def by_three(begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, third: Triples) -> Doubles:
    """Return P(candidate | all outputs) for at least two positions, each of which has a candidate.

    Args:
        begin: (n + 1,) offset of the first candidate of each position. weights: P(output | candidate).
    Source: Baum et al. 1970, with pairs of words as states.
    """
    n = begin.size - 1
    cells, at = np.zeros(n + 1, np.int64), np.zeros(pairs.unigram.size, np.int64)
    for t in range(1, n):
        cells[t + 1] = cells[t] + (begin[t] - begin[t - 1]) * (begin[t + 1] - begin[t])
    number, two = np.empty(cells[n], np.int64), np.empty(cells[n])
    alpha, beta, found = np.zeros(cells[n]), np.ones(cells[n]), np.zeros(rows.size)
    for t in range(1, n):
        _pairs_between(t, begin, cells, rows, pairs, number, two)
    for cell in range(cells[2] if n > 1 else 0):
        a, b = cell // (begin[2] - begin[1]), begin[1] + cell % (begin[2] - begin[1])
        alpha[cell] = pairs.unigram[rows[a]] * weights[a] * two[cell] * weights[b]
    for t in range(2, n):
        _enter(at, rows, begin[t], begin[t + 1], 1)
        _forward(t, begin, cells, weights, third, at, number, two, alpha)
        _enter(at, rows, begin[t], begin[t + 1], 0)
    for t in range(n - 2, 0, -1):
        _enter(at, rows, begin[t + 1], begin[t + 2], 1)
        _backward(t, begin, cells, weights, third, at, number, two, beta)
        _enter(at, rows, begin[t + 1], begin[t + 2], 0)
    _collect(begin, cells, alpha, beta, found)
    for t in range(n):
        _normalize(found, begin[t], begin[t + 1])
    return found
