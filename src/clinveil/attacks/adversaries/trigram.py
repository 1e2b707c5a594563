"""Second-order hidden Markov model: word triples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MAX_INPUTS, Lattice, candidates
from clinveil.attacks.adversaries._forward_backward import links, marginals
from clinveil.attacks.adversaries._ngrams import Counts, Pairs, Triples, triples
from clinveil.attacks.adversaries._three_words import by_three
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Recovery, adversaries
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.scale import threads


@adversaries.register("trigram")
class Trigram(Adversary):
    """Recover all words of a note jointly, from the channel and the word triples of other notes."""

    knowledge = frozenset({"channel", "others"})
    order = 420
    max_inputs: int = flag(MAX_INPUTS, "Maximum inputs of an output for word pairs.", ge=2)
    beam: int = flag(20, "Of these, the maximum for word triples.", ge=2)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; deterministic. Candidates outside the beam keep their word-pair probability."""
        counts, table = Counts.of(view.others, len(view.channel.words)), candidates(view, self.max_inputs)
        pairs, third = counts.tables, triples(view.others, counts)

        def attack(note: AlignedNote) -> Recovery:
            lattice = table.lattice(note.outputs)
            return lattice.recovery(in_context(lattice, lattice.weights, pairs, third, self.beam))

        return list(threads(view.threads)(attack, view.notes))


def in_context(lattice: Lattice, weights: Doubles, pairs: Pairs, third: Triples, beam: int) -> Doubles:
    """Return candidate probabilities from word pairs, refined by word triples for the most probable ones.

    Args:
        weights: P(output | candidate).
    """
    chances = marginals(lattice.begin, lattice.rows, weights, pairs, links(lattice.begin, lattice.rows, pairs))
    in_beam = _likeliest(lattice.begin, chances, beam)
    for first, last in _runs(np.diff(lattice.begin) > 0):
        low, high = lattice.begin[first], lattice.begin[last]
        chosen = low + np.flatnonzero(in_beam[low:high])
        begin = np.searchsorted(chosen, lattice.begin[first : last + 1]).astype(np.int64)
        position = np.repeat(np.arange(last - first), np.diff(begin))
        mass = np.bincount(position, chances[chosen], last - first)
        chances[chosen] = np.maximum(
            by_three(begin, lattice.rows[chosen], weights[chosen], pairs, third) * mass[position], 1e-300
        )
    return chances


def _likeliest(begin: Ints, chances: Doubles, max_inputs: int) -> Mask:
    """Return the mask of the most probable candidates of each position."""
    position = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    order = np.lexsort((-chances, position))
    in_beam = np.zeros(chances.size, dtype=np.bool_)
    in_beam[order] = np.arange(order.size) - begin[position[order]] < max_inputs
    return in_beam


def _runs(full: Mask) -> Iterator[tuple[int, int]]:
    """Yield runs of at least two positions that have a candidate."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], full, [False]]).astype(np.int8)))
    for first, last in edges.reshape(-1, 2).tolist():
        if last - first > 1:
            yield first, last
