"""The exact figures of a channel: what its rows and the frequencies of the words decide, without a draw and a context.

They are for comparing channels and for comparison with the literature. Of one draw they are the most that anybody can
read; of a note, where words stand beside each other, they are a lower bound. N_w and S_w, by which mechanisms with
noise are compared (Feyisetan et al. 2020, WSDM), say nothing of this: they stand here to show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import EXACT, NO_SUCH_WORD, SOURCE, Band, Inputs, channel_and_counts, frequencies
from clinveil.attacks.channel._pair_figures import pair_figures
from clinveil.attacks.channel._strata import unknown_strata, word_strata
from clinveil.channel.channel import Channel
from clinveil.channel.posterior import entropy
from clinveil.core.errors import InputError
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.core.words import words_beside
from clinveil.stats.findings import unmeasured
from clinveil.vectors.count import WordCounts

LABELS = {"all": "all words", "rare": "rare words", "content": "content words", "function": "function words"}
LABELS |= {"names": "names"}
OWN, OTHER = "counts of the source", "counts of other notes"
SMOOTHED = 0.1
"""Occurrences that a word gets which the attacker never saw."""
LEAST_KNOWN = 0.05
INFORMATION = "Shannon 1948; I(X;Y) = H(Y) - H(Y|X), effective candidates 2^H(X|Y)"
LEAKS = "min-entropy leakage log2(V1/V0), capacity log2 sum_y max_x C(y|x): Smith 2009; Braun et al. 2009"
SINGLE = "|R(y)| = 1: the inverse image of the output, words that do not occur left out"
FEYISETAN = "N_w and S_w: Feyisetan et al. 2020, WSDM"


@attacks.register("channel-figures")
class ChannelFigures(Attack):
    """What the rows of a channel and word frequencies decide: exact figures, all, rare, content, function words, names.

    With `prior` also of an attacker who goes by the word frequencies of other notes; with `near`, of pairs of near
    words.
    """

    needs = frozenset({"channel", "counts"})
    words = words_beside(__file__)
    eta: float = flag(0.05, "S_w: the share of a word's outputs that is left out, from the least likely.", ge=0, lt=1)
    pairs: int = flag(20_000, "Random pairs of words whose outputs are compared.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """All figures; only the random pairs are drawn."""
        channel, known, unknown = channel_and_counts(context)
        names = context.full_names
        own = Inputs(channel, known, frequencies(unknown))
        strata = Strata(word_strata(channel, known, names), unknown_strata(unknown, names))
        bands = strata.bands(own)
        found = [*posteriors(own, strata, OWN), *leakages(bands)]
        if context.prior is not None:
            guess, share = fitted_elsewhere(channel, context.prior, unknown)
            context.say(f"clinveil: {share:.1%} of the words of the other notes are words of the channel")
            theirs = Inputs(channel, known, frequencies(unknown), guess)
            found += posteriors(theirs, strata, OTHER, known=share)
        found += [*information(bands), *singles(own, strata), *in_degrees(own)]
        found += [*unchanged(bands), *spreads(own, strata.of_words, self.eta)]
        return found + pair_figures(channel, known, context.near, pairs=self.pairs, rng=rng)


@dataclass(frozen=True)
class Strata:
    """Masks over the rows of the channel and over the words that it does not know."""

    of_words: Mapping[str, Mask]
    of_unknown: Mapping[str, Mask]

    def bands(self, inputs: Inputs) -> dict[str, Band]:
        """The words of each stratum that have an output, by its label."""
        return {LABELS[name]: inputs.only(mask[:-1], self.of_unknown[name]) for name, mask in self.of_words.items()}


def fitted_elsewhere(channel: Channel, prior: WordCounts, unknown: Iterable[str]) -> tuple[Doubles, float]:
    """Frequencies by which an attacker goes who counted other notes, and the share of their words that it knows.

    Args:
        unknown: words of the source that the channel does not know; he knows them where his notes have them.

    Returns:
        (n_words + n_unknown,): occurrences in the other notes, a tenth where there is none.

    Raises:
        InputError: under 5 % of their words are words of the channel: another language, or another tokenization.
    """
    counts = dict(zip(prior.words, prior.counts.tolist(), strict=True))
    theirs = np.array([counts.get(word, 0) for word in (*channel.words, *unknown)], dtype=np.float64)
    share = float(theirs[: len(channel.words)].sum() / max(1, sum(counts.values())))
    if share < LEAST_KNOWN:
        said = f"{share:.1%} of the words of the other notes are words of the channel, fewer than {LEAST_KNOWN:.0%}"
        raise InputError(said, hint="give plain notes of the same language and kind")
    return np.maximum(theirs, SMOOTHED), share


def posteriors(inputs: Inputs, strata: Strata, attacker: str, **told: Any) -> Iterator[Finding]:
    """Posterior vulnerability of each stratum, beside the prior one as chance; and what of it is read by a guesser who
    is not told the stratum."""
    read, won = inputs.all.posterior.read, inputs.all.won
    theirs = inputs.unknown if inputs.guess is None else inputs.guess[len(inputs.channel.words) :]
    for (name, mask), band in zip(strata.of_words.items(), strata.bands(inputs).values(), strict=True):
        detail = {"draws": 1, "label": LABELS[name], "attacker": attacker, **told}
        yield band.finding("attack.channel_posterior", detail)
        if band.tokens and name != "all":
            named = bool(theirs.size) and strata.of_unknown[name][theirs.argmax()]
            share = float((won * np.append(mask[:-1], named)) @ read) / band.tokens
            detail["attacker"] = f"{attacker}, not told the kind"
            yield Finding("attack.channel_posterior", share, band.tokens, "lower", detail=detail, **_told(SOURCE))


def leakages(bands: Mapping[str, Band]) -> Iterator[Finding]:
    """Min-entropy leakage of each stratum by the counts of the source, and the capacity over the words that occur."""
    for label, band in bands.items():
        if band.tokens:
            yield _figure("leakage", band.posterior.leakage, band, label, LEAKS, chance=0.0)
    every = bands[LABELS["all"]]
    capacity = every.channel.capacity(every.mass > 0)
    yield _figure("leakage", capacity, every, "capacity: the most, for any frequencies", LEAKS, chance=0.0)


def information(bands: Mapping[str, Band]) -> Iterator[Finding]:
    """Mutual information and effective candidates of each stratum, by the counts of the source."""
    for label, band in bands.items():
        if not band.tokens:
            continue
        before, bits = entropy(band.types), band.channel.mutual_information(band.mass)
        left = max(0.0, before - bits)
        more = {"bits_before": before, "bits_left": left, "share_of_bits": bits / before if before else 0.0}
        yield _figure("information", bits, band, label, INFORMATION, chance=0.0, **more)
        told: dict[str, Any] = {"chance": 2.0**before, "better": "higher"}
        yield _figure("candidates", 2.0**left, band, label, INFORMATION, **told, bits_left=left)


def singles(inputs: Inputs, strata: Strata) -> Iterator[Finding]:
    """The share of each stratum's tokens whose output no other word of the notes can have, and how many words have
    such outputs."""
    posterior = inputs.all.posterior
    single = posterior.single(int(np.count_nonzero(inputs.unknown)))
    owners = np.zeros(posterior.prior.size, dtype=np.bool_)
    owners[posterior.best[0][single]] = True
    for (label, band), mask in zip(strata.bands(inputs).items(), strata.of_words.values(), strict=True):
        if band.tokens:
            share = float(band.outputs[single].sum() / band.outputs.sum())
            yield _figure("single", share, band, label, SINGLE, outputs=int(single.sum()))
            known = (band.mass > 0)[:-1]
            count, n = int((owners & mask)[:-1][known].sum()), int(known.sum())
            detail = {"label": label}
            yield Finding("attack.channel_single_words", count, n, "lower", detail=detail, **_told(SINGLE, "words"))


def single_names(context: Context) -> list[Finding]:
    """`singles` of the names alone, for a gate of every release; empty where no name has an output."""
    channel, known, unknown = channel_and_counts(context)
    names = context.full_names
    strata = Strata(word_strata(channel, known, names), unknown_strata(unknown, names))
    found = singles(Inputs(channel, known, frequencies(unknown)), strata)
    return [finding for finding in found if finding.detail["label"] == LABELS["names"]]


def in_degrees(inputs: Inputs) -> Iterator[Finding]:
    """From how many words of the notes an output can come: the median over outputs; over released words beside it."""
    degree, often = inputs.all.posterior.candidates, inputs.all.outputs
    reached = degree[degree > 0]
    more = {"mean": float(reached.mean()), "one_input": float((reached == 1).mean()), "widest": int(reached.max())}
    rows = [("median of all outputs", float(np.median(reached)), more)]
    rows += [("mean over released words", float(degree @ often / often.sum()), {})]
    for label, value, beside in rows:
        told: dict[str, Any] = {**_told("in-degree |R(y)|", "outputs"), "detail": {"label": label, **beside}}
        yield Finding("attack.channel_inputs", value, reached.size, "higher", **told)


def unchanged(bands: Mapping[str, Band]) -> Iterator[Finding]:
    """N_w: how often a word comes out as itself, by tokens of each stratum, and by word beside it."""
    for label, band in bands.items():
        same, mass = band.channel.unchanged, band.mass[:-1]
        if mass.any():
            by_word = {"by_word": float(same[mass > 0].mean()), "most": float(same[mass > 0].max())}
            yield _figure("unchanged", float(mass @ same / band.tokens), band, label, FEYISETAN, **by_word)


def spreads(inputs: Inputs, strata: Mapping[str, Mask], eta: float) -> Iterator[Finding]:
    """S_w: the least number of outputs that carry 1 - eta of a word's; the median over the words of each stratum."""
    sizes: Ints = inputs.channel.spread(eta)
    for name, mask in strata.items():
        of = sizes[(inputs.all.mass > 0) & mask]
        detail: dict[str, Any] = {"label": LABELS[name], "eta": eta}
        told = _told(FEYISETAN, "words")
        if of.size:
            detail |= {"mean": float(of.mean()), "least": int(of.min())}
            yield Finding("attack.channel_spread", float(np.median(of)), of.size, "higher", detail=detail, **told)
        else:
            yield unmeasured("attack.channel_spread", NO_SUCH_WORD, detail=detail, **told)


def _figure(
    measure: str, value: float, band: Band, label: str, source: str, chance: float | None = None, **more: Any
) -> Finding:
    better = more.pop("better", "lower")
    told: dict[str, Any] = {**_told(source), "chance": chance, "detail": {"label": label, **more}}
    return Finding(f"attack.channel_{measure}", value, band.tokens, better, **told)


def _told(source: str, unit: str = "tokens") -> dict[str, Any]:
    return {"source": source, "unit": unit, "method": EXACT}
