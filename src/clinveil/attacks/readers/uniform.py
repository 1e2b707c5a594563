"""Bayes' rule with all words as likely."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attacks.reader import Reader, Reading, Scene, readers
from clinveil.attacks.readers._candidates import candidates


@readers.register("uniform")
class Uniform(Reader):
    """Weighs the words that can come out so by the channel alone, as if all were as frequent."""

    knows = frozenset({"channel"})
    order = 200

    def read(self, scene: Scene, rng: Generator) -> list[Reading]:
        """Nothing is drawn."""
        held = candidates(scene, prior=np.ones(len(scene.channel.words)))
        return [held.reading(note.outputs) for note in scene.notes]
