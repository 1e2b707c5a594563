"""Word pairs of other notes, and what they say of each place of a note: forward-backward over candidates by output.

Source: Rabiner 1989, equations 19 to 27 (scaled); absolute discounting of pairs: Ney, Essen and Kneser 1994.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from clinveil.attacks.readers._tables import Table, frequency
from clinveil.channel.policy import Policy
from clinveil.core.compiled import helper, kernel
from clinveil.core.types import Doubles, Ints

DISCOUNT = 0.75


@dataclass(frozen=True, eq=False)
class Pairs:
    """P(word | word before) = pair + left[before] single: pairs discounted, what they leave goes by frequency.

    Attributes:
        single: (n_words,), sums to 1. left: (n_words,). starts, words, chances: by the word before; words rise.
    """

    single: Doubles
    left: Doubles
    starts: Ints
    words: Ints
    chances: Doubles

    @classmethod
    def of(cls, notes: Sequence[Ints], n_words: int) -> Pairs:
        """Counted in notes; pairs with an unknown word are left out."""
        end = np.array([n_words])
        every = np.concatenate([np.zeros(0, np.int64), *(part for note in notes for part in (note, end))])
        before, after = every[:-1], every[1:]
        known = (before < n_words) & (after < n_words)
        keys, counts = np.unique(before[known] * np.int64(n_words) + after[known], return_counts=True)
        rows = keys // n_words
        kinds, totals = np.bincount(rows, minlength=n_words), np.bincount(rows, counts, n_words)
        chances = np.maximum(counts - DISCOUNT, 0) / totals[rows]
        left = np.where(totals > 0, DISCOUNT * kinds / np.maximum(totals, 1), 1.0)
        starts = np.searchsorted(rows, np.arange(n_words + 1)).astype(np.int64)
        return cls(frequency(notes, n_words), left, starts, keys % n_words, chances)


def as_released(notes: Sequence[Ints], policy: Policy, rng: Generator) -> Sequence[Ints]:
    """Notes with their words in the order of a release: an attacker shuffles his own before he counts pairs.

    Sentences are not known here: where they are shuffled as wholes, or within, the whole note is.
    """
    if policy.keeps_order:
        return notes
    whole = policy.shuffle != "window" or policy.sentences
    return [_shuffled(note, note.size if whole else policy.window, rng) for note in notes]


def _shuffled(note: Ints, window: int, rng: Generator) -> Ints:
    places = np.arange(note.size) // max(1, window) + rng.random(note.size)
    return np.asarray(note[np.argsort(places)])


def beliefs(pairs: Pairs, table: Table, emissions: Doubles, outputs: Ints) -> tuple[Ints, Doubles, float]:
    """P(x_t | outputs) at each place of a note, over the candidates of its output.

    Args:
        emissions: of each entry of the table, P(y | x) up to a factor of y. outputs: (n,).

    Returns:
        starts (n + 1,); chances (starts[-1],), which sum to 1 at each place with candidates; the log likelihood.
    """
    sizes = table.starts[outputs + 1] - table.starts[outputs]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    entries = np.repeat(table.starts[outputs] - begin[:-1], sizes) + np.arange(begin[-1])
    rows, told, widest = table.rows[entries], emissions[entries], int(sizes.max(initial=0))
    links, chances = np.zeros((max(0, outputs.size - 1), widest, widest)), np.zeros(begin[-1])
    fit = _forward(
        begin, rows, told, pairs.single, pairs.left, pairs.starts, pairs.words, pairs.chances, links, chances
    )
    _backward(begin, links, chances, np.ones(begin[-1]))
    return begin, chances, fit


@helper
def _pair(before: int, word: int, starts: Ints, words: Ints, chances: Doubles) -> float:
    """The discounted share of a word after another; 0 where the pair was never seen."""
    low, end = starts[before], starts[before + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return chances[low] if low < end and words[low] == word else 0.0


@helper
def _scaled(own: Doubles) -> float:
    """Scale to sum 1 in place, evenly where all are 0; the sum."""
    total = 0.0
    for i in range(own.size):
        total += own[i]
    for i in range(own.size):
        own[i] = own[i] / total if total > 0 else 1.0 / own.size
    return total


@kernel
def _forward(
    begin: Ints,
    rows: Ints,
    told: Doubles,
    single: Doubles,
    left: Doubles,
    starts: Ints,
    words: Ints,
    shares: Doubles,
    links: Doubles,
    chances: Doubles,
) -> float:
    """Fill P(x_t | outputs up to t) and the links from place to place; the log likelihood."""
    fit = 0.0
    for t in range(begin.size - 1):
        low, high, past = begin[t], begin[t + 1], begin[max(0, t - 1)]
        for j in range(low, high):
            if past == low:  # nothing is known of the place before
                chances[j] = single[rows[j]] * told[j]
            for i in range(past, low):
                link = left[rows[i]] * single[rows[j]] + _pair(rows[i], rows[j], starts, words, shares)
                links[t - 1, i - past, j - low] = link * told[j]
                chances[j] += chances[i] * link * told[j]
        if high > low:
            fit += np.log(max(_scaled(chances[low:high]), 1e-300))
    return fit


@kernel
def _backward(begin: Ints, links: Doubles, chances: Doubles, ahead: Doubles) -> None:
    """Turn P(x_t | outputs up to t) into P(x_t | all outputs)."""
    for t in range(begin.size - 3, -1, -1):
        low, high, end = begin[t], begin[t + 1], begin[t + 2]
        for i in range(low, high if end > high else low):
            ahead[i] = 0.0
            for j in range(high, end):
                ahead[i] += links[t, i - low, j - high] * ahead[j]
        if high > low:
            _scaled(ahead[low:high])
    for t in range(begin.size - 1):
        low, high = begin[t], begin[t + 1]
        for i in range(low, high):
            chances[i] *= ahead[i]
        if high > low:
            _scaled(chances[low:high])
