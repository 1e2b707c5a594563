"""A channel with the frequencies of what goes in, and what the best guesser of some of the words wins from one draw.

The attacker sees an output y and names the input x with the largest pi(x) C(y|x), which no context-free attacker can
better. Of a band (rare words, names) the figure is that of an attacker who knows that the word is one of them and names
none but these.

What counts as an input. Every word of the channel with a count is one. Every word *type* that the channel does not
know is one too: all of them share the unknown row, so only the most frequent of them can ever be named. Tokens whose
row is empty are dropped, give no output, and are left out of all shares (`detail["dropped"]` counts them).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.sparse import csc_matrix, diags_array

from clinveil.attacks.attack import Context
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.finding import Detail, Finding
from clinveil.core.types import Doubles, Ints, Mask

RARE = 20
EXACT = "exact, no sampling"
BLIND = "always naming the most frequent of these words"
SHUFFLED = "the same guesser, outputs shuffled among these tokens"
NO_COUNTS: Ints = np.zeros(0, dtype=np.int64)
SOURCE = "Bayes vulnerability: Smith 2009, FoSSaCS; Alvim et al. 2020, The Science of Quantitative Information Flow"


def channel_and_counts(context: Context) -> tuple[Channel, Ints, dict[str, int]]:
    """The channel, the owner's word frequencies in its order, (n_words,), and those of the words it does not know.

    Raises ValueError for a context without them.
    """
    channel, counts = context.channel, context.counts
    if channel is None or counts is None:
        raise ValueError("an attack on a channel needs a channel and counts")
    known, unknown = np.zeros(len(channel.words), dtype=np.int64), {}
    for word, count in zip(counts.words, counts.counts.tolist(), strict=True):
        row = channel.ids.get(word)
        if row is None:
            unknown[word] = count
        else:
            known[row] = count
    return channel, known, unknown


def frequencies(unknown: dict[str, int]) -> Ints:
    """The occurrences of unknown words, (n_types,)."""
    return np.fromiter(unknown.values(), dtype=np.int64, count=len(unknown))


@dataclass(frozen=True)
class Band:
    """Some of the inputs: how many tokens each row stands for, and how many a right guess of that row wins.

    Attributes:
        mass: (n_words + 1,) tokens by row; the last row is all unknown words of the band together.
        won: (n_words + 1,) the same, but for the unknown row only the most frequent of these words.
    """

    mass: Doubles
    won: Doubles

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
        ValueError: counts of another shape, or negative. InputError: nothing comes out.
    """

    channel: Channel
    counts: Ints
    unknown: Ints = field(default_factory=lambda: NO_COUNTS)

    def __post_init__(self) -> None:
        n_words = len(self.channel.words)
        if self.counts.shape != (n_words,):
            raise ValueError(f"{n_words} words in the channel, but counts of shape {self.counts.shape}")
        if (self.counts < 0).any() or (self.unknown < 0).any():
            raise ValueError("a count of words is negative")
        if not self.all.tokens:
            raise InputError("no token comes out of this channel", remedy="count the words of the notes it is for")

    @cached_property
    def speaks(self) -> Mask:
        """(n_words + 1,) which rows have an output at all."""
        return np.asarray(np.diff(self.channel.indptr) > 0)

    def only(self, known: Mask, unknown: Mask) -> Band:
        """These words that have an output: (n_words,) and (n_types,) bool, words of the channel and unknown ones."""
        outside = self.unknown[unknown]
        mass = np.append(np.where(known, self.counts, 0), outside.sum()) * self.speaks
        won = np.append(np.where(known, self.counts, 0), outside.max(initial=0)) * self.speaks
        return Band(mass.astype(np.float64), won.astype(np.float64))

    def below(self, limit: float) -> Band:
        """The words of fewer than `limit` occurrences that have an output."""
        return self.only(self.counts < limit, self.unknown < limit)

    @cached_property
    def all(self) -> Band:
        """All words that have an output."""
        return self.below(np.inf)

    @property
    def dropped(self) -> int:
        """Tokens that have no output."""
        return int(self.counts.sum() + self.unknown.sum()) - self.all.tokens

    def joint(self, band: Band) -> csc_matrix:
        """What a right guess of x at output y wins, in tokens: (n_words + 1, n_words), columns sorted by row."""
        matrix: csc_matrix = csc_matrix(diags_array(band.won) @ self.channel.matrix())
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    def outputs(self, band: Band) -> Doubles:
        """(n_words,) expected tokens of each output that come from these words."""
        return np.asarray(self.channel.matrix().T @ band.mass)

    def guesses(self, band: Band) -> tuple[Ints, Doubles]:
        """Of an attacker who knows that the word is of this band: the row named at each output, and what it wins.

        Both (n_words,); -1 and 0 where none of these words comes out. Ties go to the first row, which is the more
        frequent word where the vocabulary is sorted so.
        """
        joint = self.joint(band)
        columns = np.repeat(np.arange(joint.shape[1]), np.diff(joint.indptr))
        best = np.zeros(joint.shape[1])
        np.maximum.at(best, columns, joint.data)
        places = np.flatnonzero(joint.data == best[columns])
        reached, first = np.unique(columns[places], return_index=True)
        rows = np.full(joint.shape[1], -1, dtype=np.int64)
        rows[reached] = joint.indices[places[first]]
        return rows, best

    def recovered(self, band: Band) -> float:
        """The share of these tokens that the best guesser of this band names: sum_y max_x pi(x) C(y|x), over pi."""
        return float(self.guesses(band)[1].sum() / band.mass.sum())

    def prior_vulnerability(self, band: Band) -> float:
        """The share of these tokens that is right when always their most frequent word is named."""
        return float(band.won.max() / band.mass.sum())

    def shuffled(self, band: Band) -> float:
        """The share of these tokens that the same guesser names when their outputs are shuffled among them."""
        rows, outputs = self.guesses(band)[0], self.outputs(band)
        reached = outputs > 0
        chance = outputs[reached] / outputs.sum()
        return float((chance * band.won[rows[reached]]).sum() / band.mass.sum())


def recovered(inputs: Inputs, band: Band, measure: str, detail: Detail) -> Finding:
    """The share of a band that its best guesser names from one draw, beside chance and control; exact."""
    if not band.tokens:
        why = "no such word in the notes"
        return Finding(measure, None, 0, "lower", source=SOURCE, detail={**detail, "why": why}, unit="tokens")
    types = int(np.count_nonzero(band.mass[:-1])) + int(band.mass[-1] > 0)
    return Finding(
        measure,
        inputs.recovered(band),
        band.tokens,
        "lower",
        chance=inputs.prior_vulnerability(band),
        control=inputs.shuffled(band),
        source=SOURCE,
        detail={**detail, "types": types},
        unit="tokens",
        method=EXACT,
        chance_is=BLIND,
        control_is=SHUFFLED,
        control_kind="negative",
    )
