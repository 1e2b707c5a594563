"""Token inversion: words recovered from one draw by an attacker with the channel and the owner's word frequencies.

Exact, context-free figures without simulation. An attacker who uses context recovers more, so all are lower bounds of
the risk. Names are a separate band, because a list of surnames and a "Mr." before the word are enough to know that a
word is a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import (
    EXACT,
    NO_COUNTS,
    RARE,
    Inputs,
    channel_and_counts,
    frequencies,
    name_forms,
)
from clinveil.channel.channel import Channel
from clinveil.core.finding import Detail, Finding
from clinveil.core.settings import flag
from clinveil.core.types import Ints


@attacks.register("inversion")
class Inversion(Attack):
    """Measure how many words, rare words and names are recovered from one draw of the channel."""

    needs = frozenset({"channel", "counts"})
    on_release = True
    order = 100
    rare: int = flag(RARE, "Words with fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; with known patients also on their names."""
        channel, known, unknown = channel_and_counts(context)
        findings = inversion(channel, known, frequencies(unknown), rare=self.rare)
        if context.known:
            findings += inversion_names(channel, context.full_names, known, unknown)
        return findings


def inversion(channel: Channel, counts: Ints, unknown: Ints = NO_COUNTS, *, rare: int = RARE) -> list[Finding]:
    """Return the exact figures of one draw: recovered (all, rare) and single inputs.

    Args:
        counts, unknown: as in `Inputs`, including errors. rare: words with fewer occurrences are rare.

    Source: Smith 2009.
    """
    inputs = Inputs(channel, counts, unknown)
    detail: Detail = {"draws": 1, "dropped": inputs.dropped}
    return [
        inputs.all.finding("attack.inversion", {**detail, "stratum": "all"}),
        inputs.below(rare).finding("attack.inversion_rare", {**detail, "stratum": f"below {rare}"}),
        _single(inputs, detail),
    ]


def inversion_names(
    channel: Channel, names: Iterable[str], counts: Ints, unknown: Mapping[str, int] = MappingProxyType({})
) -> list[Finding]:
    """Measure the share of name tokens recovered from one draw if the attacker knows that the word is a name; exact.

    Names that are also other words ("Blood") are left out, because most of their tokens are not names; `left_out` in
    the detail counts them.

    Args:
        names: full names or parts of them. unknown: occurrences of the out-of-vocabulary words.
    """
    forms, left_out = name_forms(names)
    inputs = Inputs(channel, counts, frequencies(dict(unknown)))
    known = np.array([word in forms for word in channel.words], dtype=np.bool_)
    band = inputs.only(known, np.array([word in forms for word in unknown], dtype=np.bool_))
    detail = {"draws": 1, "left_out": left_out}
    return [band.finding("attack.inversion_names", detail)]


def _single(inputs: Inputs, detail: Detail) -> Finding:
    """Measure the share of tokens with an output that has only one possible input."""
    posterior, outputs = inputs.all.posterior, inputs.all.outputs
    single = posterior.single(int(np.count_nonzero(inputs.unknown)))
    share = float(outputs[single].sum() / outputs.sum())
    detail_of = {"outputs": int(single.sum()), "outputs_reached": int((posterior.candidates > 0).sum())}
    source = "|R(y)| = 1: the inverse image of the output, without words that do not occur"
    chance = "a mechanism with several inputs for every output"
    about: dict[str, Any] = {"source": source, "chance": 0.0, "chance_is": chance, "unit": "tokens", "method": EXACT}
    n = inputs.all.tokens
    return Finding("attack.inversion_single", share, n, "lower", detail={**detail, **detail_of}, **about)
