"""What is measured on every release: the attacks that declare themselves part of one, and utility on each label."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Context, of_release
from clinveil.attacks.channel.inversion import Inversion
from clinveil.channel.channel import Channel
from clinveil.core.finding import Finding
from clinveil.utility.classification import classification

UTILITY_SEED = 20260101  # of the split and of what is trained; it says nothing of the release
NOT_TRIED = (
    "An attacker who reads context; the inversion figures are lower bounds. Of 577 MTSamples notes, obfuscated at the "
    "defaults, somebody with the channel reads .47 of the words from single draws and .69 with the word pairs of other "
    "notes (benchmarks/context.md). One measurement outside this repository, with trigram counts of 1,277 other notes, "
    "read .77 where .48 is printed, and .35 of the words seen fewer than 20 times where .02 is.",
    "An attacker without the vectors, who trains their own on other notes or on the release.",
    "Linkage by somebody who holds a piece of the source: they test which released note could have come from it.",
    "Attribute inference: a classifier reads diagnoses off released notes, which is also their use.",
    "Intersection with another release of the same notes.",
    "Linkage by the order of the rows, where --order source keeps it.",
)
_AT_HAND = {"known": "no known-patient feed was given"}


def attacked(context: Context, rng: Generator) -> list[Finding]:
    """The findings of all attacks that can be tried, in the order of the report, with one generator in a row."""
    tried = [attack() for attack in of_release() if context.has(attack.needs)]
    return [finding for attack in tried for finding in attack(context, rng)]


def not_tried(context: Context) -> tuple[str, ...]:
    """What no attack of this version tries, and the attacks of every release that lacked what they need here."""
    known = [field.name for field in fields(context)]
    lacking = []
    for attack in of_release():
        missing = [need for need in known if need in attack.needs and not context.has(frozenset({need}))]
        if missing:
            why = " and ".join(_AT_HAND.get(need, f"no {need.replace('_', ' ')}") for need in missing)
            lacking.append(f"{attack.help().rstrip('.')}: {why}.")
    return (*NOT_TRIED, *lacking)


def useful(context: Context, labels: tuple[str, ...], models: tuple[str, ...]) -> list[Finding]:
    """Utility on each label. The seed is public and the same for every key, so that two releases compare."""
    original, released = context.original, context.released
    if original is None or released is None:
        raise ValueError("utility compares the notes of both sides")
    found: list[Finding] = []
    for label in labels:
        rng, sides = np.random.default_rng(UTILITY_SEED), (original.batches(), released.batches())
        found += classification(*sides, label, rng, crosswalk=context.notes, models=models)
    return found


def without_kept(context: Context, base: Channel, rng: Generator) -> list[Finding]:
    """The inversion figures of the same channel without the user's kept words: what keeping them costs."""
    found = Inversion()(replace(context, channel=base, known=None, entered=None), rng)
    return [replace(finding, measure=f"{finding.measure}_none_kept") for finding in found]
