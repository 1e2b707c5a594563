"""A recipient who holds some notes in both forms, such as those of their own patients."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix

from clinveil.attacks.reader import Knowledge, Reader, Reading, Scene, Seen, readers
from clinveil.attacks.readers._context import in_context, pairs_of, sure
from clinveil.attacks.readers._tables import COMMON, MOST, Table, frequency, table_of
from clinveil.attacks.readers._together import Learnt, learnt
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints

TRUSTS = 10.0 ** np.arange(-3, 4)
UNORDERED_TRUST = 1.0
WIDE = 100  # words that context may choose where pairs tell nothing


@readers.register("known-pairs")
class KnownPairs(Reader):
    """No channel: learns what becomes of each word from notes that he holds plain and released.

    P(y | x) is (c(x, y) + b q(y)) / (c(x) + b), q how often y stands in the release, and b what foretells the pairs
    best when each is left out in turn: next to 0 where a memo makes the release a code, so that a word whose code is
    known stands behind no other output. With context, all words of a note are weighed at once by word pairs of others.
    Under a shuffle the pairs are what bags of words tell (`_together`).
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"others", "pairs"})
    order: ClassVar[int] = 540
    notes: int | None = flag(None, "How many of the notes that he holds; unless given, all.", ge=1)
    context: bool = flag(True, "Weigh all words of a note at once.")

    def read(self, scene: Scene, rng: Generator) -> list[Reading]:
        """Words that the pairs do not hold are weighed by their frequency in other notes."""
        held, policy = scene.pairs[: self.notes], scene.channel.policy
        n_words = len(scene.channel.words)
        prior = frequency([*scene.others, *(_plain(note) for note in held)], n_words)
        known = learnt(held, policy, n_words)
        outputs, wide = frequency(scene.released, n_words), WIDE if self.context else COMMON
        table = pairs_table(known, prior, outputs, policy.keeps_order, wide)
        if not self.context:
            return table.readings(scene)
        pairs = pairs_of([*scene.others, *(_plain(note) for note in held)], policy, n_words, rng)
        return sure(in_context(scene, pairs, table.held(prior)))


def _plain(note: Seen) -> Ints:
    """The source of a note that he holds, in its own order."""
    return note.truth[np.unique(note.places, return_index=True)[1]]


def pairs_table(known: Learnt, prior: Doubles, outputs: Doubles, one_by_one: bool, wide: int = COMMON) -> Table:
    """What draws of known words tell of each output.

    Args:
        prior, outputs: (n_words,) shares of inputs and of outputs. one_by_one: the counts are of whole draws.
        wide: words that are candidates of every output.
    """
    n_words = prior.size
    totals = np.bincount(known.inputs, known.counts, n_words).astype(np.float64)
    trust = _trust(known, totals, outputs) if one_by_one else UNORDERED_TRUST
    scale = prior / (totals + trust)
    joint = csc_matrix((known.counts * scale[known.inputs], (known.inputs, known.outputs)), shape=(n_words, n_words))
    return table_of(joint, outputs, trust * scale, wide + MOST - COMMON, wide)


def _trust(known: Learnt, totals: Doubles, outputs: Doubles) -> float:
    """b: the occurrences that q(y) weighs, under which each draw is likeliest by all the others."""
    rest, base = totals[known.inputs] - 1, outputs[known.outputs]
    fits = [(known.counts * np.log((known.counts - 1 + b * base) / (rest + b))).sum() for b in TRUSTS]
    return float(TRUSTS[np.argmax(fits)])
