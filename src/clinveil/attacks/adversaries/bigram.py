"""Hidden Markov model: the channel gives the outputs, the word pairs of other notes what follows what."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import MOST, candidates
from clinveil.attacks.adversaries._forward_backward import links, marginals
from clinveil.attacks.adversaries._ngrams import Counts
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Reading, adversaries
from clinveil.core.settings import flag
from clinveil.scale import threads


@adversaries.register("bigram")
class Bigram(Adversary):
    """Weighs all readings of a note at once, by the channel and the word pairs of other notes; takes order as it is."""

    knows = frozenset({"channel", "others"})
    in_release = ({},)
    order = 400
    most: int = flag(MOST, "Inputs of an output that are weighed, the likeliest.", ge=2)

    def read(self, view: AdversaryView, rng: Generator) -> Iterator[Reading]:
        """Nothing is drawn. Source: forward-backward, Baum et al. 1970."""
        held, pairs = candidates(view, self.most), Counts.of(view.others, len(view.channel.words)).tables

        def one(note: AlignedNote) -> Reading:
            there = held.lattice(note.outputs)
            linked = links(there.begin, there.rows, pairs)
            return there.reading(marginals(there.begin, there.rows, there.weights, pairs, linked))

        return threads(view.threads)(one, view.notes)
