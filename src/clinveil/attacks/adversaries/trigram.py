"""Hidden Markov model of the second order: three words in a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MOST, Lattice, candidates
from clinveil.attacks.adversaries._forward_backward import links, marginals
from clinveil.attacks.adversaries._ngrams import Counts, Pairs, Triples, triples
from clinveil.attacks.adversaries._three_words import by_three
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Reading, adversaries
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.scale import threads


@adversaries.register("trigram")
class Trigram(Adversary):
    """Weighs all readings of a note at once, by the channel and three words in a row of other notes."""

    knows = frozenset({"channel", "others"})
    order = 420
    most: int = flag(MOST, "Inputs of an output that are weighed by pairs of words.", ge=2)
    beam: int = flag(20, "Of these, by three words in a row: the likeliest by pairs.", ge=2)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn. What pairs leave out keeps what pairs say of it."""
        counts, held = Counts.of(view.others, len(view.channel.words)), candidates(view, self.most)
        pairs, third = counts.tables, triples(view.others, counts)

        def one(note: AlignedNote) -> Reading:
            there = held.lattice(note.outputs)
            return there.reading(in_context(there, there.weights, pairs, third, self.beam))

        return list(threads(view.threads)(one, view.notes))


def in_context(there: Lattice, weights: Doubles, pairs: Pairs, third: Triples, beam: int) -> Doubles:
    """The chances of a note's candidates, by pairs and then, of the likeliest, by three words in a row.

    Args:
        weights: what each candidate's output tells of it.
    """
    found = marginals(there.begin, there.rows, weights, pairs, links(there.begin, there.rows, pairs))
    kept = _likeliest(there.begin, found, beam)
    for first, last in _stretches(np.diff(there.begin) > 0):
        low, high = there.begin[first], there.begin[last]
        some = low + np.flatnonzero(kept[low:high])
        begin = np.searchsorted(some, there.begin[first : last + 1]).astype(np.int64)
        place = np.repeat(np.arange(last - first), np.diff(begin))
        mass = np.bincount(place, found[some], last - first)
        found[some] = np.maximum(by_three(begin, there.rows[some], weights[some], pairs, third) * mass[place], 1e-300)
    return found


def _likeliest(begin: Ints, chances: Doubles, most: int) -> Mask:
    """Which candidates are among so many likeliest of their place."""
    place = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    order = np.lexsort((-chances, place))
    kept = np.zeros(chances.size, dtype=np.bool_)
    kept[order] = np.arange(order.size) - begin[place[order]] < most
    return kept


def _stretches(full: Mask) -> Iterator[tuple[int, int]]:
    """Runs of at least two places that have a candidate."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], full, [False]]).astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():
        if last - first > 1:
            yield first, last
