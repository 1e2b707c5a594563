"""Token inversion: what an attacker who holds the channel and the owner's word frequencies reads out of one draw.

Exact, context-free figures, no simulation: an attacker who reads context does better, so all are lower bounds of the
risk. Names are an own band: a list of surnames and a "Mr." before the word is all that it takes to know that a word is
one. Under memo `patient` an attacker can also count an output's places (`_patient_counts.py`). That is not measured
under `corpus`, where the places of the whole release count (a substitution cipher), nor under `rare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import EXACT, NO_COUNTS, RARE, Inputs, channel_and_counts, frequencies
from clinveil.attacks.channel._patient_counts import inversion_counts
from clinveil.attacks.channel._strata import name_forms
from clinveil.channel.channel import Channel
from clinveil.channel.posterior import entropy
from clinveil.core.finding import Detail, Finding
from clinveil.core.settings import flag
from clinveil.core.types import Ints
from clinveil.core.words import words_beside


@attacks.register("inversion")
class Inversion(Attack):
    """How many words, rare words and names are read back from one draw of the channel."""

    needs = frozenset({"channel", "counts"})
    words = words_beside(__file__)
    on_release = True
    order = 100
    rare: int = flag(RARE, "Words of fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """With known patients also their names; under memo `patient` also the attacker who counts."""
        channel, known, unknown = channel_and_counts(context)
        found = inversion(channel, known, frequencies(unknown), rare=self.rare)
        if context.known:
            found += inversion_names(channel, context.full_names, known, unknown)
        if channel.policy.scope == "patient" and context.entered is not None:
            found += inversion_counts(channel, known, context.entered, unknown, rng=rng, rare=self.rare)
        return found


def inversion(channel: Channel, counts: Ints, unknown: Ints = NO_COUNTS, *, rare: int = RARE) -> list[Finding]:
    """The exact figures of one draw: recovered (all, rare), single inputs, effective candidates, leakage.

    Args:
        counts, unknown: as in `Inputs`, which also says what is raised. rare: words of fewer occurrences are rare.

    Source: Smith 2009.
    """
    inputs = Inputs(channel, counts, unknown)
    detail: Detail = {"draws": 1, "dropped": inputs.dropped}
    return [
        inputs.all.finding("attack.inversion", {**detail, "stratum": "all"}),
        inputs.below(rare).finding("attack.inversion_rare", {**detail, "stratum": f"below {rare}"}),
        _single(inputs, detail),
        _candidates(inputs, detail),
        _leakage(inputs, detail),
    ]


def inversion_names(
    channel: Channel,
    names: Iterable[str],
    counts: Ints,
    unknown: Mapping[str, int] = MappingProxyType({}),
) -> list[Finding]:
    """The share of name tokens that are read back from one draw by who knows that a word is one of these names; exact.

    Names that are words as well ("Blood") are left out, for most of their tokens are no names; `left_out` in the detail
    counts them.

    Args:
        names: full names or parts of them. unknown: occurrences of the words that the channel does not know.
    """
    forms, left_out = name_forms(names)
    inputs = Inputs(channel, counts, frequencies(dict(unknown)))
    known = np.array([word in forms for word in channel.words], dtype=np.bool_)
    band = inputs.only(known, np.array([word in forms for word in unknown], dtype=np.bool_))
    detail = {"draws": 1, "left_out": left_out}
    return [band.finding("attack.inversion_names", detail)]


def _exact(measure: str, value: float, inputs: Inputs, detail: Detail, **told: Any) -> Finding:
    told = {"better": "lower", "chance": 0.0, "unit": "tokens", "method": EXACT, **told}
    return Finding(f"attack.inversion_{measure}", value, inputs.all.tokens, detail=detail, **told)


def _single(inputs: Inputs, detail: Detail) -> Finding:
    """The share of tokens whose output has one possible input: read with certainty."""
    posterior, outputs = inputs.all.posterior, inputs.all.outputs
    single = posterior.single(int(np.count_nonzero(inputs.unknown)))
    share = float(outputs[single].sum() / outputs.sum())
    reached = {"outputs": int(single.sum()), "outputs_reached": int((posterior.candidates > 0).sum())}
    source = "|R(y)| = 1: the inverse image of the output, words that do not occur left out"
    chance = "a mechanism whose outputs all have several inputs"
    return _exact("single", share, inputs, {**detail, **reached}, source=source, chance_is=chance)


def _candidates(inputs: Inputs, detail: Detail) -> Finding:
    """2^H(X|Y), by H(X|Y) = H(X) + H(Y|X) - H(Y)."""
    types = inputs.all.types
    before, left = entropy(types), inputs.channel.bits_left(inputs.all.mass, types)
    source = "effective candidates 2^H(X|Y): Shannon 1948; chance is 2^H(X), without looking"
    told = {"source": source, "chance": 2.0**before, "chance_is": "not looking at the release", "better": "higher"}
    return _exact("candidates", 2.0**left, inputs, {**detail, "bits_left": left, "bits_before": before}, **told)


def _leakage(inputs: Inputs, detail: Detail) -> Finding:
    capacity = inputs.channel.capacity(inputs.all.mass > 0)
    source = "min-entropy leakage log2(V1/V0), capacity log2 sum_y max_x C(y|x): Smith 2009; Braun et al. 2009"
    told = {"source": source, "chance_is": "a release that is independent of the source"}
    return _exact("leakage", inputs.all.posterior.leakage, inputs, {**detail, "capacity_bits": capacity}, **told)
