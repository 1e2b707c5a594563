"""Hidden Markov model with word pairs: the channel gives the outputs, other notes give the
transitions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversaries._sequence import (
    TINY,
    BigramCounts,
    candidates,
    in_context,
    in_context_candidates,
)
from clinveil.attacks.adversary import (
    Adversary,
    AdversaryView,
    NoteRows,
    Recovery,
    entries,
)
from clinveil.scale import threads


class Bigram(Adversary):
    """Recover all words of a note jointly, from the channel and the word pairs of other notes, in
    released order.
    """

    knowledge = frozenset({"channel", "others"})
    in_release = ({},)
    order = 400

    def recover(self, view: AdversaryView, rng: Generator) -> Iterator[Recovery]:
        """Run forward-backward (Baum et al. 1970) over the most probable inputs; deterministic."""
        shared = None if view.channel.in_context else candidates(view)
        pairs = BigramCounts.of(view.others, len(view.channel.words)).tables

        def attack(note: NoteRows) -> Recovery:
            if shared is None:
                table = in_context_candidates(note.likelihood(view.mechanism), view)
                begin = table.starts
                indices = np.arange(table.rows.size)
            else:
                table = shared
                begin, indices = entries(table.starts, note.outputs)
            rows = table.rows[indices]
            weighed = table.weighed[indices]
            starts = np.concatenate([[0], np.cumsum(weighed)])[begin].astype(np.int64)
            context = in_context(starts, rows[weighed], table.weights[indices[weighed]], pairs)
            chances = table.posterior[indices]
            position = np.repeat(np.arange(len(note)), np.diff(begin))[weighed]
            # Other inputs keep their share.
            mass = np.bincount(position, chances[weighed], len(note))
            chances[weighed] = np.maximum(context * mass[position], TINY)
            return Recovery(begin, rows, chances)

        return threads(view.threads)(attack, view.notes)
