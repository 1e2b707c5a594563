"""What words of one shuffled window tell of each other: counts of words that share a window; compiled.

Every word of the window is asked how much more often it shares one with a candidate than chance has it (a log ratio,
drawn towards 0 where counts are small), and the answers are added, by what is believed of these words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from clinveil.attacks.adversaries._candidates import Lattice
from clinveil.channel.policy import Policy
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

PULL = 0.5  # occurrences together that are believed of each pair beforehand, as by chance
MOST_TOGETHER = 30
SENTENCE = 16  # words, where sentences are shuffled: their borders are not seen
ASKED = 8  # readings of a neighbour that are asked, the likeliest
HEARD = 0.01  # belief under which a reading is not asked
_ROUNDS = 3


class Together(NamedTuple):
    """How often words share a window.

    Attributes:
        shares: (n_words,) of all words, what each is. times: how many pairs of words there are in all. indptr, indices,
            ratios: of pairs that were seen, the logarithm of how much oftener they are than by chance.
    """

    shares: Doubles
    times: float
    indptr: Ints
    indices: Ints
    ratios: Doubles


def width(policy: Policy) -> int:
    """Words of a window as far as an attacker knows it."""
    if policy.shuffle == "note":
        return MOST_TOGETHER
    return min(policy.window, MOST_TOGETHER) if policy.shuffle == "window" else SENTENCE


def reordered(note: Ints, policy: Policy, rng: Generator) -> Ints:
    """Places of a note's words in an order such as a release has; sentences are taken for windows."""
    size = note.size if policy.shuffle == "note" else width(policy) if policy.shuffle != "window" else policy.window
    starts = range(0, note.size, max(size, 1))
    return np.concatenate([np.zeros(0, np.int64), *(s + rng.permutation(min(size, note.size - s)) for s in starts)])


def together(notes: Sequence[Ints], n_words: int, size: int) -> Together:
    """Counted in windows of notes that stand in an order such as a release has."""
    parts = [note[at : at + size] for note in notes for at in range(0, note.size, size)]
    window, flat = np.repeat(np.arange(len(parts)), [part.size for part in parts]), np.concatenate([*parts, [n_words]])
    known = flat[:-1] < n_words
    held = (np.ones(known.sum()), (window[known], flat[:-1][known]))
    table = csr_matrix(held, shape=(len(parts), n_words))
    both = csr_matrix(table.T @ table)
    single = np.asarray(table.sum(axis=0)).ravel()
    both.setdiag(both.diagonal() - single)
    both.eliminate_zeros()
    both.sort_indices()
    times, shares = max(float(both.sum()), 1.0), single / max(single.sum(), 1.0)
    before = np.repeat(np.arange(n_words), np.diff(both.indptr))
    usual = times * shares[before] * shares[both.indices]
    ratios = np.log((both.data + PULL) / (usual + PULL))
    return Together(shares, times, both.indptr.astype(np.int64), both.indices.astype(np.int64), ratios)


@helper
def _unseen(x: int, w: int, counts: Together) -> float:
    """The log ratio of a pair that was never seen, by how often chance would have it."""
    return -np.log(1.0 + counts.times * counts.shares[x] * counts.shares[w] / PULL)


@helper
def _ratio(x: int, w: int, counts: Together) -> float:
    """The log ratio of a pair."""
    low, end = counts.indptr[w], counts.indptr[w + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if counts.indices[middle] < x:
            low = middle + 1
        else:
            high = middle
    if low < end and counts.indices[low] == x:
        return counts.ratios[low]
    return _unseen(x, w, counts)


@kernel
def _likeliest(begin: Ints, beliefs: Doubles) -> Ints:
    """The likeliest candidates of each place, (n, ASKED); -1 where there are fewer that are believed."""
    likely = np.full((begin.size - 1, ASKED), -1)
    for t in range(begin.size - 1):
        for k in range(min(ASKED, begin[t + 1] - begin[t])):
            best = -1
            for j in range(begin[t], begin[t + 1]):
                if (best < 0 or beliefs[j] > beliefs[best]) and (k == 0 or not (likely[t, :k] == j).any()):
                    best = j
            if beliefs[best] > HEARD:
                likely[t, k] = best
    return likely


@helper
def _gather(likely: Ints, rows: Ints, beliefs: Doubles, weight: Doubles, words: Ints) -> int:
    """How many words of a window are asked; `words` says which, `weight` of each how much it is believed."""
    asked = 0
    for t in range(likely.shape[0]):
        for k in range(ASKED):
            j = likely[t, k]
            if j >= 0:
                if weight[rows[j]] == 0:
                    words[asked] = rows[j]
                    asked += 1
                weight[rows[j]] += beliefs[j]
    return asked


@helper
def _ask(
    w: int, weight: float, mine: Ints, counts: Together, said: Doubles, seen: Ints, of: Ints, sums: Doubles
) -> None:
    """Add what one word tells of each candidate of its window, once a word."""
    for p in range(counts.indptr[w], counts.indptr[w + 1]):
        said[counts.indices[p]], seen[counts.indices[p]] = counts.ratios[p], w
    for i in range(mine.size):
        x = mine[i]
        if of[x] != w:
            of[x] = w
            sums[x] += weight * (said[x] if seen[x] == w else _unseen(x, w, counts))


@helper
def _by_itself(x: int, own: Ints, rows: Ints, beliefs: Doubles, counts: Together) -> float:
    """What a place's own candidates tell of one of them."""
    told = 0.0
    for k in range(ASKED):
        if own[k] >= 0:
            told += beliefs[own[k]] * _ratio(x, rows[own[k]], counts)
    return told


@kernel
def _told(begin: Ints, rows: Ints, beliefs: Doubles, counts: Together, size: int) -> Doubles:
    """Of each candidate what the other words of its window say, summed.

    The whole window is asked once for each word that is a candidate in it; what a place says of itself is taken off.
    """
    n, n_words, likely, told = begin.size - 1, counts.shares.size, _likeliest(begin, beliefs), np.zeros(rows.size)
    said, seen, of = np.zeros(n_words), np.full(n_words, -1), np.full(n_words, -1)
    words, weight, sums = np.empty(n_words, np.int64), np.zeros(n_words), np.zeros(n_words)
    for first in range(0, n, size):
        last = min(first + size, n)
        mine = rows[begin[first] : begin[last]]
        asked = _gather(likely[first:last], rows, beliefs, weight, words)
        for i in range(asked):
            _ask(words[i], weight[words[i]], mine, counts, said, seen, of, sums)
        for t in range(first, last):
            for j in range(begin[t], begin[t + 1]):
                told[j] = sums[rows[j]] - _by_itself(rows[j], likely[t], rows, beliefs, counts)
        weight[words[:asked]] = 0
        sums[mine], of[mine] = 0, -1
    return told


def by_window(there: Lattice, alone: Doubles, counts: Together, size: int, trust: float) -> Doubles:
    """What the words of each window tell of a candidate, as a factor: mean field, a few rounds.

    Args:
        alone: of each candidate, what its output tells. trust: of what neighbours say, who know of each other.
    """
    place = np.repeat(np.arange(there.begin.size - 1), np.diff(there.begin))
    beliefs, factor = alone, np.ones(alone.size)
    for _ in range(_ROUNDS if trust else 0):
        said = trust * _told(there.begin, there.rows, beliefs, counts, size)
        most = np.full(there.begin.size - 1, -np.inf)
        np.maximum.at(most, place, said)
        factor = np.exp(said - most[place])
        beliefs = to_one(alone * factor, place, there.begin.size - 1)
    return factor


def to_one(chances: Doubles, place: Ints, n: int) -> Doubles:
    """Bring chances to a sum of 1 at each place."""
    return np.asarray(chances / np.maximum(np.bincount(place, chances, n), 1e-300)[place])
