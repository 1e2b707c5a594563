"""Exact figures of a channel, computed from its rows and the word frequencies, without draws and without context.

They serve to compare channels with each other and with the literature. For one draw they are upper bounds of what can
be recovered; for a note, where words have context, they are lower bounds. N_w and S_w, the usual statistics of noise
mechanisms (Feyisetan et al. 2020, WSDM), do not measure this and are included for comparison.
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
"""Occurrences assumed for a word that the attacker has never seen."""
MIN_KNOWN = 0.05
INFORMATION = "Shannon 1948; I(X;Y) = H(Y) - H(Y|X), effective candidates 2^H(X|Y)"
LEAKS = "min-entropy leakage log2(V1/V0), capacity log2 sum_y max_x C(y|x): Smith 2009; Braun et al. 2009"
SINGLE = "|R(y)| = 1: the inverse image of the output, words that do not occur left out"
FEYISETAN = "N_w and S_w: Feyisetan et al. 2020, WSDM"


@attacks.register("channel-figures")
class ChannelFigures(Attack):
    """Exact figures from a channel's rows and word frequencies: all, rare, content and function words, and names.

    With `prior`, also for an attacker who uses the word frequencies of other notes; with `near`, for pairs of near
    words.
    """

    needs = frozenset({"channel", "counts"})
    optional = frozenset({"prior", "known", "near"})
    words = words_beside(__file__)
    eta: float = flag(0.05, "S_w: the share of a word's outputs that is left out, from the least likely.", ge=0, lt=1)
    pairs: int = flag(20_000, "Number of random pairs of words to compare.", ge=2)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Compute all figures; only the random pairs are drawn."""
        channel, known, unknown = channel_and_counts(context)
        names = context.full_names
        inputs = Inputs(channel, known, frequencies(unknown))
        strata = Strata(word_strata(channel, known, names), unknown_strata(unknown, names))
        bands = strata.bands(inputs)
        findings = [*posteriors(inputs, strata, OWN), *leakages(bands)]
        if context.prior is not None:
            guess, share = external_frequencies(channel, context.prior, unknown)
            context.say(f"clinveil: {share:.1%} of the words of the other notes are words of the channel")
            attacker_inputs = Inputs(channel, known, frequencies(unknown), guess)
            findings += posteriors(attacker_inputs, strata, OTHER, known=share)
        findings += [*information(bands), *singles(inputs, strata), *in_degrees(inputs)]
        findings += [*unchanged(bands), *spreads(inputs, strata.of_words, self.eta)]
        return findings + pair_figures(channel, known, context.near, pairs=self.pairs, rng=rng)


@dataclass(frozen=True)
class Strata:
    """Masks over the rows of the channel and over out-of-vocabulary words."""

    of_words: Mapping[str, Mask]
    of_unknown: Mapping[str, Mask]

    def bands(self, inputs: Inputs) -> dict[str, Band]:
        """Return the words of each stratum that have an output, by label."""
        return {LABELS[name]: inputs.only(mask[:-1], self.of_unknown[name]) for name, mask in self.of_words.items()}


def external_frequencies(channel: Channel, prior: WordCounts, unknown: Iterable[str]) -> tuple[Doubles, float]:
    """Return the frequencies of an attacker who counted other notes, and the share of their words in the vocabulary.

    Args:
        unknown: out-of-vocabulary words of the source; the attacker knows those that occur in the other notes.

    Returns:
        (n_words + n_unknown,): occurrences in the other notes, 0.1 where there is none.

    Raises:
        InputError: under 5 % of their words are in the vocabulary: another language, or another tokenization.
    """
    counts = dict(zip(prior.words, prior.counts.tolist(), strict=True))
    attacker_inputs = np.array([counts.get(word, 0) for word in (*channel.words, *unknown)], dtype=np.float64)
    share = float(attacker_inputs[: len(channel.words)].sum() / max(1, sum(counts.values())))
    if share < MIN_KNOWN:
        message = f"{share:.1%} of the words of the other notes are words of the channel, fewer than {MIN_KNOWN:.0%}"
        raise InputError(message, hint="provide plain notes of the same language and kind")
    return np.maximum(attacker_inputs, SMOOTHED), share


def posteriors(inputs: Inputs, strata: Strata, attacker: str, **about: Any) -> Iterator[Finding]:
    """Yield the posterior vulnerability of each stratum, with the prior one as chance.

    Also the share recovered by a guesser who does not know the stratum.
    """
    read, won = inputs.all.posterior.read, inputs.all.won
    attacker_inputs = inputs.unknown if inputs.guess is None else inputs.guess[len(inputs.channel.words) :]
    for (name, mask), band in zip(strata.of_words.items(), strata.bands(inputs).values(), strict=True):
        detail = {"draws": 1, "label": LABELS[name], "attacker": attacker, **about}
        yield band.finding("attack.channel_posterior", detail)
        if band.tokens and name != "all":
            named = bool(attacker_inputs.size) and strata.of_unknown[name][attacker_inputs.argmax()]
            share = float((won * np.append(mask[:-1], named)) @ read) / band.tokens
            detail["attacker"] = f"{attacker}, not told the kind"
            yield Finding("attack.channel_posterior", share, band.tokens, "lower", detail=detail, **_about(SOURCE))


def leakages(bands: Mapping[str, Band]) -> Iterator[Finding]:
    """Yield the min-entropy leakage of each stratum under the source counts, and the capacity."""
    for label, band in bands.items():
        if band.tokens:
            yield _figure("leakage", band.posterior.leakage, band, label, LEAKS, chance=0.0)
    every = bands[LABELS["all"]]
    capacity = every.channel.capacity(every.mass > 0)
    yield _figure("leakage", capacity, every, "capacity: the most, for any frequencies", LEAKS, chance=0.0)


def information(bands: Mapping[str, Band]) -> Iterator[Finding]:
    """Yield mutual information and effective candidates of each stratum under the source counts."""
    for label, band in bands.items():
        if not band.tokens:
            continue
        prior_bits, bits = entropy(band.types), band.channel.mutual_information(band.mass)
        left = max(0.0, prior_bits - bits)
        more = {"bits_before": prior_bits, "bits_left": left, "share_of_bits": bits / prior_bits if prior_bits else 0.0}
        yield _figure("information", bits, band, label, INFORMATION, chance=0.0, **more)
        about: dict[str, Any] = {"chance": 2.0**prior_bits, "better": "higher"}
        yield _figure("candidates", 2.0**left, band, label, INFORMATION, **about, bits_left=left)


def singles(inputs: Inputs, strata: Strata) -> Iterator[Finding]:
    """Yield the share of each stratum's tokens with a single possible input, and the number of such words."""
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
            yield Finding("attack.channel_single_words", count, n, "lower", detail=detail, **_about(SINGLE, "words"))


def single_names(context: Context) -> list[Finding]:
    """Return `singles` of the names only, for a gate of every release; empty if no name has an output."""
    channel, known, unknown = channel_and_counts(context)
    names = context.full_names
    strata = Strata(word_strata(channel, known, names), unknown_strata(unknown, names))
    findings = singles(Inputs(channel, known, frequencies(unknown)), strata)
    return [finding for finding in findings if finding.detail["label"] == LABELS["names"]]


def in_degrees(inputs: Inputs) -> Iterator[Finding]:
    """Yield the number of possible inputs of an output: the median over outputs and the mean over released words."""
    degrees, output_counts = inputs.all.posterior.candidates, inputs.all.outputs
    reached = degrees[degrees > 0]
    more = {"mean": float(reached.mean()), "one_input": float((reached == 1).mean()), "widest": int(reached.max())}
    rows = [("median of all outputs", float(np.median(reached)), more)]
    rows += [("mean over released words", float(degrees @ output_counts / output_counts.sum()), {})]
    for label, value, more in rows:
        about: dict[str, Any] = {**_about("in-degree |R(y)|", "outputs"), "detail": {"label": label, **more}}
        yield Finding("attack.channel_inputs", value, reached.size, "higher", **about)


def unchanged(bands: Mapping[str, Band]) -> Iterator[Finding]:
    """Yield N_w: the probability that a word is unchanged, by tokens of each stratum, and per word in the detail."""
    for label, band in bands.items():
        same, mass = band.channel.unchanged, band.mass[:-1]
        if mass.any():
            by_word = {"by_word": float(same[mass > 0].mean()), "most": float(same[mass > 0].max())}
            yield _figure("unchanged", float(mass @ same / band.tokens), band, label, FEYISETAN, **by_word)


def spreads(inputs: Inputs, strata: Mapping[str, Mask], eta: float) -> Iterator[Finding]:
    """Yield S_w: the smallest number of outputs with 1 - eta of a word's probability; the median of each stratum."""
    sizes: Ints = inputs.channel.spread(eta)
    for name, mask in strata.items():
        sizes_of = sizes[(inputs.all.mass > 0) & mask]
        detail: dict[str, Any] = {"label": LABELS[name], "eta": eta}
        about = _about(FEYISETAN, "words")
        if sizes_of.size:
            detail |= {"mean": float(sizes_of.mean()), "least": int(sizes_of.min())}
            yield Finding(
                "attack.channel_spread", float(np.median(sizes_of)), sizes_of.size, "higher", detail=detail, **about
            )
        else:
            yield unmeasured("attack.channel_spread", NO_SUCH_WORD, detail=detail, **about)


def _figure(
    measure: str, value: float, band: Band, label: str, source: str, chance: float | None = None, **more: Any
) -> Finding:
    better = more.pop("better", "lower")
    about: dict[str, Any] = {**_about(source), "chance": chance, "detail": {"label": label, **more}}
    return Finding(f"attack.channel_{measure}", value, band.tokens, better, **about)


def _about(source: str, unit: str = "tokens") -> dict[str, Any]:
    return {"source": source, "unit": unit, "method": EXACT}
