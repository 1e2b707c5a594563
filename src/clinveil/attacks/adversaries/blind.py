"""The baseline: names the most frequent words wherever he looks."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import Adversary, AdversaryView, Reading, adversaries
from clinveil.core.settings import flag


@adversaries.register("blind")
class Blind(Adversary):
    """Looks at nothing and always names the most frequent words of other notes."""

    knows = frozenset({"others"})
    order = 0
    named: int = flag(5, "Words that he names.", ge=1)

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn."""
        top = np.argsort(-view.prior, kind="stable")[: self.named].astype(np.int64)
        sizes = [np.arange(len(note) + 1, dtype=np.int64) * top.size for note in view.notes]
        return [Reading(n, np.tile(top, len(n) - 1), np.tile(view.prior[top], len(n) - 1)) for n in sizes]
