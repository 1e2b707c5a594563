"""Known-plaintext adversary: a recipient with some notes in plain and released form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.attacks.adversaries._sequence import (
    BigramCounts,
    BigramTable,
    Candidates,
    frequency,
    recovered,
    recovered_in_context,
    table_of,
)
from clinveil.attacks.adversaries.own_vectors import (
    channel_with_model,
    shadow_channel,
    shadow_matrix,
)
from clinveil.attacks.adversary import (
    Adversary,
    AdversaryView,
    Knowledge,
    NoteRows,
    Recovery,
)
from clinveil.attacks.threats import HOLDINGS, Holding
from clinveil.channel import Mechanism, mechanism_of
from clinveil.core import Doubles, Ints, Mask, setting

TRUSTS = 10.0 ** np.arange(-3, 4)
# Weight of the release's frequencies relative to a shadow channel.
DOUBTS = (
    0.05,
    0.2,
    0.5,
    0.8,
    1.0,
)
SHADOW_DRAWS = 3.0  # draws that the neighbours of shadow vectors count for, in context
NEW_NEIGHBOUR = 0.01  # probability of a neighbour that the shadow vectors lack
PAIRS = 200  # known pairs, unless fewer are requested
# Words that context may choose where the pairs contain no evidence; candidates of an output.
WIDE = 100
MOST = 140


class KnownPlaintext(Adversary):
    """Learn the replacements of each word from notes known in plain and released form.

    P(y | x) is (c(x, y) + b q(y | x)) / (c(x) + b). q mixes a shadow channel (vectors of other
    notes), the frequency of y in the release, and y = x by the share of known words that are
    unchanged. b and the mixture maximize the leave-one-out likelihood of the pairs. Word
    pairs of other notes weigh all words of a note jointly.
    """

    knowledge: ClassVar[frozenset[Knowledge]] = frozenset({"others", "pairs", "vectors"})
    in_release = ({"notes": 20}, {"notes": 200})
    max_words = 16_000
    order: ClassVar[int] = 540
    notes: int | None = setting(None, "Number of known pairs; default: all.", ge=1)

    @property
    def holding(self) -> Holding | None:
        """Return the adversary with this number of pairs; None if the table has none."""
        return next(
            (holding for holding in HOLDINGS if holding == f"pairs-{self.notes or PAIRS}"), None
        )

    @property
    def variant(self) -> str:
        """Return the number of pairs."""
        return "" if self.notes is None else f"{self.notes} note{'s'[: self.notes > 1]}"

    def is_applicable(self, view: AdversaryView) -> bool:
        """Return whether the view has this number of known pairs."""
        return super().is_applicable(view) and len(view.pairs) >= (self.notes or 1)

    def recover(self, view: AdversaryView, rng: Generator) -> list[Recovery]:
        """Recover each note; words outside the pairs are weighed by their frequency in other
        notes.
        """
        if view.channel.in_context:
            name = "pairs in context", id(view.others), id(view.pairs), self
            mechanism, pairs = view.cached(name, lambda: self._in_context(view, rng))
            return recovered_in_context(view, pairs, mechanism)
        name = "known pairs", id(view.others), id(view.pairs), self
        table, pairs = view.cached(name, lambda: self._tables(view, rng))
        return recovered(view, pairs, table)

    def _in_context(self, view: AdversaryView, rng: Generator) -> tuple[Mechanism, BigramTable]:
        """Return the mechanism of neighbours learned from the pairs, and the word pairs of plain
        notes.
        """
        known = view.pairs[: self.notes]
        n_words = len(view.channel.words)
        plain = [*view.others, *(note.truth for note in known)]
        shadow = shadow_channel(view, rng)
        own = followed_draws(known, mechanism_of(shadow), n_words)
        matrix = shadow.matrix()[:n_words] * SHADOW_DRAWS + own
        learned = replace(channel_with_model(view, matrix), policy=view.channel.policy)
        return mechanism_of(learned), BigramCounts.of(plain, n_words).tables

    def _tables(self, view: AdversaryView, rng: Generator) -> tuple[Candidates, BigramTable]:
        """Return candidates with P(output | input) up to a factor, and the word pairs of plain
        notes.
        """
        known = view.pairs[: self.notes]
        n_words = len(view.channel.words)
        plain = [*view.others, *(note.truth for note in known)]
        prior = frequency(plain, n_words)
        outputs = frequency(view.released, n_words)
        shadow = shadow_matrix(view, rng)
        draws = count_draws(known, n_words)
        table = pairs_table(draws, prior, outputs, shadow)
        return table.inverse(prior), BigramCounts.of(plain, n_words).tables


def pairs_table(
    draws: DrawCounts, prior: Doubles, outputs: Doubles, shadow: csr_matrix
) -> Candidates:
    """Return candidates of each output from known draws and a shadow channel.

    Args:
        prior, outputs: (n_words,) shares of inputs and of outputs. shadow: (n_words, n_words)
            P(output | input), rows may be empty.
    """
    n_words = prior.size
    totals = np.bincount(draws.inputs, draws.counts, n_words).astype(np.float64)
    unchanged = float(
        draws.counts[draws.inputs == draws.outputs].sum() / max(draws.counts.sum(), 1e-300)
    )
    trust, doubt = _fitted(draws, totals, outputs, shadow, unchanged)
    scale = prior / (totals + trust)
    joint = csc_matrix(
        (draws.counts * scale[draws.inputs], (draws.inputs, draws.outputs)),
        shape=(n_words, n_words),
    )
    base = trust * scale * (1 - unchanged)
    joint = csc_matrix(joint + diags_array(base * (1 - doubt)) @ shadow)
    if unchanged:
        joint = csc_matrix(joint + diags_array(unchanged * trust * scale))
    return table_of(joint, outputs, base * np.where(_empty(shadow), 1.0, doubt), MOST, WIDE)


def followed_draws(notes: Sequence[NoteRows], mechanism: Mechanism, n_words: int) -> csr_matrix:
    """Return how often each input is expected to have drawn each output as its neighbour, (n_words,
    n_words): draws of a language model are not counted.
    """
    total = csr_matrix((n_words, n_words))
    for note in notes:
        table = note.likelihood(mechanism)
        position = np.repeat(np.arange(len(note)), np.diff(table.starts))
        is_truth = table.rows == note.truth[position]
        near = np.zeros(len(note))
        near[position[is_truth]] = table.chances[is_truth] - table.others[position[is_truth]]
        near = np.maximum(near, NEW_NEIGHBOUR)
        followed = near / (near + table.others)
        places = note.truth < n_words
        ends = note.truth[places], note.outputs[places]
        total = total + csr_matrix((followed[places], ends), shape=(n_words, n_words))
    return csr_matrix(total)


def _fitted(
    draws: DrawCounts, totals: Doubles, outputs: Doubles, shadow: csr_matrix, unchanged: float
) -> tuple[float, float]:
    """Return the b and the weight of the release's frequencies in q with the highest leave-one-out
    likelihood.

    b is the number of occurrences that q(y | x) weighs.
    """
    rest = totals[draws.inputs] - 1
    same = draws.inputs == draws.outputs
    drawn = np.asarray(shadow[draws.inputs, draws.outputs]).ravel()
    frequency_of = outputs[draws.outputs]
    empty = _empty(shadow)[draws.inputs]
    best = (-np.inf, 1.0, 1.0)
    for doubt in DOUBTS:
        mixed = np.where(empty, frequency_of, (1 - doubt) * drawn + doubt * frequency_of)
        base = (1 - unchanged) * mixed + unchanged * same
        for trust in TRUSTS:
            fit = (draws.counts * np.log((draws.counts - 1 + trust * base) / (rest + trust))).sum()
            best = max(best, (float(fit), float(trust), doubt))
    return best[1], best[2]


def _empty(shadow: csr_matrix) -> Mask:
    """Return which words have no row in the shadow channel, (n_words,)."""
    return np.asarray(np.diff(shadow.indptr) == 0)


class DrawCounts(NamedTuple):
    """How often an input produced an output: inputs, outputs and counts (n_pairs,), sorted by input
    and output.
    """

    inputs: Ints
    outputs: Ints
    counts: Doubles


def count_draws(notes: Sequence[NoteRows], n_words: int) -> DrawCounts:
    """Count draws in some notes; unknown words are ignored."""
    truth = np.concatenate([note.truth for note in notes])
    outputs = np.concatenate([note.outputs for note in notes])
    known = truth < n_words
    keys = truth[known] * np.int64(n_words) + outputs[known]
    pairs, counts = np.unique(keys, return_counts=True)
    return DrawCounts(pairs // n_words, pairs % n_words, counts.astype(np.float64))
