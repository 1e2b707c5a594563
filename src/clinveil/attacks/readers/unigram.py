"""Bayes' rule with the word frequencies of other notes: the best who reads no context."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.random import Generator

from clinveil.attacks.reader import Reader, Reading, Scene, readers
from clinveil.attacks.readers._candidates import candidates


@readers.register("unigram")
class Unigram(Reader):
    """Weighs the words that can come out so by the channel and by how frequent they are in other notes."""

    knows = frozenset({"channel", "others"})
    in_release = ({},)
    order = 300

    def read(self, scene: Scene, rng: Generator) -> Iterator[Reading]:
        """Nothing is drawn."""
        held = candidates(scene)
        return (held.reading(note.outputs) for note in scene.notes)
