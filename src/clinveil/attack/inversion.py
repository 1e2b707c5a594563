"""Token inversion: what an attacker who holds the channel and the owner's word frequencies reads out of one draw.

Exact, context-free figures, no simulation. The attacker sees an output y and names the input x with the largest
pi(x) C(y|x), which no context-free attacker can better. An attacker who reads context does better, so these are lower
bounds of the risk.

What counts as an input. Every word of the channel with a count is one. Every word *type* that the channel does not
know is one too: all of them share the unknown row, so only the most frequent of them can ever be named. Tokens whose
row is empty are dropped, give no output, and are left out of all shares (`detail["dropped"]` counts them).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, diags_array

from clinveil.channel.channel import Channel
from clinveil.errors import InputError
from clinveil.finding import Detail, Finding

RARE = 20
NO_COUNTS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
SOURCE = "Bayes vulnerability: Smith 2009, FoSSaCS; Alvim et al. 2020, The Science of Quantitative Information Flow"


@dataclass(frozen=True)
class Stratum:
    """Some of the inputs: how many tokens each row stands for, and how many a right guess of that row wins.

    Attributes:
        mass: (n_words + 1,) tokens by row; the last row is all unknown words together.
        won: (n_words + 1,) the same, but for the unknown row only its most frequent word.
    """

    mass: NDArray[np.float64]
    won: NDArray[np.float64]

    @property
    def tokens(self) -> int:
        """How many tokens it holds."""
        return int(self.mass.sum())


@dataclass(frozen=True)
class Inputs:
    """A channel with the frequencies of what goes in.

    Attributes:
        counts: (n_words,) occurrences of each word in the owner's notes.
        unknown: (n_types,) occurrences of each word type that the channel does not know.

    Raises:
        InputError: counts of another shape, negative, or nothing that comes out.
    """

    channel: Channel
    counts: NDArray[np.int64]
    unknown: NDArray[np.int64] = field(default_factory=lambda: NO_COUNTS)

    def __post_init__(self) -> None:
        n_words = len(self.channel.words)
        if self.counts.shape != (n_words,):
            raise InputError(f"{n_words} words in the channel, but counts of shape {self.counts.shape}")
        if (self.counts < 0).any() or (self.unknown < 0).any():
            raise InputError("a count of words is negative")
        if not self.all.tokens:
            raise InputError("no token comes out of this channel", remedy="count the words of the notes it is for")

    @cached_property
    def speaks(self) -> NDArray[np.bool_]:
        """(n_words + 1,) which rows have an output at all."""
        return np.asarray(np.diff(self.channel.indptr) > 0)

    def below(self, limit: float) -> Stratum:
        """The words of fewer than `limit` occurrences that have an output."""
        known = np.where(self.counts < limit, self.counts, 0)
        unknown = self.unknown[self.unknown < limit]
        mass = np.append(known, unknown.sum()) * self.speaks
        # The guesser names the most frequent unknown word of all; it wins here only if it is one of these.
        top = self.unknown.max(initial=0)
        won = np.append(known, top if top < limit else 0) * self.speaks
        return Stratum(mass.astype(np.float64), won.astype(np.float64))

    @cached_property
    def all(self) -> Stratum:
        """All words that have an output."""
        return self.below(np.inf)

    @property
    def dropped(self) -> int:
        """Tokens that have no output."""
        return int(self.counts.sum() + self.unknown.sum()) - self.all.tokens

    @cached_property
    def joint(self) -> csc_matrix:
        """What a right guess of x at output y wins, in tokens: (n_words + 1, n_words), columns sorted by row."""
        matrix: csc_matrix = csc_matrix(diags_array(self.all.won) @ self.channel.matrix())
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    @cached_property
    def outputs(self) -> NDArray[np.float64]:
        """(n_words,) expected tokens of each output."""
        return np.asarray(self.channel.matrix().T @ self.all.mass)

    @cached_property
    def guesses(self) -> NDArray[np.int64]:
        """(n_words,) the row that the best guesser names at each output, -1 where it never comes out.

        Ties go to the first row, which is the more frequent word where the vocabulary is sorted so.
        """
        joint = self.joint
        columns = np.repeat(np.arange(joint.shape[1]), np.diff(joint.indptr))
        best = np.zeros(joint.shape[1])
        np.maximum.at(best, columns, joint.data)
        places = np.flatnonzero(joint.data == best[columns])
        reached, first = np.unique(columns[places], return_index=True)
        rows = np.full(joint.shape[1], -1, dtype=np.int64)
        rows[reached] = joint.indices[places[first]]
        return rows

    def recovered(self, part: Stratum) -> float:
        """The share of these tokens that the best guesser names."""
        outputs = np.flatnonzero(self.guesses >= 0)
        rows = self.guesses[outputs]
        hits = np.asarray(self.channel.matrix()[rows, outputs]).ravel() * part.won[rows]
        return float(hits.sum() / part.mass.sum())

    def unseeing(self, part: Stratum) -> float:
        """The share of these tokens that is right when always the most frequent word is named."""
        return float(part.won[np.argmax(self.all.won)] / part.mass.sum())

    def shuffled(self, part: Stratum) -> float:
        """The share of these tokens that the best guesser names when the outputs are shuffled among all tokens."""
        outputs = np.flatnonzero(self.guesses >= 0)
        chance = self.outputs[outputs] / self.outputs.sum()
        return float((chance * part.won[self.guesses[outputs]]).sum() / part.mass.sum())


def inversion(
    channel: Channel,
    counts: NDArray[np.int64],
    unknown: NDArray[np.int64] = NO_COUNTS,
    *,
    rare: int = RARE,
) -> list[Finding]:
    """The exact figures of one draw: recovered (all, rare), single inputs, effective candidates, leakage.

    Args:
        counts: (n_words,) occurrences of each word of the channel in the owner's notes.
        unknown: (n_types,) occurrences of each word type that the channel does not know.
        rare: words of fewer occurrences are rare.

    Raises:
        InputError: counts that do not fit the channel, or nothing comes out.
    Source: Smith 2009; facts in docs (attack A2 of the threat model).
    """
    inputs = Inputs(channel, counts, unknown)
    detail: Detail = {"draws": 1, "unit": "tokens", "interval": "exact, no sampling", "dropped": inputs.dropped}
    return [
        _recovered(inputs, inputs.all, "attack.inversion", {**detail, "stratum": "all"}),
        _recovered(inputs, inputs.below(rare), "attack.inversion_rare", {**detail, "stratum": f"below {rare}"}),
        _single(inputs, detail),
        _candidates(inputs, detail),
        _leakage(inputs, detail),
    ]


def _recovered(inputs: Inputs, part: Stratum, measure: str, detail: Detail) -> Finding:
    types = int(np.count_nonzero(part.mass[:-1])) + int(part.mass[-1] > 0)
    if not part.tokens:
        why = "no such word in the notes"
        return Finding(measure, None, 0, "lower", source=SOURCE, detail={**detail, "why": why})
    return Finding(
        measure,
        inputs.recovered(part),
        part.tokens,
        "lower",
        chance=inputs.unseeing(part),
        control=inputs.shuffled(part),
        source=SOURCE,
        detail={**detail, "types": types, "control": "the same guesser, outputs shuffled among all tokens"},
    )


def _single(inputs: Inputs, detail: Detail) -> Finding:
    """The share of tokens whose output has one possible input: read with certainty."""
    candidates = np.diff(inputs.joint.indptr)
    if types := np.count_nonzero(inputs.unknown):  # one row stands for all of them
        candidates[inputs.channel.row(inputs.channel.unknown)[0]] += types - 1
    share = float(inputs.outputs[candidates == 1].sum() / inputs.outputs.sum())
    return Finding(
        "attack.inversion_single",
        share,
        inputs.all.tokens,
        "lower",
        chance=0.0,
        source="|R(y)| = 1: the inverse image of the output, words that do not occur left out",
        detail={**detail, "outputs": int((candidates == 1).sum()), "outputs_reached": int((candidates > 0).sum())},
    )


def entropy(weights: NDArray[np.float64]) -> float:
    """Shannon entropy in bits of weights that need not sum to 1 (Shannon 1948)."""
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())


def _candidates(inputs: Inputs, detail: Detail) -> Finding:
    """2^H(X|Y), by H(X|Y) = H(X) + H(Y|X) - H(Y)."""
    channel = inputs.channel
    rows = np.repeat(np.arange(len(channel.words) + 1), np.diff(channel.indptr))
    bits = -channel.probabilities * np.log2(channel.probabilities)
    noise = float((bits * inputs.all.mass[rows]).sum() / inputs.all.mass.sum())
    unknown = inputs.unknown.astype(np.float64) * inputs.speaks[-1]
    prior = entropy(np.append(inputs.all.mass[:-1], unknown))
    left = max(0.0, prior + noise - entropy(inputs.outputs))
    return Finding(
        "attack.inversion_candidates",
        2.0**left,
        inputs.all.tokens,
        "higher",
        chance=2.0**prior,
        source="effective candidates 2^H(X|Y): Shannon 1948; chance is 2^H(X), without looking",
        detail={**detail, "bits_left": left, "bits_before": prior},
    )


def _leakage(inputs: Inputs, detail: Detail) -> Finding:
    ratio = inputs.recovered(inputs.all) / inputs.unseeing(inputs.all)
    live = inputs.channel.matrix()[inputs.all.mass > 0]
    capacity = float(np.log2(live.max(axis=0).sum()))
    return Finding(
        "attack.inversion_leakage",
        max(0.0, float(np.log2(ratio))),
        inputs.all.tokens,
        "lower",
        chance=0.0,
        source="min-entropy leakage log2(V1/V0), capacity log2 sum_y max_x C(y|x): Smith 2009; Braun et al. 2009",
        detail={**detail, "unit": "bits a token", "capacity_bits": capacity},
    )
