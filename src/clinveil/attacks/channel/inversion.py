"""Token inversion: words recovered from one draw by an attacker with the channel and the owner's word frequencies.

Exact, context-free figures without simulation. An attacker who uses context recovers more, so all are lower bounds of
the risk. Names are a separate band, because a list of surnames and a "Mr." before the word are enough to know that a
word is a name. Under scope `patient` an attacker can also count occurrences of an output (`_patient_counts.py`). This
is not measured under scope `corpus`, where counts of the entire release apply (a substitution cipher), nor `rare`.
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
    """Measure how many words, rare words and names are recovered from one draw of the channel."""

    needs = frozenset({"channel", "counts"})
    words = words_beside(__file__)
    on_release = True
    order = 100
    rare: int = flag(RARE, "Words with fewer occurrences are rare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Run the attack; with known patients also on their names, under scope `patient` also with counts."""
        channel, known, unknown = channel_and_counts(context)
        findings = inversion(channel, known, frequencies(unknown), rare=self.rare)
        if context.known:
            findings += inversion_names(channel, context.full_names, known, unknown)
        if channel.policy.scope == "patient" and context.entered is not None:
            findings += inversion_counts(channel, known, context.entered, unknown, rng=rng, rare=self.rare)
        return findings


def inversion(channel: Channel, counts: Ints, unknown: Ints = NO_COUNTS, *, rare: int = RARE) -> list[Finding]:
    """Return the exact figures of one draw: recovered (all, rare), single inputs, effective candidates, leakage.

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
        _candidates(inputs, detail),
        _leakage(inputs, detail),
    ]


def inversion_names(
    channel: Channel,
    names: Iterable[str],
    counts: Ints,
    unknown: Mapping[str, int] = MappingProxyType({}),
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


def _exact(measure: str, value: float, inputs: Inputs, detail: Detail, **about: Any) -> Finding:
    about = {"better": "lower", "chance": 0.0, "unit": "tokens", "method": EXACT, **about}
    return Finding(f"attack.inversion_{measure}", value, inputs.all.tokens, detail=detail, **about)


def _single(inputs: Inputs, detail: Detail) -> Finding:
    """Measure the share of tokens with an output that has only one possible input."""
    posterior, outputs = inputs.all.posterior, inputs.all.outputs
    single = posterior.single(int(np.count_nonzero(inputs.unknown)))
    share = float(outputs[single].sum() / outputs.sum())
    detail_of = {"outputs": int(single.sum()), "outputs_reached": int((posterior.candidates > 0).sum())}
    source = "|R(y)| = 1: the inverse image of the output, without words that do not occur"
    chance = "a mechanism with several inputs for every output"
    return _exact("single", share, inputs, {**detail, **detail_of}, source=source, chance_is=chance)


def _candidates(inputs: Inputs, detail: Detail) -> Finding:
    """2^H(X|Y), by H(X|Y) = H(X) + H(Y|X) - H(Y)."""
    types = inputs.all.types
    prior_bits, posterior_bits = entropy(types), inputs.channel.bits_left(inputs.all.mass, types)
    source = "effective candidates 2^H(X|Y): Shannon 1948; chance is 2^H(X), without the output"
    about = {"source": source, "chance": 2.0**prior_bits, "chance_is": "not using the release", "better": "higher"}
    return _exact(
        "candidates",
        2.0**posterior_bits,
        inputs,
        {**detail, "bits_left": posterior_bits, "bits_before": prior_bits},
        **about,
    )


def _leakage(inputs: Inputs, detail: Detail) -> Finding:
    capacity = inputs.channel.capacity(inputs.all.mass > 0)
    source = "min-entropy leakage log2(V1/V0), capacity log2 sum_y max_x C(y|x): Smith 2009; Braun et al. 2009"
    about = {"source": source, "chance_is": "a release that is independent of the source"}
    return _exact("leakage", inputs.all.posterior.leakage, inputs, {**detail, "capacity_bits": capacity}, **about)
