"""Distinguishability of two words by one output: total variation, and the (epsilon, delta) profile.

Differential privacy with a local epsilon would bound both for every pair of words. A neighbours channel has no such
epsilon: almost any two words have outputs that the other never has, and one such output decides. In a clusters channel
epsilon is 0 within a cluster and infinite between clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.channel._inputs import EXACT
from clinveil.channel.channel import Channel
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.stats import t_interval
from clinveil.stats.findings import unmeasured
from clinveil.vectors.table import Neighbours

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
NEAREST, RANDOM = "a word and its nearest", "two words at random"
SAMPLED = "t interval over random pairs, 95 %"
SAMPLED_WORST = "the largest of the random pairs; others may have more"
ROUNDING = 1e-9
NO_TABLE = "near words are unknown: pass the neighbour table (vault/neighbours)"
NO_EPSILON = (
    "epsilon is infinite: some of these pairs have outputs that only one of the two words can produce, and one such "
    "output distinguishes them with certainty; these pairs have no epsilon of differential privacy"
)
DISTANCE = "total variation distance between two rows"
PROFILE = "Dwork, Roth 2014, definition 2.4, over inputs of one word; hockey-stick divergence: Barthe, Olmedo 2013"


def pair_figures(
    channel: Channel, counts: Ints, near: Neighbours | None, *, pairs: int, rng: Generator
) -> list[Finding]:
    """Return distance, epsilon and delta(epsilon) of near words (with a table) and of random pairs of words that occur.

    Args:
        counts: (n_words,) occurrences; words without any are left out.
        near: the neighbour table over the channel's words, nearest first. pairs: number of random pairs.

    Raises:
        InputError: a table of other words.
    """
    occurs = np.flatnonzero(counts > 0)
    findings: list[Finding] = []
    if near is None:
        findings += [unmeasured("attack.channel_distance", NO_TABLE, detail={"label": NEAREST}, unit="pairs")]
    elif len(near) != len(channel.words):
        message = f"the neighbour table is of {len(near)} words, the channel of {len(channel.words)}"
        raise InputError(message, hint="give the table of the same vault")
    else:
        findings += _of_pairs(channel, occurs, near.ids[occurs, 0].astype(np.int64), NEAREST)
        if near.k > 1:
            neighbours = near.ids[occurs].astype(np.int64).ravel()
            findings += _of_pairs(channel, np.repeat(occurs, near.k), neighbours, f"a word and its {near.k} nearest")
    if occurs.size > 1:
        first = rng.integers(occurs.size, size=pairs)
        second = (first + rng.integers(1, occurs.size, size=pairs)) % occurs.size
        findings += _of_pairs(channel, occurs[first], occurs[second], RANDOM)
    return findings


def _of_pairs(channel: Channel, first: Ints, second: Ints, label: str) -> list[Finding]:
    profile = channel.deltas(first, second, np.array([0.0, *EPSILONS]))
    findings = [*_distance(profile[:, 0], label), _epsilon(channel.epsilons(first, second), label)]
    for epsilon, delta in zip(EPSILONS, profile.T[1:], strict=True):
        detail = {"label": label, "setting": f"epsilon {epsilon:g}, mean"}
        findings.append(_mean("attack.channel_delta", delta, detail, PROFILE))
    detail = {"label": label, "setting": f"epsilon {EPSILONS[-1]:g}, worst pair"}
    about: dict[str, Any] = {"unit": "pairs", "source": PROFILE, "method": SAMPLED_WORST if label == RANDOM else EXACT}
    worst = float(profile[:, -1].max())
    return [*findings, Finding("attack.channel_delta", worst, first.size, "lower", detail=detail, **about)]


def _distance(distances: Doubles, label: str) -> list[Finding]:
    apart = (distances > 1 - ROUNDING).astype(np.float64)
    parts = ("distance", distances), ("disjoint", apart)
    return [_mean(f"attack.channel_{name}", values, {"label": label}, DISTANCE) for name, values in parts]


def _epsilon(epsilons: Doubles, label: str) -> Finding:
    """Return the largest epsilon of these pairs; the detail records the largest finite one."""
    finite = epsilons[np.isfinite(epsilons)]
    detail: dict[str, Any] = {"label": label, "infinite": 1.0 - finite.size / epsilons.size}
    detail |= {"largest_finite": float(finite.max())} if finite.size else {}
    about: dict[str, Any] = {"unit": "pairs", "source": PROFILE, "detail": detail}
    about |= {"method": SAMPLED_WORST if label == RANDOM else EXACT}
    if finite.size < epsilons.size:
        return unmeasured("attack.channel_epsilon", NO_EPSILON, epsilons.size, **about)
    return Finding("attack.channel_epsilon", float(finite.max()), epsilons.size, "lower", **about)


def _mean(measure: str, values: Doubles, detail: dict[str, Any], source: str) -> Finding:
    """Return the mean over pairs, with an interval for random pairs."""
    about: dict[str, Any] = {"detail": detail, "source": source, "unit": "pairs", "method": EXACT}
    if detail["label"] == RANDOM:
        low, high = t_interval(values)
        about |= {"low": max(0.0, low), "high": min(1.0, high), "method": SAMPLED}
    return Finding(measure, float(values.mean()), values.size, "lower", **about)
