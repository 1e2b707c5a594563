"""Token inversion: what an attacker who holds the channel and the owner's word frequencies reads out of one draw.

Exact, context-free figures, no simulation. The attacker sees an output y and names the input x with the largest
pi(x) C(y|x), which no context-free attacker can better. Of a stratum (rare words, names) the figure is that of an
attacker who knows that the word is one of them and names none but these. An attacker who reads context does better,
so all are lower bounds of the risk.

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
from clinveil.core.errors import InputError
from clinveil.core.finding import Detail, Finding

RARE = 20
EXACT = "exact, no sampling"
BLIND = "always naming the most frequent of these words"
SHUFFLED = "the same guesser, outputs shuffled among these tokens"
NO_COUNTS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
SOURCE = "Bayes vulnerability: Smith 2009, FoSSaCS; Alvim et al. 2020, The Science of Quantitative Information Flow"


@dataclass(frozen=True)
class Stratum:
    """Some of the inputs: how many tokens each row stands for, and how many a right guess of that row wins.

    Attributes:
        mass: (n_words + 1,) tokens by row; the last row is all unknown words of the stratum together.
        won: (n_words + 1,) the same, but for the unknown row only the most frequent of these words.
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

    def only(self, known: NDArray[np.bool_], unknown: NDArray[np.bool_]) -> Stratum:
        """These words that have an output: (n_words,) and (n_types,) bool, words of the channel and unknown ones."""
        outside = self.unknown[unknown]
        mass = np.append(np.where(known, self.counts, 0), outside.sum()) * self.speaks
        won = np.append(np.where(known, self.counts, 0), outside.max(initial=0)) * self.speaks
        return Stratum(mass.astype(np.float64), won.astype(np.float64))

    def below(self, limit: float) -> Stratum:
        """The words of fewer than `limit` occurrences that have an output."""
        return self.only(self.counts < limit, self.unknown < limit)

    @cached_property
    def all(self) -> Stratum:
        """All words that have an output."""
        return self.below(np.inf)

    @property
    def dropped(self) -> int:
        """Tokens that have no output."""
        return int(self.counts.sum() + self.unknown.sum()) - self.all.tokens

    def joint(self, part: Stratum) -> csc_matrix:
        """What a right guess of x at output y wins, in tokens: (n_words + 1, n_words), columns sorted by row."""
        matrix: csc_matrix = csc_matrix(diags_array(part.won) @ self.channel.matrix())
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    def outputs(self, part: Stratum) -> NDArray[np.float64]:
        """(n_words,) expected tokens of each output that come from these words."""
        return np.asarray(self.channel.matrix().T @ part.mass)

    def guesses(self, part: Stratum) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Of an attacker who knows that the word is of this stratum: the row named at each output, and what it wins.

        Both (n_words,); -1 and 0 where none of these words comes out. Ties go to the first row, which is the more
        frequent word where the vocabulary is sorted so.
        """
        joint = self.joint(part)
        columns = np.repeat(np.arange(joint.shape[1]), np.diff(joint.indptr))
        best = np.zeros(joint.shape[1])
        np.maximum.at(best, columns, joint.data)
        places = np.flatnonzero(joint.data == best[columns])
        reached, first = np.unique(columns[places], return_index=True)
        rows = np.full(joint.shape[1], -1, dtype=np.int64)
        rows[reached] = joint.indices[places[first]]
        return rows, best

    def recovered(self, part: Stratum) -> float:
        """The share of these tokens that the best guesser of this stratum names: sum_y max_x pi(x) C(y|x), over pi."""
        return float(self.guesses(part)[1].sum() / part.mass.sum())

    def unseeing(self, part: Stratum) -> float:
        """The share of these tokens that is right when always their most frequent word is named."""
        return float(part.won.max() / part.mass.sum())

    def shuffled(self, part: Stratum) -> float:
        """The share of these tokens that the same guesser names when their outputs are shuffled among them."""
        rows, outputs = self.guesses(part)[0], self.outputs(part)
        reached = outputs > 0
        chance = outputs[reached] / outputs.sum()
        return float((chance * part.won[rows[reached]]).sum() / part.mass.sum())


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
    detail: Detail = {"draws": 1, "dropped": inputs.dropped}
    return [
        recovered(inputs, inputs.all, "attack.inversion", {**detail, "stratum": "all"}),
        recovered(inputs, inputs.below(rare), "attack.inversion_rare", {**detail, "stratum": f"below {rare}"}),
        _single(inputs, detail),
        _candidates(inputs, detail),
        _leakage(inputs, detail),
    ]


def recovered(inputs: Inputs, part: Stratum, measure: str, detail: Detail) -> Finding:
    """The share of a stratum that its best guesser names from one draw, beside chance and control; exact."""
    if not part.tokens:
        why = "no such word in the notes"
        return Finding(measure, None, 0, "lower", source=SOURCE, detail={**detail, "why": why}, unit="tokens")
    types = int(np.count_nonzero(part.mass[:-1])) + int(part.mass[-1] > 0)
    return Finding(
        measure,
        inputs.recovered(part),
        part.tokens,
        "lower",
        chance=inputs.unseeing(part),
        control=inputs.shuffled(part),
        source=SOURCE,
        detail={**detail, "types": types},
        unit="tokens",
        method=EXACT,
        chance_is=BLIND,
        control_is=SHUFFLED,
        control_kind="negative",
    )


def _single(inputs: Inputs, detail: Detail) -> Finding:
    """The share of tokens whose output has one possible input: read with certainty."""
    candidates = np.diff(inputs.joint(inputs.all).indptr)
    if types := np.count_nonzero(inputs.unknown):  # one row stands for all of them
        candidates[inputs.channel.row(inputs.channel.unknown)[0]] += types - 1
    outputs = inputs.outputs(inputs.all)
    return Finding(
        "attack.inversion_single",
        float(outputs[candidates == 1].sum() / outputs.sum()),
        inputs.all.tokens,
        "lower",
        chance=0.0,
        source="|R(y)| = 1: the inverse image of the output, words that do not occur left out",
        detail={**detail, "outputs": int((candidates == 1).sum()), "outputs_reached": int((candidates > 0).sum())},
        unit="tokens",
        method=EXACT,
        chance_is="a mechanism whose outputs all have several inputs",
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
    left = max(0.0, prior + noise - entropy(inputs.outputs(inputs.all)))
    return Finding(
        "attack.inversion_candidates",
        2.0**left,
        inputs.all.tokens,
        "higher",
        chance=2.0**prior,
        source="effective candidates 2^H(X|Y): Shannon 1948; chance is 2^H(X), without looking",
        detail={**detail, "bits_left": left, "bits_before": prior},
        unit="tokens",
        method=EXACT,
        chance_is="not looking at the release",
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
        detail={**detail, "capacity_bits": capacity},
        unit="tokens",
        method=EXACT,
        chance_is="a release that is independent of the source",
    )
