"""Bayes' rule with the word frequencies of other notes: the best context-free attack."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import Generator

from clinveil.attacks.adversaries._sequence import candidates
from clinveil.attacks.adversary import Adversary, AdversaryView, Recovery, adversaries, from_table


@adversaries.register("unigram")
class Unigram(Adversary):
    """Weigh the possible source words by the channel and by their frequency in other notes."""

    knowledge = frozenset({"channel", "others"})
    in_release = ({},)
    order = 300

    def recover(self, view: AdversaryView, rng: Generator) -> Iterator[Recovery]:
        """Recover each note; deterministic."""
        table = candidates(view)
        return (
            from_table(note.outputs, table.starts, table.rows, table.posterior)
            for note in view.notes
        )
