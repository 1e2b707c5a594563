"""Canaries: secrets planted in an audit copy of the training, and how far the model, and its notes, give them back.

Canaries belong in an audit run, never in the run whose notes are shared.

Source: Carlini et al. 2019, The Secret Sharer, section 4; paper C plants nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.models._canaries import (
    REFERENCES,
    REPEATS,
    Canary,
    Family,
    Score,
    expected_exposure,
    exposures,
    extracted,
    invent,
    name_family,
    number_family,
    phrase_family,
    planted,
)
from clinveil.attacks.models._from_text import model_of_text, written
from clinveil.core.finding import Finding
from clinveil.core.settings import flag, group
from clinveil.core.types import Doubles, Mask, Say
from clinveil.core.words import words_beside
from clinveil.lm.model import LanguageModel
from clinveil.lm.notes import EncodedNotes, PlainNotes, encode, read_notes
from clinveil.lm.recipe import ModelSettings
from clinveil.lm.sampling import SamplingConfig, batch_size_for
from clinveil.lm.train import make_vocabulary, train_model
from clinveil.stats import t_interval
from clinveil.stats.findings import proportion

COMMON, NAMES = 200, 300
ALIKE = "an interval of exposures that are all alike; at the ceiling it has no upper end"
BY_T = "t over canaries, 95 %"
# Simulated with unplanted canaries, 20,000 times; a percentile bootstrap covers 69 % with 3, 79 % with 5.
FEW = f"{BY_T} nominal; 88 to 91 % simulated for fewer than 20, for exposures are skewed"
P_IS = "as many canaries never planted have this mean exposure or more (gamma, an upper bound)"
CHANCE_IS = "a secret never planted, its rank among the references uniform"
SOURCE = "Carlini et al. 2019, The Secret Sharer, exposure by rank among fresh draws"


@attacks.register("canaries")
class Canaries(Attack):
    """Train on a copy with canaries in it; how far the model, and its synthetic notes alone, give them away.

    `seed` is that of the training; a network gives the same bits with one worker.
    """

    needs = frozenset({"training"})
    words = words_beside(__file__)
    lm: ModelSettings = group(ModelSettings)
    seed: int = flag(0, "Seed of the training.", ge=0, le=2**63 - 1)
    each: int = flag(5, "Canaries of every family and number of repeats.", ge=1)
    repeats: tuple[int, ...] = flag(REPEATS, "How often a canary is planted; repeatable.")

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Plant, train, write as many tokens as there were, and measure on the model and on the text alone.

        `context.training` are `PlainNotes`.

        Returns:
            `attack.canary_exposure` and `attack.canary_extraction` by family and repeats; of an n-gram model, which
            writes no notes, the exposure under the model alone.
        """
        notes, threads = context.training, context.workers
        canaries = invent(families(notes, rng), rng, repeats=self.repeats, each=self.each)
        with_canaries = read_notes(planted(notes.as_corpus(), canaries, rng), prepared=True)
        model, encoded = self.train(with_canaries, canaries, threads, context.say)
        own = {"model": model.kind, "from": "the model"}
        text = [] if model.kind == "ngram" else self._write(model, encoded, threads)
        with model.ready(threads=threads):
            bits = exposures(canaries, score_of(model), rng)
        numbers = tuple(map(str, range(len(text))))
        released = PlainNotes(tuple(text), numbers, numbers)
        taken = extracted(canaries, released.as_corpus())
        found = canary_findings(canaries, bits, taken, own)
        if not text:
            return [one for one in found if one.measure == "attack.canary_exposure"]
        n_grams = model_of_text(released, model.vocabulary)
        bits = exposures(canaries, score_of(n_grams), rng)  # of names that nobody wrote all are equally likely
        by_text = canary_findings(canaries, bits, taken, {"model": model.kind, "from": "released notes"})
        return found + [one for one in by_text if one.measure == "attack.canary_exposure"]

    def train(
        self, notes: PlainNotes, canaries: Sequence[Canary], threads: int, say: Say
    ) -> tuple[LanguageModel, EncodedNotes]:
        """The model of the notes with canaries, whose vocabulary holds all that may be planted; and its notes."""
        every = [word for canary in canaries for word in canary.text.split()]
        places = [word for canary in canaries for place in canary.family.places for word in place]
        vocabulary = make_vocabulary(notes, self.lm, always=[*every, *places])
        encoded = encode(notes.texts, vocabulary)
        model, _ = train_model(encoded, vocabulary, self.lm, seed=self.seed, threads=threads, say=say)
        return model, encoded

    def _write(self, model: LanguageModel, encoded: EncodedNotes, threads: int) -> list[str]:
        """As many tokens of synthetic notes as the training has, under a public key."""
        how = SamplingConfig(batch_size_for(len(encoded)), int(encoded.lengths.max()))
        notes = written(model, encoded.ids.size, self.seed, how, threads=threads)
        return [model.vocabulary.decode(notes.note(row).tolist()) for row in range(len(notes))]


def families(notes: PlainNotes, rng: Generator) -> list[Family]:
    """Phrases of common words of the notes, record numbers, and full names."""
    from clinveil.corpus.medtext import dictionary
    from clinveil.lexicons.census import all_given_names, surnames

    counts = dictionary(notes.texts, notes.patients).counts
    common = [word for word, _ in counts.most_common() if word.isascii() and word.isalpha()][:COMMON]
    pools = [sorted(names) for names in (all_given_names(), surnames())]
    given, family = ([pool[i].capitalize() for i in rng.permutation(len(pool))[:NAMES]] for pool in pools)
    return [phrase_family(common), number_family(), name_family(given, family)]


def score_of(model: LanguageModel) -> Score:
    """Log-probability of a sentence on a line of its own, the end of the note not counted."""

    def score(texts: Sequence[str]) -> Doubles:
        logs = model.score([model.vocabulary.encode(f"\n{text}") for text in texts])
        return np.array([one[:-1].sum() for one in logs])

    return score


def canary_findings(
    canaries: Sequence[Canary],
    bits: Doubles,
    taken: Mask,
    detail: Mapping[str, Any] | None = None,
    *,
    references: int = REFERENCES,
) -> list[Finding]:
    """Mean exposure and share extracted, by family and number of repeats; control: those never planted.

    Args:
        references: of `exposures`: what ranks before all of them may be exposed further; the detail counts such.
    """
    found: list[Finding] = []
    often = np.array([canary.repeats for canary in canaries])
    for family in dict.fromkeys(canary.family.name for canary in canaries):
        rows = np.array([canary.family.name == family for canary in canaries])
        never = rows & (often == 0)
        for n in sorted(set(often[rows].tolist()) - {0}):
            these = rows & (often == n)
            more = {**(detail or {}), "family": family, "repeats": n, "unplanted": int(never.sum())}
            found += [
                _exposure(bits[these], bits[never], references, more),
                _extraction(taken[these], taken[never], more),
            ]
    return found


def _exposure(bits: Doubles, never: Doubles, references: int, detail: dict[str, Any]) -> Finding:
    n, most = bits.size, float(np.log2(references + 1))
    more = {**detail, "references": references, "scale": "bits", "most": float(bits.max())}
    more |= _ceiling(bits, references)
    low, high, method = None, None, ""
    if float(np.ptp(bits)) == 0:  # one canary, or all at the ceiling
        more["why"] = ALIKE
    else:
        ends, method = t_interval(bits), FEW if n < 20 else BY_T
        low, high = max(0.0, ends.low), min(most, ends.high)
    return Finding(
        "attack.canary_exposure",
        float(bits.mean()),
        n,
        "lower",
        low,
        high,
        expected_exposure(references),
        source=SOURCE,
        detail=more,
        unit="canaries",
        p=_no_exposure_p(bits),
        p_is=P_IS,
        method=method,
        chance_is=CHANCE_IS,
        **_control(never),
    )


def _control(never: Doubles | Mask) -> dict[str, Any]:
    """What the canaries score that were never planted."""
    value = float(never.mean()) if never.size else None
    return {"control": value, "control_is": "secrets never planted", "control_kind": "negative"}


def _no_exposure_p(bits: Doubles) -> float:
    """P of such a sum where nothing is remembered: -log2 of a uniform is at least the exposure of a uniform rank."""
    from scipy.special import gammaincc

    return float(gammaincc(bits.size, float(bits.sum()) * np.log(2)))


def _extraction(taken: Mask, never: Mask, detail: dict[str, Any]) -> Finding:
    n, hits = taken.size, int(taken.sum())
    return proportion(
        "attack.canary_extraction", hits, n, over="canaries", source=SOURCE, detail=detail, **_control(never)
    )


def _ceiling(bits: Doubles, references: int) -> dict[str, Any]:
    """The most bits that `references` fresh draws can show, and how many canaries ranked before them all."""
    most = float(np.log2(references + 1))
    at = int((bits >= most - 1e-9).sum())
    if not at:
        return {"ceiling": most, "at_ceiling": 0}
    says = f"{most:.2f} bits is the most that {references:,} fresh draws can show; at the ceiling it may be more"
    return {"ceiling": most, "at_ceiling": at, "warning": says}
