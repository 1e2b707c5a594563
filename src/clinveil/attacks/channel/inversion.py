"""Token inversion: words recovered from one draw by an attacker with the channel and the owner's
word frequencies.

Exact, context-free figures without simulation. An attacker who uses context recovers more, so all
are lower bounds of the risk. Of a channel that draws in context these figures are not bounds,
because they use neither the weights of its neighbours nor the words written before: there,
`in_context.py` measures them on released notes, if there are any. Names are a separate band,
because a list of surnames and a "Mr." before the word are enough to know that a word is a name.

The attacker has an output y and names the input x with the largest pi(x) C(y|x); no context-free
attacker is better. For a band (rare words, names) the figure is that of an attacker who knows that
the word is in the band, and names only words of it. Inputs are every word of the channel with a
count, and every out-of-vocabulary word *type*. All out-of-vocabulary types share the unknown row,
so only the most frequent of them can ever be named. Tokens with an empty row are dropped, have no
output, and are left out of all shares (`numbers["dropped"]` counts them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Attack, Context, channel_and_counts
from clinveil.attacks.channel.in_context import inversion_in_context
from clinveil.channel import Channel, Posterior
from clinveil.core import Doubles, Finding, InputError, Ints, Mask, Numbers, setting, word_set
from clinveil.lexicons import is_name, is_not_word
from clinveil.stats import MeasureSpec

RARE = 20
FUNCTION = 150
"""Number of most frequent words treated as function words; all others are content words."""
EXACT = "exact, no sampling"
WITHOUT_CONTEXT = (
    "approximate: ignores the words written before and how they weigh the neighbours; measured on"
    " released notes where there are any"
)
CHANCE_IS = "always naming the most frequent of these words"
CONTROL_IS = "the same guesser, outputs shuffled among these tokens"
SINGLE = "|R(y)| = 1: the inverse image of the output, words that do not occur left out"
NO_SUCH_WORD = "no such word in the notes"
NO_COUNTS: Ints = np.zeros(0, dtype=np.int64)
SOURCE = (
    "Bayes vulnerability: Smith 2009, FoSSaCS; Alvim et al. 2020, The Science of Quantitative"
    " Information Flow"
)


def frequencies(unknown: dict[str, int]) -> Ints:
    """Return the occurrences of out-of-vocabulary words, (n_types,)."""
    return np.fromiter(unknown.values(), dtype=np.int64, count=len(unknown))


@dataclass(frozen=True, eq=False)
class Band:
    """A subset of the inputs: the tokens of each row, and the tokens that a right guess of that row
    recovers.

    Attributes:
        mass: (n_words + 1,) tokens by row; the last row holds all out-of-vocabulary words of the
            band.
        won: (n_words + 1,) the same, but the last row counts only the one word that the attacker
            would name.
    """

    channel: Channel
    mass: Doubles
    won: Doubles

    @property
    def tokens(self) -> int:
        """Return the number of tokens."""
        return int(self.mass.sum())

    @cached_property
    def posterior(self) -> Posterior:
        """Return the posterior of an attacker who knows that the word belongs to this band."""
        return self.channel.posterior(self.won)

    @cached_property
    def outputs(self) -> Doubles:
        """Return the expected tokens of each output that come from these words, (n_words,)."""
        return self.channel.outputs(self.mass)

    @property
    def recovered(self) -> float:
        """Return the share of these tokens that the best guesser names: sum_y max_x pi(x) C(y|x),
        over pi.
        """
        return self.posterior.vulnerability / float(self.mass.sum())

    @property
    def prior_vulnerability(self) -> float:
        """Return the share of tokens that are right if the most frequent word is always named."""
        return float(self.won.max() / self.mass.sum())

    @property
    def shuffled(self) -> float:
        """Return the share that the same guesser names if outputs are shuffled among these
        tokens.
        """
        rows = self.posterior.best[0]
        reached = self.outputs > 0
        chance = self.outputs[reached] / self.outputs.sum()
        return float((chance * self.won[rows[reached]]).sum() / self.mass.sum())

    def finding(self, measure: str, labels: tuple[str, ...], numbers: Numbers) -> Finding:
        """Return the finding of the share that the best guesser names from one draw, with chance
        and control; exact.
        """
        if not self.tokens:
            spec = MeasureSpec(measure=measure, source=SOURCE, unit="tokens")
            return spec.missing(NO_SUCH_WORD, labels=labels, numbers=numbers)
        types = int(np.count_nonzero(self.mass[:-1])) + int(self.mass[-1] > 0)
        return Finding(
            measure,
            self.recovered,
            self.tokens,
            "lower",
            chance=self.prior_vulnerability,
            chance_is=CHANCE_IS,
            control=self.shuffled,
            control_is=CONTROL_IS,
            control_kind="negative",
            source=SOURCE,
            labels=labels,
            numbers={**numbers, "types": types},
            unit="tokens",
            method=WITHOUT_CONTEXT if self.channel.in_context else EXACT,
        )


@dataclass(frozen=True, eq=False)
class Inputs:
    """A channel with its input frequencies.

    Attributes:
        counts: (n_words,) occurrences of each word in the owner's notes.
        unknown: (n_types,) occurrences of each out-of-vocabulary word type.

    Raises:
        ValueError: counts of another shape, or negative. InputError: nothing comes out.
    """

    channel: Channel
    counts: Ints
    unknown: Ints = field(default_factory=lambda: NO_COUNTS)

    def __post_init__(self) -> None:
        n_words = len(self.channel.words)
        if self.counts.shape != (n_words,):
            raise ValueError(
                f"{n_words} words in the channel, but counts of shape {self.counts.shape}"
            )
        if (self.counts < 0).any() or (self.unknown < 0).any():
            raise ValueError("a count of words is negative")
        if not self.all.tokens:
            raise InputError(
                "no token comes out of this channel", hint="count the words of the notes it is for"
            )

    def only(self, known: Mask, unknown: Mask) -> Band:
        """These words that have an output: (n_words,) and (n_types,) bool, words of the channel and
        unknown ones.
        """
        unknown_counts = self.unknown[unknown]
        mass = np.append(np.where(known, self.counts, 0), unknown_counts.sum())
        won = np.append(np.where(known, self.counts, 0), unknown_counts.max(initial=0))
        has_output = self.channel.has_output
        return Band(
            self.channel,
            (mass * has_output).astype(np.float64),
            (won * has_output).astype(np.float64),
        )

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


def word_strata(
    channel: Channel, counts: NDArray[Any], names: Iterable[str] = ()
) -> dict[str, Mask]:
    """Return a mask over the rows of the channel, (n_words + 1,), for each stratum.

    The unknown row belongs to all, rare and content. Names are as in `name_mask`.

    Args:
        counts: (n_words,) occurrences of the channel's words in the measured notes.
        names: full names or parts of them, for example of known patients.
    """
    function = np.zeros(counts.size, dtype=np.bool_)
    function[np.argsort(-counts, kind="stable")[:FUNCTION]] = True
    function &= counts > 0
    known = {
        "all": np.ones(counts.size, dtype=np.bool_),
        "rare": counts < RARE,
        "content": ~function,
    }
    strata = {name: np.append(mask, True) for name, mask in known.items()}
    strata["function"] = np.append(function, False)
    return strata | {"names": np.append(name_mask(channel.words, names), False)}


def name_mask(forms: Iterable[str], names: Iterable[str]) -> Mask:
    """Return which words are parts of `names`, or common first names and surnames, and are not also
    other words.

    They include eponyms (Foley).
    """
    listed = name_forms(names)[0]
    return np.array([is_name(form, listed, usual=True) for form in forms], dtype=np.bool_)


def name_forms(names: Iterable[str]) -> tuple[set[str], int]:
    """Return the words of names that are not also other words ("Blood" is), and how many are left
    out.
    """
    forms = word_set(names)
    only = set(filter(is_not_word, forms))
    return only, len(forms) - len(only)


def single_names(context: Context) -> list[Finding]:
    """Return the share of name tokens with a single possible input, for a gate of every release;
    empty without any.
    """
    channel, known, unknown = channel_and_counts(context)
    inputs = Inputs(channel, known, frequencies(unknown))
    names = name_mask(channel.words, context.full_names)
    band = inputs.only(names, name_mask(unknown, context.full_names))
    if not band.tokens:
        return []
    posterior = inputs.all.posterior
    occurring = (band.mass > 0)[:-1]
    single = posterior.single(int(np.count_nonzero(inputs.unknown)))
    owners = np.zeros(posterior.prior.size, dtype=np.bool_)
    owners[posterior.best[0][single]] = True
    share = float(band.outputs[single].sum() / band.outputs.sum())
    n = int(occurring.sum())
    words_single = int((owners[:-1] & names)[occurring].sum())
    return [
        Finding(
            "attack.channel_single",
            share,
            band.tokens,
            "lower",
            source=SINGLE,
            labels=("names",),
            numbers={"outputs": int(single.sum())},
            unit="tokens",
            method=EXACT,
        ),
        Finding(
            "attack.channel_single_words",
            words_single,
            n,
            "lower",
            source=SINGLE,
            labels=("names",),
            unit="words",
            method=EXACT,
        ),
    ]


class Inversion(Attack):
    """Measure how many words, rare words and names are recovered from one draw of the channel."""

    needs = frozenset({"channel", "counts"})
    on_release = True
    order = 100
    rare: int = setting(RARE, "Words with fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; with known patients also on their names."""
        channel, known, unknown = channel_and_counts(context)
        findings = inversion(channel, known, frequencies(unknown), rare=self.rare)
        if channel.in_context and context.released is not None and context.entered is not None:
            names = name_forms(context.full_names)[0] if context.known else set[str]()
            measured = inversion_in_context(context, names, rng, rare=self.rare)
            return [*measured, findings[-1]]
        if context.known:
            findings += inversion_names(channel, context.full_names, known, unknown)
        return findings


def inversion(
    channel: Channel, counts: Ints, unknown: Ints = NO_COUNTS, *, rare: int = RARE
) -> list[Finding]:
    """Return the exact figures of one draw: recovered (all, rare) and single inputs.

    Args:
        counts, unknown: as in `Inputs`, including errors. rare: words with fewer occurrences are
            rare.

    Source: Smith 2009.
    """
    inputs = Inputs(channel, counts, unknown)
    numbers: Numbers = {"draws": 1, "dropped": inputs.dropped}
    rare_words = (f"words seen below {rare} times",)
    return [
        inputs.all.finding("attack.inversion", ("all words",), numbers),
        inputs.below(rare).finding("attack.inversion_rare", rare_words, numbers),
        _single(inputs, numbers),
    ]


def inversion_names(
    channel: Channel,
    names: Iterable[str],
    counts: Ints,
    unknown: Mapping[str, int] = MappingProxyType({}),
) -> list[Finding]:
    """Measure the share of name tokens recovered from one draw if the attacker knows that the word
    is a name; exact.

    Names that are also other words ("Blood") are left out, because most of their tokens are not
    names; `left_out` counts them.

    Args:
        names: full names or parts of them. unknown: occurrences of the out-of-vocabulary words.
    """
    forms, left_out = name_forms(names)
    inputs = Inputs(channel, counts, frequencies(dict(unknown)))
    known = np.array([word in forms for word in channel.words], dtype=np.bool_)
    band = inputs.only(known, np.array([word in forms for word in unknown], dtype=np.bool_))
    return [band.finding("attack.inversion_names", (), {"draws": 1, "left_out": left_out})]


def _single(inputs: Inputs, numbers: Numbers) -> Finding:
    """Measure the share of tokens with an output that has only one possible input."""
    posterior = inputs.all.posterior
    outputs = inputs.all.outputs
    single = posterior.single(int(np.count_nonzero(inputs.unknown)))
    share = float(outputs[single].sum() / outputs.sum())
    return Finding(
        "attack.inversion_single",
        share,
        inputs.all.tokens,
        "lower",
        chance=0.0,
        chance_is="a mechanism with several inputs for every output",
        source="|R(y)| = 1: the inverse image of the output, without words that do not occur",
        numbers={
            **numbers,
            "outputs": int(single.sum()),
            "outputs_reached": int((posterior.candidates > 0).sum()),
        },
        unit="tokens",
        method=EXACT,
    )
