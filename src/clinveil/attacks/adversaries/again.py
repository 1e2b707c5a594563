"""A reader of two releases of the same notes under different keys: two draws hide each word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, diags_array

from clinveil.attacks.adversaries.repeats import channel_table
from clinveil.attacks.adversary import Adversary, AdversaryView, AlignedNote, Knowledge, Reading, adversaries
from clinveil.channel.policy import Policy
from clinveil.core.types import Doubles, Ints

LEFT_OUT = 1e-4  # weight of no second draw at all: a word may be dropped


@adversaries.register("again")
class Again(Adversary):
    """Weighs both draws of each word, place by place, or under a shuffle among all of the window or note.

    P(x | y, Y) is in proportion to prior(x) C(y | x) times the mean over y' in Y of C(y' | x) / q(y'): Y is the second
    draw, or the bag of outputs in which it stands, and q the frequency of outputs. Source: averaging attack, threat
    model A5; one of a bag as in IBM's model 1 (Brown et al. 1993).
    """

    knows: ClassVar[frozenset[Knowledge]] = frozenset({"channel", "others", "again"})
    order: ClassVar[int] = 460

    def read(self, view: AdversaryView, rng: Generator) -> list[Reading]:
        """Word by word; nothing is drawn."""
        once = channel_table(view).readings(view)
        rates = np.maximum(view.by_output.T @ view.prior, 1e-300)
        ratios = csc_matrix(view.by_output @ diags_array(1 / rates))
        policy = view.channel.policy
        return [
            _weighed(reading, note, second, ratios, policy)
            for reading, note, second in zip(once, view.notes, view.again, strict=True)
        ]


def _weighed(reading: Reading, note: AlignedNote, second: AlignedNote, ratios: csc_matrix, policy: Policy) -> Reading:
    low, high = _bags(len(note), len(second), policy)
    ranges, bag = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
    told = [np.asarray(ratios[:, second.outputs[a:b]].mean(axis=1)).ravel() if b > a else None for a, b in ranges.T]
    chances = reading.chances.copy()
    for t, of in enumerate(bag.ravel().tolist()):
        place, evidence = slice(reading.starts[t], reading.starts[t + 1]), told[of]
        if evidence is not None:
            chances[place] = _normal(chances[place] * (evidence[reading.rows[place]] + LEFT_OUT))
    return Reading(reading.starts, reading.rows, chances)


def _normal(chances: Doubles) -> Doubles:
    return np.asarray(chances / chances.sum()) if chances.size else chances


def _bags(n: int, m: int, policy: Policy) -> tuple[Ints, Ints]:
    """Of each place of a note of n the places of one of m where its second draw may stand."""
    at = np.arange(n)
    if policy.keeps_order and n == m:
        return at, at + 1
    if policy.sentences or policy.shuffle in ("sentence", "note"):
        return np.zeros(n, dtype=np.int64), np.full(n, m)
    size = policy.window
    if n == m:
        return at // size * size, np.minimum(m, (at // size + 1) * size)
    centre = at * m // max(1, n)
    return np.maximum(0, centre - size), np.minimum(m, centre + size + 1)
