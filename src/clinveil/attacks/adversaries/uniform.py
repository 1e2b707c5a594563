"""Bayes' rule with all words as likely."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._candidates import candidates
from clinveil.attacks.adversary import Adversary, AdversaryView, Reading, adversaries


@adversaries.register("uniform")
class Uniform(Adversary):
    """Weighs the words that can come out so by the channel alone, as if all were as frequent."""

    knows = frozenset({"channel"})
    order = 200

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn."""
        held = candidates(view, prior=np.ones(len(view.channel.words)))
        return [held.reading(note.outputs) for note in view.notes]
