"""Substitution-cipher attack: hidden Markov model with an unknown channel, estimated by EM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.sparse import coo_matrix, csc_matrix, diags_array

from clinveil.attacks.adversaries._sequence import (
    Candidates,
    Links,
    Pairs,
    frequency,
    links,
    marginals,
    pairs_of,
    recovered,
    table_of,
)
from clinveil.attacks.adversaries.own_vectors import shadow_matrix
from clinveil.attacks.adversary import (
    Adversary,
    AdversaryView,
    Knowledge,
    Recovery,
    adversaries,
    entries,
)
from clinveil.attacks.threats import Holding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.scale import threads

NEVER_ITSELF = ("neighbours",)  # public mechanisms that never keep a word
DOUBT = 0.2  # weight of frequency ranks and of the background relative to shadow vectors
LINKS = 8_000_000  # links kept between rounds, 16 bytes each
# EM rounds, and released words used in each
ROUNDS = 5
WORDS = 30_000
MOST = 30  # maximum source words of an output
PRIOR_WEIGHT = 2.0  # of the initial probabilities of an input, in occurrences


@adversaries.register("decipher")
class Decipher(Adversary):
    """Estimate the channel by expectation-maximization, from the word pairs of other notes.

    Candidates and initial probabilities come from shadow vectors and from equal frequency ranks. If
    the release shuffles words, the other notes are shuffled in the same way before counting.
    Source: Ravi and Knight 2011, section 3 (decipherment by EM with a fixed language model); threat
    model A9 (iii).
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "vectors"})
    in_release = ({"vectors": False}, {})
    max_words = 8_000
    order: ClassVar[int] = 530
    vectors: bool = flag(True, "Also start from the shadow channel.")

    @property
    def holding(self) -> Holding:
        """Return `recipient`, or `shadow` where shadow vectors are used."""
        return "shadow" if self.vectors else "recipient"

    @property
    def variant(self) -> str:
        """Return whether vectors are used."""
        return "" if self.vectors else "without vectors"

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Return the candidates after the last round, weighed by context."""
        pairs, estimate = view.cached(
            ("decipher", id(view.others), self), lambda: self._estimate(view, rng)
        )
        return recovered(view, pairs, estimate)

    def _estimate(self, view: AdversaryView, rng: Generator) -> tuple[Pairs, Candidates]:
        """Return word pairs of other notes, and P(y | x) after all rounds on the first `WORDS`
        released words.
        """
        n_words = view.prior.size
        outputs = frequency(view.released, view.prior.size)
        pairs = pairs_of(view.others, view.channel.policy, n_words, rng)
        table = self._first(view, rng)
        frequencies = np.repeat(outputs, np.diff(table.starts))
        first = estimate = _of_inputs(table, table.inverse(view.prior).weights * frequencies)
        ends = np.cumsum([note.size for note in view.released])
        notes = view.released[: int(np.searchsorted(ends, WORDS)) + 1]
        prepared = _prepared(notes, view.threads, pairs, table)
        for _ in range(ROUNDS):
            counts = _counted(prepared, view.threads, pairs, estimate)
            estimate = _of_inputs(table, counts + PRIOR_WEIGHT * first.weights)
        return pairs, estimate

    def _first(self, view: AdversaryView, rng: Generator) -> Candidates:
        ranks = _by_rank(view, MOST)
        joint = ranks / ranks.sum()
        if view.channel.mechanism not in NEVER_ITSELF:
            joint = csc_matrix(joint + diags_array(view.prior))
        if self.vectors:
            own = csc_matrix(diags_array(view.prior) @ shadow_matrix(view, rng))
            joint = joint * DOUBT + own / max(own.sum(), 1e-300)
        background = DOUBT * frequency(view.released, view.prior.size)
        return table_of(csc_matrix(joint), background, view.prior, MOST)


Prepared = tuple[Ints, Ints, Links | None]
"""Offsets and indices of the candidates of a note, the same in all rounds, and their links if these
are stored.
"""


def _prepared(
    released: Sequence[Ints], workers: int, pairs: Pairs, table: Candidates
) -> list[Prepared]:
    """Find the candidates of all notes and the links of the first ones, about `LINKS` of them."""
    stored = 0

    def prepare(note: Ints) -> Prepared:
        nonlocal stored
        begin, indices = entries(table.starts, note)
        linked = links(begin, table.rows[indices], pairs) if stored < LINKS else None
        stored += linked[1].size if linked else 0
        return begin, indices, linked

    return list(threads(workers)(prepare, released))


def _counted(
    released: Sequence[Prepared], workers: int, pairs: Pairs, estimate: Candidates
) -> Doubles:
    """Return the expected occurrences of each entry in released notes, under the current
    probabilities.
    """
    counts = np.zeros(estimate.rows.size)

    def chances_of(note: Prepared) -> tuple[Ints, Doubles]:
        (begin, indices, linked), rows = note, estimate.rows[note[1]]
        return indices, marginals(
            begin, rows, estimate.weights[indices], pairs, linked or links(begin, rows, pairs)
        )

    for indices, chances in threads(workers)(chances_of, released):
        np.add.at(counts, indices, chances)
    return counts


def _of_inputs(table: Candidates, weights: Doubles) -> Candidates:
    """Scale the weights so that those of each input sum to 1: P(y | x)."""
    totals = np.bincount(table.rows, weights)
    return Candidates(
        table.starts, table.rows, np.asarray(weights / np.maximum(totals, 1e-300)[table.rows])
    )


def _by_rank(view: AdversaryView, width: int) -> csc_matrix:
    """Return inputs of similar frequency rank for each output; weights (x, y) decrease with the
    rank difference.
    """
    n_words = view.prior.size
    inputs = np.argsort(-view.prior, kind="stable")
    outputs = np.argsort(-frequency(view.released, n_words), kind="stable")
    steps = np.arange(-(width // 2), width // 2 + 1)
    rank = np.repeat(np.arange(n_words), steps.size)
    other = rank + np.tile(steps, n_words)
    valid = (other >= 0) & (other < n_words)
    weight = 1 / (1 + np.abs(np.tile(steps, n_words)))
    x = inputs[other[valid]]
    y = outputs[rank[valid]]
    return csc_matrix(coo_matrix((weight[valid] * view.prior[x], (x, y)), shape=(n_words, n_words)))
