"""The order of shuffled words and the words behind them, by Markov chain Monte Carlo with word pairs; compiled.

A state is an order of the words within their windows and a reading of each. It is scored by the pairs of words that
follow each other and by what each output tells. Readings are drawn place by place, given both neighbours (Gibbs); an
order is changed by exchanging two neighbouring runs of words within a window (Metropolis), which touches three pairs.
"""

from __future__ import annotations

import numpy as np

from clinveil.attacks.adversaries._ngrams import Pairs
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

_FREEZING, _COLD = 8, 0.2  # sweeps for an order that is likely as a whole, and their heat


@helper
def _after(before: int, word: int, pairs: Pairs) -> float:
    """P(word | word before); of the first word of a note (before: -1) its frequency."""
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
def _at(place: int, order: Ints, word: Ints) -> int:
    return word[order[place]] if 0 <= place < order.size else -1


@helper
def _draw_word(place: int, order: Ints, word: Ints, lattice: tuple, pairs: Pairs, heat: float, sums: Doubles) -> None:  # type: ignore[type-arg]
    """Draw the reading of the word at a place, given its neighbours; where `heat` is 1 add its chances to `sums`."""
    begin, rows, weights, chance = lattice
    left, right, own = _at(place - 1, order, word), _at(place + 1, order, word), order[place]
    low, high, total = begin[own], begin[own + 1], 0.0
    for j in range(low, high):
        linked = _after(left, rows[j], pairs) * _after(rows[j], right, pairs)
        chance[j] = weights[j] * (linked if heat == 1.0 else linked ** (1 / heat))
        total += chance[j]
    if total <= 0:
        return
    wanted, chosen = np.random.random() * total, -1  # noqa: NPY002
    for j in range(low, high):
        wanted -= chance[j]
        if wanted <= 0 and chosen < 0:
            chosen = j
        if heat == 1.0:
            sums[j] += chance[j] / total
    word[own] = rows[chosen if chosen >= 0 else high - 1]


@helper
def _exchange(first: int, last: int, order: Ints, word: Ints, held: Ints, pairs: Pairs, heat: float) -> None:
    """Try to exchange two neighbouring runs of words within [first, last)."""
    if last - first < 2:
        return
    a, c = np.random.randint(first, last), np.random.randint(first, last)  # noqa: NPY002
    a, c = min(a, c), max(a, c) + 1
    if c - a < 2:
        return
    b = np.random.randint(a + 1, c)  # noqa: NPY002
    before, after = _at(a - 1, order, word), _at(c, order, word)
    one, one_end = word[order[a]], word[order[b - 1]]
    two, two_end = word[order[b]], word[order[c - 1]]
    now = _after(before, one, pairs) * _after(one_end, two, pairs) * _after(two_end, after, pairs)
    then = _after(before, two, pairs) * _after(two_end, one, pairs) * _after(one_end, after, pairs)
    if np.random.random() >= (then / max(now, 1e-300)) ** (1 / heat):  # noqa: NPY002
        return
    for i in range(a, b):
        held[i - a] = order[i]
    for i in range(b, c):
        order[a + i - b] = order[i]
    for i in range(b - a):
        order[a + c - b + i] = held[i]


@kernel
def restored(
    begin: Ints, rows: Ints, weights: Doubles, pairs: Pairs, size: int, cooling: int, sweeps: int, seed: int
) -> tuple[Doubles, Doubles]:
    """P(candidate) of each, over the sweeps at heat 1; and of each word its place in the order that is frozen at last.

    Args:
        weights: of each candidate, what its output and its window tell. size: of windows; each place needs a candidate.
    Source: simulated annealing: Kirkpatrick et al. 1983; Gibbs sampling: Geman & Geman 1984.
    """
    np.random.seed(seed)  # noqa: NPY002
    n = begin.size - 1
    order, word, held = np.arange(n), np.empty(n, np.int64), np.empty(n, np.int64)
    sums, places, chance = np.zeros(rows.size), np.zeros(n), np.empty(rows.size)
    for t in range(n):
        best = begin[t]
        for j in range(begin[t], begin[t + 1]):
            if weights[j] * pairs.unigram[rows[j]] > weights[best] * pairs.unigram[rows[best]]:
                best = j
        word[t] = rows[best]
    for sweep in range(cooling + sweeps + _FREEZING):
        heat = 3.0 - 2.0 * sweep / cooling if sweep < cooling else 1.0 if sweep < cooling + sweeps else _COLD
        for place in range(n):
            first = place // size * size
            _draw_word(place, order, word, (begin, rows, weights, chance), pairs, heat, sums)
            for _ in range(4):
                _exchange(first, min(first + size, n), order, word, held, pairs, heat)
    for place in range(n):
        places[order[place]] = place
    return sums / max(sweeps, 1), places
