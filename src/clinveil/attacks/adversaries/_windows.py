"""Words of the same shuffled window: their association (mean field), and their order (Monte Carlo); compiled.

For each candidate, the log ratio of observed to expected co-occurrence with every other word of the window is summed.
Each word is weighed by its current probability. Log ratios of small counts shrink towards 0.

A state of `restored` is an order of the words within their windows and a source word for each. Its score is the product
of the word-pair probabilities and of the output probabilities. Source words are drawn one by one, given both neighbours
(Gibbs). The order changes by exchanging two adjacent runs of words within a window (Metropolis), which affects three
pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from clinveil.attacks.adversaries._candidates import Lattice
from clinveil.attacks.adversaries._sequence import Pairs
from clinveil.channel.policy import Policy
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

PRIOR_PAIRS = 0.5  # prior co-occurrences of each pair, distributed as by chance
MOST_TOGETHER = 30
SENTENCE = 16  # words; used where sentences are shuffled, because their boundaries are not visible
USED = 8  # most probable candidates of a neighbour that are used
MIN_PROBABILITY = 0.01  # minimum probability of such a candidate
_ROUNDS = 3
_FINAL_SWEEPS, _FINAL_TEMPERATURE = 8, 0.2  # sweeps that find an order with high probability


class WindowCounts(NamedTuple):
    """How often words occur in the same window.

    Attributes:
        shares: (n_words,) share of each word. times: total number of pairs. indptr, indices, ratios: for observed
            pairs, the logarithm of observed to expected frequency.
    """

    shares: Doubles
    times: float
    indptr: Ints
    indices: Ints
    ratios: Doubles


def width(policy: Policy) -> int:
    """Return the window size in words, as far as an attacker knows it."""
    if policy.shuffle == "note":
        return MOST_TOGETHER
    return min(policy.window, MOST_TOGETHER) if policy.shuffle == "window" else SENTENCE


def reordered(note: Ints, policy: Policy, rng: Generator) -> Ints:
    """Return a permutation of a note's words like that of a release; sentences are treated as windows."""
    size = note.size if policy.shuffle == "note" else width(policy) if policy.shuffle != "window" else policy.window
    starts = range(0, note.size, max(size, 1))
    return np.concatenate([np.zeros(0, np.int64), *(s + rng.permutation(min(size, note.size - s)) for s in starts)])


def count_windows(notes: Sequence[Ints], n_words: int, size: int) -> WindowCounts:
    """Count co-occurrences in windows of notes in released order."""
    parts = [note[at : at + size] for note in notes for at in range(0, note.size, size)]
    window, flat = np.repeat(np.arange(len(parts)), [part.size for part in parts]), np.concatenate([*parts, [n_words]])
    in_vocabulary = flat[:-1] < n_words
    entries = (np.ones(in_vocabulary.sum()), (window[in_vocabulary], flat[:-1][in_vocabulary]))
    table = csr_matrix(entries, shape=(len(parts), n_words))
    both = csr_matrix(table.T @ table)
    single = np.asarray(table.sum(axis=0)).ravel()
    both.setdiag(both.diagonal() - single)
    both.eliminate_zeros()
    both.sort_indices()
    times, shares = max(float(both.sum()), 1.0), single / max(single.sum(), 1.0)
    before = np.repeat(np.arange(n_words), np.diff(both.indptr))
    expected = times * shares[before] * shares[both.indices]
    ratios = np.log((both.data + PRIOR_PAIRS) / (expected + PRIOR_PAIRS))
    return WindowCounts(shares, times, both.indptr.astype(np.int64), both.indices.astype(np.int64), ratios)


@helper
def _find(rows: Ints, low: int, high: int, wanted: int) -> int:
    """Return the index of a word among the sorted rows [low, high); -1 if absent."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and rows[low] == wanted else -1


@helper
def _unseen(x: int, w: int, counts: WindowCounts) -> float:
    """Return the log ratio of an unobserved pair, from its expected frequency."""
    return -np.log(1.0 + counts.times * counts.shares[x] * counts.shares[w] / PRIOR_PAIRS)


@helper
def _ratio(x: int, w: int, counts: WindowCounts) -> float:
    place = _find(counts.indices, counts.indptr[w], counts.indptr[w + 1], x)
    return counts.ratios[place] if place >= 0 else _unseen(x, w, counts)


@kernel
def _likeliest(begin: Ints, probabilities: Doubles) -> Ints:
    """Return the most probable candidates of each position, (n, USED); -1 where fewer are above the minimum."""
    likely = np.full((begin.size - 1, USED), -1)
    for t in range(begin.size - 1):
        for k in range(min(USED, begin[t + 1] - begin[t])):
            best = -1
            for j in range(begin[t], begin[t + 1]):
                if (best < 0 or probabilities[j] > probabilities[best]) and (k == 0 or not (likely[t, :k] == j).any()):
                    best = j
            if probabilities[best] > MIN_PROBABILITY:
                likely[t, k] = best
    return likely


@helper
def _gather(likely: Ints, rows: Ints, probabilities: Doubles, weight: Doubles, words: Ints) -> int:
    """Store the words of a window in `words` with their weights, and return their number."""
    n_used = 0
    for t in range(likely.shape[0]):
        for k in range(USED):
            j = likely[t, k]
            if j >= 0:
                if weight[rows[j]] == 0:
                    words[n_used] = rows[j]
                    n_used += 1
                weight[rows[j]] += probabilities[j]
    return n_used


@helper
def _add_word(
    w: int,
    weight: float,
    candidates: Ints,
    counts: WindowCounts,
    evidence: Doubles,
    seen: Ints,
    of: Ints,
    sums: Doubles,
) -> None:
    """Add the log ratios of one word to each candidate of its window, once per word."""
    for p in range(counts.indptr[w], counts.indptr[w + 1]):
        evidence[counts.indices[p]], seen[counts.indices[p]] = counts.ratios[p], w
    for i in range(candidates.size):
        x = candidates[i]
        if of[x] != w:
            of[x] = w
            sums[x] += weight * (evidence[x] if seen[x] == w else _unseen(x, w, counts))


@helper
def _own_evidence(x: int, own: Ints, rows: Ints, probabilities: Doubles, counts: WindowCounts) -> float:
    """Return the contribution of a position's own candidates to one of them."""
    evidence_of = 0.0
    for k in range(USED):
        if own[k] >= 0:
            evidence_of += probabilities[own[k]] * _ratio(x, rows[own[k]], counts)
    return evidence_of


@kernel
def _evidence(begin: Ints, rows: Ints, probabilities: Doubles, counts: WindowCounts, size: int) -> Doubles:
    """Return the summed log ratios of each candidate with the other words of its window.

    The sum over the window is computed once per distinct word; the contribution of the position itself is subtracted.
    """
    n, n_words, likely, evidence_of = (
        begin.size - 1,
        counts.shares.size,
        _likeliest(begin, probabilities),
        np.zeros(rows.size),
    )
    evidence, seen, of = np.zeros(n_words), np.full(n_words, -1), np.full(n_words, -1)
    words, weight, sums = np.empty(n_words, np.int64), np.zeros(n_words), np.zeros(n_words)
    for first in range(0, n, size):
        last = min(first + size, n)
        candidates = rows[begin[first] : begin[last]]
        n_used = _gather(likely[first:last], rows, probabilities, weight, words)
        for i in range(n_used):
            _add_word(words[i], weight[words[i]], candidates, counts, evidence, seen, of, sums)
        for t in range(first, last):
            for j in range(begin[t], begin[t + 1]):
                evidence_of[j] = sums[rows[j]] - _own_evidence(rows[j], likely[t], rows, probabilities, counts)
        weight[words[:n_used]] = 0
        sums[candidates], of[candidates] = 0, -1
    return evidence_of


def by_window(there: Lattice, alone: Doubles, counts: WindowCounts, size: int, trust: float) -> Doubles:
    """Return a factor for each candidate from the other words of its window: mean field, a few rounds.

    Args:
        alone: context-free probability of each candidate. trust: weight of the log ratios, because neighbours are not
            independent.
    """
    position = np.repeat(np.arange(there.begin.size - 1), np.diff(there.begin))
    probabilities, factor = alone, np.ones(alone.size)
    for _ in range(_ROUNDS if trust else 0):
        evidence = trust * _evidence(there.begin, there.rows, probabilities, counts, size)
        largest = np.full(there.begin.size - 1, -np.inf)
        np.maximum.at(largest, position, evidence)
        factor = np.exp(evidence - largest[position])
        probabilities = normalize(alone * factor, position, there.begin.size - 1)
    return factor


def normalize(chances: Doubles, position: Ints, n: int) -> Doubles:
    """Normalize to a sum of 1 at each position."""
    return np.asarray(chances / np.maximum(np.bincount(position, chances, n), 1e-300)[position])


@helper
def _after(before: int, word: int, pairs: Pairs) -> float:
    """Return P(word | previous word); for the first word of a note (before: -1), its frequency."""
    if word < 0:
        return 1.0
    if before < 0:
        return pairs.unigram[word]
    place = _find(pairs.indices, pairs.indptr[before], pairs.indptr[before + 1], word)
    return (pairs.pairs[place] if place >= 0 else 0.0) + pairs.backoff[before] * pairs.unigram[word]


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
