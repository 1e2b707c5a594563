"""Bayes' rule with the word frequencies of other notes: the best who reads no context."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import candidates
from clinveil.attacks.adversary import Adversary, AdversaryView, Reading, adversaries


@adversaries.register("unigram")
class Unigram(Adversary):
    """Weighs the words that can come out so by the channel and by how frequent they are in other notes."""

    knows = frozenset({"channel", "others"})
    in_release = ({},)
    order = 300

    def read(self, view: AdversaryView, rng: Generator) -> Iterator[Reading]:
        """Nothing is drawn."""
        held = candidates(view)
        return (held.reading(note.outputs) for note in view.notes)
