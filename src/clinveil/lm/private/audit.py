"""A lower bound of epsilon from one run of a private mechanism: how often an attacker guesses the
members right.

Canary patients are each included with probability 1/2. The attacker knows everything else, guesses
from what was released which canaries were included, and may abstain. Too many correct guesses
contradict the stated epsilon.

Canaries must not enter a release. So `audited_table` runs the mechanism a second time, on canaries
only, with the vocabulary, labels and noise of the release. It tests the program with these
settings, not these notes. Therefore its result discloses nothing about them and costs no budget.

Source: Steinke, Nasr & Jagielski 2023, Privacy auditing with one (1) training run, Corollary 5.4
and Appendix D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from clinveil.core import Doubles, Key, Mask
from clinveil.lm.private.public_text import PublicText
from clinveil.lm.private.table import TERMS, LabelledNote, Layout, noisy, summed

LEVEL = 0.05  # 1 - confidence
CANARIES = 2_000  # at most
GUESSED = (
    0.3  # share of the canaries that the attacker does not abstain from; chosen before the run
)
NOTES = (
    5  # of a canary patient: limits per note instead of per patient would multiply its contribution
)
HIGHEST = 50.0


@dataclass(frozen=True)
class Audit:
    """Result of an attack on canaries, of which each was included with probability 1/2."""

    canaries: int
    guesses: int
    correct: int
    delta: float

    def p_value(self, epsilon: float) -> float:
        """Return the largest probability of at least this many correct guesses under (epsilon,
        delta).
        """
        guesses = binom(self.guesses, expit(epsilon))
        correct = self.correct
        # P[correct > W >= correct - i], i = 1, 2, ….
        below = np.cumsum(guesses.pmf(np.arange(correct - 1, -1, -1)))
        steepest = float((below / np.arange(1, correct + 1)).max(initial=0.0))
        return min(1.0, float(guesses.sf(correct - 1)) + 2 * self.canaries * self.delta * steepest)

    @property
    def epsilon(self) -> float:
        """Lower bound of epsilon with 95 % confidence; 0 if the guesses contradict no epsilon."""
        if self.p_value(0.0) >= LEVEL:
            return 0.0
        bound: float = brentq(lambda epsilon: self.p_value(epsilon) - LEVEL, 0.0, HIGHEST)
        return bound

    @property
    def highest(self) -> float:
        """Lower bound of epsilon if all guesses were correct."""
        return replace(self, correct=self.guesses).epsilon


def guessed(included: Mask, scores: Doubles, delta: float, share: float = GUESSED) -> Audit:
    """Guess that the canaries with the highest scores were included, and those with the lowest were
    not.

    Args:
        included, scores: of the canaries, (n,). share: of the canaries guessed, half of them on
            each side.
    """
    order = np.argsort(scores, kind="stable")
    side = max(1, round(scores.size * share / 2))
    correct = included[order[-side:]].sum() + (~included[order[:side]]).sum()
    return Audit(scores.size, 2 * side, int(correct), delta)


def audited_table(
    public: PublicText, layout: Layout, sigma: float, delta: float, key: Key
) -> Audit:
    """Run the mechanism of the noisy table on canaries; guess from the sums of each canary's
    cells.
    """
    # Words of a canary, in one label.
    each = max(1, min(TERMS, layout.labels * layout.words // CANARIES))
    stream = key.stream("audit of the private table")
    words = public.words
    order = np.argsort(np.array([stream.uint64() for _ in words], dtype=np.uint64))
    blocks = order[: order.size // each * each].reshape(-1, each)[
        : max(1, CANARIES // layout.labels)
    ]
    canaries = [(label, block) for label in range(layout.labels) for block in blocks]
    included = np.array([stream.below(2) == 1 for _ in canaries])
    notes = [
        LabelledNote(str(number), label, " ".join(words[i] for i in block))
        for number, (label, block) in enumerate(canaries)
        for _ in range(NOTES * int(included[number]))
    ]
    table = noisy(summed(notes, public, layout), layout, sigma, key, "audit")
    return guessed(
        included, np.array([table.cells[label, block].sum() for label, block in canaries]), delta
    )
