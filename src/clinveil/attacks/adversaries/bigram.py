"""Hidden Markov model with word pairs: the channel gives the outputs, other notes give the transitions."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MAX_INPUTS, candidates
from clinveil.attacks.adversaries._sequence import Counts, in_context
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Recovery, adversaries
from clinveil.core.settings import flag
from clinveil.scale import threads


@adversaries.register("bigram")
class Bigram(Adversary):
    """Recover all words of a note jointly, from the channel and the word pairs of other notes, in released order."""

    knowledge = frozenset({"channel", "others"})
    in_release = ({},)
    order = 400
    max_inputs: int = flag(MAX_INPUTS, "Maximum inputs of an output, the most probable.", ge=2)

    def recover(self, view: AdversaryView, rng: Generator) -> Iterator[Recovery]:
        """Run forward-backward (Baum et al. 1970); deterministic."""
        table, pairs = candidates(view, self.max_inputs), Counts.of(view.others, len(view.channel.words)).tables

        def attack(note: AlignedNote) -> Recovery:
            lattice = table.lattice(note.outputs)
            return lattice.recovery(in_context(lattice.begin, lattice.rows, lattice.weights, pairs))

        return threads(view.threads)(attack, view.notes)
