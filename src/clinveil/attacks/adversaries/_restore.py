"""Joint recovery of the order of shuffled words and of the source words, by Markov chain Monte Carlo; compiled.

A state is an order of the words within their windows and a source word for each. Its score is the product of the
word-pair probabilities and of the output probabilities. Source words are drawn one by one, given both neighbours
(Gibbs). The order changes by exchanging two adjacent runs of words within a window (Metropolis), which affects three
pairs.
"""

from __future__ import annotations

import numpy as np

from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

_FINAL_SWEEPS, _FINAL_TEMPERATURE = (
    8,
    0.2,
)  # final sweeps that find an order with high probability, and their temperature


@helper
def _after(before: int, word: int, pairs: Pairs) -> float:
    """Return P(word | previous word); for the first word of a note (before: -1), its frequency."""
    if word < 0:
        return 1.0
    if before < 0:
        return pairs.unigram[word]
    low, end = pairs.indptr[before], pairs.indptr[before + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if pairs.indices[middle] < word:
            low = middle + 1
        else:
            high = middle
    seen = pairs.pairs[low] if low < end and pairs.indices[low] == word else 0.0
    return seen + pairs.backoff[before] * pairs.unigram[word]


@helper
def _word_at(position: int, order: Ints, word: Ints) -> int:
    return word[order[position]] if 0 <= position < order.size else -1


@helper
def _draw_word(
    position: int,
    order: Ints,
    word: Ints,
    lattice: tuple[Ints, Ints, Doubles, Doubles],
    pairs: Pairs,
    temperature: float,
    sums: Doubles,
) -> None:
    """Draw the source word at a position, given its neighbours; at temperature 1, add its probabilities to `sums`."""
    begin, rows, weights, chance = lattice
    left, right, own = _word_at(position - 1, order, word), _word_at(position + 1, order, word), order[position]
    low, high, total = begin[own], begin[own + 1], 0.0
    for j in range(low, high):
        linked = _after(left, rows[j], pairs) * _after(rows[j], right, pairs)
        chance[j] = weights[j] * (linked if temperature == 1.0 else linked ** (1 / temperature))
        total += chance[j]
    if total <= 0:
        return
    wanted, chosen = np.random.random() * total, -1  # noqa: NPY002
    for j in range(low, high):
        wanted -= chance[j]
        if wanted <= 0 and chosen < 0:
            chosen = j
        if temperature == 1.0:
            sums[j] += chance[j] / total
    word[own] = rows[chosen if chosen >= 0 else high - 1]


@helper
def _exchange(first: int, last: int, order: Ints, word: Ints, buffer: Ints, pairs: Pairs, temperature: float) -> None:
    """Try to exchange two adjacent runs of words within [first, last)."""
    if last - first < 2:
        return
    a, c = np.random.randint(first, last), np.random.randint(first, last)  # noqa: NPY002
    a, c = min(a, c), max(a, c) + 1
    if c - a < 2:
        return
    b = np.random.randint(a + 1, c)  # noqa: NPY002
    before, after = _word_at(a - 1, order, word), _word_at(c, order, word)
    one, one_end = word[order[a]], word[order[b - 1]]
    two, two_end = word[order[b]], word[order[c - 1]]
    now = _after(before, one, pairs) * _after(one_end, two, pairs) * _after(two_end, after, pairs)
    then = _after(before, two, pairs) * _after(two_end, one, pairs) * _after(one_end, after, pairs)
    if np.random.random() >= (then / max(now, 1e-300)) ** (1 / temperature):  # noqa: NPY002
        return
    for i in range(a, b):
        buffer[i - a] = order[i]
    for i in range(b, c):
        order[a + i - b] = order[i]
    for i in range(b - a):
        order[a + c - b + i] = buffer[i]


@kernel
def restored(
    begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, size: int, cooling: int, sweeps: int, seed: int
) -> tuple[Doubles, Doubles]:
    """Return P(candidate), averaged over the sweeps at temperature 1, and the final position of each word.

    Args:
        weights: of each candidate, from its output and its window. size: of windows; each position needs a candidate.
    Source: simulated annealing: Kirkpatrick et al. 1983; Gibbs sampling: Geman & Geman 1984.
    """
    np.random.seed(seed)  # noqa: NPY002
    n = begin.size - 1
    order, word, buffer = np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    sums, places, chance = np.zeros(rows.size), np.zeros(n), np.empty(rows.size)
    for t in range(n):
        best = begin[t]
        for j in range(begin[t], begin[t + 1]):
            if weights[j] * pairs.unigram[rows[j]] > weights[best] * pairs.unigram[rows[best]]:
                best = j
        word[t] = rows[best]
    for sweep in range(cooling + sweeps + _FINAL_SWEEPS):
        temperature = (
            3.0 - 2.0 * sweep / cooling if sweep < cooling else 1.0 if sweep < cooling + sweeps else _FINAL_TEMPERATURE
        )
        for position in range(n):
            first = position // size * size
            _draw_word(position, order, word, (begin, rows, weights, chance), pairs, temperature, sums)
            for _ in range(4):
                _exchange(first, min(first + size, n), order, word, buffer, pairs, temperature)
    for position in range(n):
        places[order[position]] = position
    return sums / max(sweeps, 1), places
