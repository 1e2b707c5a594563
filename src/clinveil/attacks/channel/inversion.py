"""Token inversion: words recovered from one draw by an attacker with the channel and the owner's word frequencies.

Exact, context-free figures without simulation. An attacker who uses context recovers more, so all are lower bounds of
the risk. Names are a separate band, because a list of surnames and a "Mr." before the word are enough to know that a
word is a name.

Scope `patient` keeps one draw for all occurrences of a word in a patient's notes, so the output shows the word's count:
an output that occurs forty times is unlikely to be a word that others use once. This attacker also knows the counts of
each word in *other* patients' notes. For an output y that occurs c times they name the word with the largest
pi(x) C(y|x) P(c | x). P(c | x) is the share of the tokens of x that occur c times in a patient's notes (c in classes),
over the other patients, shrunk towards that of equally frequent words. The amount of shrinkage, or not to use counts at
all, is chosen for each half of the patients by the result on the other half. If several words of a patient share an
output, the attacker treats them as one word, and names the outputs of a patient one by one; the result is a lower
bound. This is not measured under scope `corpus`, where counts of the entire release apply (a substitution cipher), nor
`rare`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import (
    EXACT,
    GUESSING,
    NO_COUNTS,
    NO_SUCH_WORD,
    RARE,
    Band,
    Inputs,
    channel_and_counts,
    drawn_outputs,
    frequencies,
    name_forms,
    sampled_words,
)
from clinveil.channel.channel import Channel
from clinveil.channel.posterior import entropy
from clinveil.core.finding import Detail, Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.corpus.corpus import Corpus
from clinveil.stats import ratio
from clinveil.stats.findings import clustered_share, unmeasured

PATIENTS = 1000
CLASSES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50, 75, 100])  # lower bounds of the classes of counts
SHRINKAGES = (1.0, 5.0, 25.0, np.inf)  # weight of equally frequent words, in tokens; inf: counts are not used
_CANDIDATES = 2_000_000  # weighed in one batch
COUNTED = "attack.inversion_counts"
COUNTED_SOURCE = "posterior over one repeated draw and its number of occurrences; attack A5 of the threat model"


@attacks.register("inversion")
class Inversion(Attack):
    """Measure how many words, rare words and names are recovered from one draw of the channel."""

    needs = frozenset({"channel", "counts"})
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


@dataclass(frozen=True)
class Uses:
    """How often each patient uses each word: (n_pairs,) arrays, sorted by patient and word.

    Words are rows of the channel; numbers from `len(channel.words)` on are out-of-vocabulary words, the most frequent
    first.
    """

    patient: Ints
    word: Ints
    times: Ints
    n_words: int

    def times_of(self, patient: Ints, word: Ints) -> tuple[Ints, Ints]:
        """Return how often these patients use these words, and the index of the pair (any index for 0)."""
        wanted = patient * self.n_words + word
        places = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        return np.where(self._keys[places] == wanted, self.times[places], 0), places

    @cached_property
    def _keys(self) -> Ints:
        return self.patient * self.n_words + self.word

    def of(self, mask: Mask) -> Uses:
        """Select words by a mask, (n_words,)."""
        part = mask[self.word]
        return Uses(self.patient[part], self.word[part], self.times[part], self.n_words)


@dataclass(frozen=True)
class Habits:
    """How often words occur in a patient's notes, estimated from all other patients.

    Attributes:
        uses: of all patients. octave: (n_words,) words of similar frequency share a number.
    """

    uses: Uses
    octave: Ints

    def _table(self, rows: Ints, n_rows: int) -> Doubles:
        """Return tokens by the class of their count, (n_rows, n_classes)."""
        places = rows * CLASSES.size + class_of(self.uses.times)
        flat = np.bincount(places, self.uses.times, n_rows * CLASSES.size)
        return np.asarray(flat, dtype=np.float64).reshape(n_rows, CLASSES.size)

    @cached_property
    def _words(self) -> Doubles:
        return self._table(self.uses.word, self.uses.n_words)

    @cached_property
    def _totals(self) -> Doubles:
        return np.asarray(self._words.sum(axis=1))

    @cached_property
    def _by_octave(self) -> Doubles:
        """Return shares of the classes per octave without each patient, (n_patients, n_octaves, n_classes)."""
        uses, n_octaves, n_patients = self.uses, int(self.octave.max()) + 1, int(self.uses.patient.max()) + 1
        own = self._table(uses.patient * n_octaves + self.octave[uses.word], n_patients * n_octaves)
        own = own.reshape(n_patients, n_octaves, CLASSES.size)
        others = own.sum(axis=0) - own + 1.0
        return np.asarray(others / others.sum(axis=2, keepdims=True))

    def log_shares(self, patient: Ints, word: Ints, times: Ints) -> Doubles:
        """Return log P(class of `times` | word) in other patients, (n_shrinkages, n); 0 without counts."""
        kind = class_of(times)
        usual = self._by_octave[patient, self.octave[word], kind]
        own, _ = self.uses.times_of(patient, word)
        seen = self._words[word, kind] - np.where(class_of(np.maximum(own, 1)) == kind, own, 0)
        others = self._totals[word] - own
        used = [
            np.log((seen + shrinkage * usual) / (others + shrinkage))
            for shrinkage in SHRINKAGES
            if np.isfinite(shrinkage)
        ]
        return np.stack([*used, np.zeros(kind.size)])


def class_of(times: Ints) -> Ints:
    """Return the class of each count, from 0."""
    return np.searchsorted(CLASSES, times, side="right") - 1


@dataclass(frozen=True)
class _Draws:
    """The words of a band after one draw per patient and word.

    Attributes:
        uses: the patients' words of the band. drawn: (n_pairs,) the output of each.
        top: the most frequent out-of-vocabulary word of the band, as a word of `uses`.
    """

    band: Band
    uses: Uses
    drawn: Ints
    top: int

    def _words(self, rows: NDArray[Any]) -> Ints:
        """Return the words that an attacker names for rows of the channel; the unknown row is its top word."""
        return np.where(rows == len(self.band.channel.words), self.top, rows).astype(np.int64)

    @cached_property
    def shown(self) -> tuple[Ints, Ints, Ints]:
        """Return what is released: patients, outputs, and how often each occurs."""
        n = len(self.band.channel.words)
        keys, inverse = np.unique(self.uses.patient * n + self.drawn, return_inverse=True)
        return keys // n, keys % n, np.bincount(inverse, self.uses.times).astype(np.int64)

    def guesses(self, habits: Habits) -> Ints:
        """Return the word named for each released output, (n_pulls, n_shown)."""
        joint = self.band.posterior.joint
        patient, output, times = self.shown
        lengths = np.diff(joint.indptr)[output].astype(np.int64)
        ends = np.cumsum(lengths)
        named = np.zeros((len(SHRINKAGES), output.size), dtype=np.int64)
        for batch in np.split(np.arange(output.size), np.flatnonzero(np.diff(ends // _CANDIDATES)) + 1):
            case = np.repeat(batch, lengths[batch])
            places = np.arange(case.size) + ends[batch[0]] - lengths[batch[0]] - (ends - lengths)[case]
            places += joint.indptr[output[case]]
            word = self._words(joint.indices[places])
            scores = np.log(joint.data[places]) + habits.log_shares(patient[case], word, times[case])
            for row, score in enumerate(scores):
                named[row, batch] = word[_first_maxima(score, lengths[batch])]
        return named

    def cross_chosen(self, guesses: Ints) -> Ints:
        """Return the guesses of the shrinkage that is best in the other half of the patients, (n_shown,)."""
        odd = self.shown[0] % 2
        hits = np.array([[self.hits(named)[odd == half].sum() for half in (0, 1)] for named in guesses])
        best = hits.argmax(axis=0)
        return np.asarray(np.where(odd == 0, guesses[best[1]], guesses[best[0]]))

    def hits(self, named: Ints) -> Ints:
        """Return the tokens of each released output for which the named word is right, (n_shown,)."""
        patient, output, _ = self.shown
        times, places = self.uses.times_of(patient, named)
        return np.where(self.drawn[places] == output, times, 0)

    def by_patient(self, hits: Ints) -> Ints:
        """Return hits and tokens of the patients who have any, (n_patients, 2)."""
        size = int(self.uses.patient.max()) + 1
        table = np.column_stack([np.bincount(self.shown[0], w, size) for w in (hits, self.shown[2])]).astype(np.int64)
        return table[table[:, 1] > 0]

    def shuffled(self, named: Ints) -> float:
        """Return the share of hits of the same guesses permuted among the tokens."""
        n = self.uses.n_words
        guessed, true = np.bincount(named, self.shown[2], n), np.bincount(self.uses.word, self.uses.times, n)
        return float((guessed * true).sum() / guessed.sum() / true.sum())

    def prior_vulnerability(self) -> float:
        """Return the share of the most frequent word."""
        usual = self._words(np.asarray(np.argmax(self.band.won)))
        return float(self.uses.times[self.uses.word == usual].sum() / self.uses.times.sum())


def _first_maxima(score: Doubles, lengths: Ints) -> Ints:
    """Return the index of the largest score in each run of these lengths; the first of equals."""
    starts = np.cumsum(lengths) - lengths
    maxima = np.flatnonzero(score == np.repeat(np.maximum.reduceat(score, starts), lengths))
    return maxima[np.searchsorted(maxima, starts)]


def inversion_counts(
    channel: Channel,
    counts: Ints,
    corpus: Corpus,
    unknown: Mapping[str, int] = MappingProxyType({}),
    *,
    rng: Generator,
    rare: int = RARE,
    patients: int = PATIENTS,
) -> list[Finding]:
    """Measure the share of words recovered by an attacker who counts outputs in a patient's notes, all and rare.

    One draw is made per patient and word, as in scope `patient`. Memory is bounded by a uniform sample of `patients`
    patients. `one_draw` in the detail is the attacker of `inversion` on the same draws.

    Args:
        corpus: the notes as they enter the channel. counts, unknown, errors: as in `inversion_names`.
    """
    outside = dict(sorted(unknown.items(), key=lambda item: -item[1]))
    inputs = Inputs(channel, counts, frequencies(outside))
    sample = sampled_words(corpus, patients, rng)
    uses = _uses(list(sample.values.values()), [*channel.words, *outside])
    occurrences = np.concatenate([counts, inputs.unknown])
    speaks = np.append(channel.speaks[:-1], np.full(len(outside), channel.speaks[-1]))
    habits = Habits(uses, np.log2(np.maximum(occurrences, 1)).astype(np.int64))
    bands = {"all": (inputs.all, speaks), f"below {rare}": (inputs.below(rare), speaks & (occurrences < rare))}
    found = []
    for name, (band, mask) in bands.items():
        detail: dict[str, Any] = {"stratum": name, "scope": "patient", "sampled": sample.left_out}
        top = len(counts) + int(np.argmax(mask[len(counts) :])) if outside else len(counts)
        found.append(_counted(band, uses.of(mask), top, habits, rng, detail))
    return found


def _counted(band: Band, uses: Uses, top: int, habits: Habits, rng: Generator, detail: dict[str, Any]) -> Finding:
    if not uses.times.size:
        return unmeasured(COUNTED, NO_SUCH_WORD, detail=detail, source=COUNTED_SOURCE, unit="tokens")
    rows = np.minimum(uses.word, band.channel.unknown)
    draws = _Draws(band, uses, drawn_outputs(band.channel, rows, 1, rng)[:, 0], top)
    every = draws.guesses(habits)
    named = draws.cross_chosen(every)
    by_patient = draws.by_patient(draws.hits(named))
    one_draw = ratio(draws.by_patient(draws.hits(every[-1])))
    about: dict[str, Any] = {
        "source": COUNTED_SOURCE,
        "detail": {**detail, "one_draw": one_draw, "patients": len(by_patient)},
    }
    about |= {"chance": draws.prior_vulnerability(), "control": draws.shuffled(named), **GUESSING}
    return clustered_share(COUNTED, by_patient, over="patients", **about)


def _uses(counters: Sequence[Counter[str]], vocabulary: Sequence[str]) -> Uses:
    """Return the pairs of patient and word; words outside the vocabulary lists are left out."""
    ids = {word: row for row, word in enumerate(vocabulary)}
    rows = [sorted((ids[word], n) for word, n in counter.items() if word in ids) for counter in counters]
    pairs = np.array([pair for row in rows for pair in row], dtype=np.int64).reshape(-1, 2)
    patient = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return Uses(patient, pairs[:, 0], pairs[:, 1], len(vocabulary))
