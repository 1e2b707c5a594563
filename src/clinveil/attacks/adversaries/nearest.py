"""What peers measure protection by: the nearest word of the one that came out."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import Adversary, AdversaryView, Reading, adversaries, from_table


@adversaries.register("nearest")
class Nearest(Adversary):
    """Takes the released word for a source word, and names what the channel would make of it most likely.

    The nearest word in most mechanisms, for outputs are weighed by distance; he forgets how many words can lead there.
    """

    knows = frozenset({"channel"})
    calibrated = False
    order = 100

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Nothing is drawn."""
        rows = view.channel.matrix()[: len(view.channel.words)]
        starts, outputs = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
        return [from_table(note.outputs, starts, outputs, rows.data) for note in view.notes]
