"""Baseline that always names the most frequent words."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import Adversary, AdversaryView, Recovery, adversaries
from clinveil.core.settings import flag


@adversaries.register("blind")
class Blind(Adversary):
    """Name the most frequent words of other notes, without using the release."""

    knowledge = frozenset({"others"})
    order = 0
    named: int = flag(5, "Number of words to name.", ge=1)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Return the same words everywhere; deterministic."""
        top = np.argsort(-view.prior, kind="stable")[: self.named].astype(np.int64)
        sizes = [np.arange(len(note) + 1, dtype=np.int64) * top.size for note in view.notes]
        return [Recovery(n, np.tile(top, len(n) - 1), np.tile(view.prior[top], len(n) - 1)) for n in sizes]
