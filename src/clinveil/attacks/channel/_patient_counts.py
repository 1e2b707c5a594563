"""Token inversion under memo `patient`: how often an output stands in a patient's notes tells words apart.

The memo shows one draw for all places of a word in a patient's notes, so the places count it: an output that stands
forty times is hardly a word that others use once. The attacker holds the channel and the owner's word frequencies, as
in `inversion.py`, and knows how often each word stands in *other* patients' notes. At an output y that stands c times
they name the word with the largest pi(x) C(y|x) P(c | x).

P(c | x) is the share of the tokens of x that stand c times in a patient's notes (c in classes), over the other
patients, drawn towards that of equally frequent words. How strongly, or whether counts are of use at all, is settled
for each half of the patients by what would have served best on the other half.

Where several words of a patient come out as one output, the attacker takes them for one, and names the outputs of a
patient one by one: a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attacks.channel._inputs import (
    GUESSING,
    NO_SUCH_WORD,
    RARE,
    Band,
    Inputs,
    drawn_outputs,
    frequencies,
    sampled_words,
)
from clinveil.channel.channel import Channel
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints, Mask
from clinveil.corpus.corpus import Corpus
from clinveil.stats import ratio
from clinveil.stats.findings import clustered_share, unmeasured

PATIENTS = 1000
CLASSES = np.array([1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50, 75, 100])  # where classes of counts begin
PULLS = (1.0, 5.0, 25.0, np.inf)  # tokens of equally frequent words that weigh as the word's own; inf: no counting
_CANDIDATES = 2_000_000  # weighed at a time
MEASURE = "attack.inversion_counts"
SOURCE = "posterior over one memoised draw and its number of places; attack A5 of the threat model"


@dataclass(frozen=True)
class Uses:
    """Which patient uses which word how often: (n_pairs,) each, sorted by patient and word.

    Words are rows of the channel; from `len(channel.words)` on they are those that it does not know, the most frequent
    one first.
    """

    patient: Ints
    word: Ints
    times: Ints
    n_words: int

    def times_of(self, patient: Ints, word: Ints) -> tuple[Ints, Ints]:
        """How often these patients use these words, and the place of the pair; 0 and any place where they do not."""
        wanted = patient * self.n_words + word
        places = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        return np.where(self._keys[places] == wanted, self.times[places], 0), places

    @cached_property
    def _keys(self) -> Ints:
        return self.patient * self.n_words + self.word

    def of(self, kept: Mask) -> Uses:
        """Only the words of a mask, (n_words,)."""
        part = kept[self.word]
        return Uses(self.patient[part], self.word[part], self.times[part], self.n_words)


@dataclass(frozen=True)
class Habits:
    """How often words stand in a patient's notes, learnt from all patients but the one in question.

    Attributes:
        uses: of all patients. octave: (n_words,) words of similar frequency have one number.
    """

    uses: Uses
    octave: Ints

    def _table(self, rows: Ints, n_rows: int) -> Doubles:
        """(n_rows, n_classes) tokens by the class of their count."""
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
    def _usual(self) -> Doubles:
        """(n_patients, n_octaves, n_classes) shares of the classes in an octave, by all patients but each."""
        uses, n_octaves, n_patients = self.uses, int(self.octave.max()) + 1, int(self.uses.patient.max()) + 1
        own = self._table(uses.patient * n_octaves + self.octave[uses.word], n_patients * n_octaves)
        own = own.reshape(n_patients, n_octaves, CLASSES.size)
        others = own.sum(axis=0) - own + 1.0
        return np.asarray(others / others.sum(axis=2, keepdims=True))

    def log_shares(self, patient: Ints, word: Ints, times: Ints) -> Doubles:
        """log P(class of `times` | word) by the other patients, (n_pulls, n); 0 where counts are not used."""
        kind = class_of(times)
        usual = self._usual[patient, self.octave[word], kind]
        own, _ = self.uses.times_of(patient, word)
        seen = self._words[word, kind] - np.where(class_of(np.maximum(own, 1)) == kind, own, 0)
        others = self._totals[word] - own
        used = [np.log((seen + pull * usual) / (others + pull)) for pull in PULLS if np.isfinite(pull)]
        return np.stack([*used, np.zeros(kind.size)])


def class_of(times: Ints) -> Ints:
    """The class of each count, from 0."""
    return np.searchsorted(CLASSES, times, side="right") - 1


@dataclass(frozen=True)
class _Game:
    """The words of a band as the memo shows them: an output for each patient and word.

    Attributes:
        uses: the patients' words of the band. drawn: (n_pairs,) the output of each.
        top: the most frequent of the band's words that the channel does not know, as a word of `uses`.
    """

    band: Band
    uses: Uses
    drawn: Ints
    top: int

    def _words(self, rows: NDArray[Any]) -> Ints:
        """The words that an attacker means by rows of the channel: of unknown words the most frequent."""
        return np.where(rows == len(self.band.channel.words), self.top, rows).astype(np.int64)

    @cached_property
    def shown(self) -> tuple[Ints, Ints, Ints]:
        """What is seen: patients, outputs, and how often each stands there."""
        n = len(self.band.channel.words)
        keys, inverse = np.unique(self.uses.patient * n + self.drawn, return_inverse=True)
        return keys // n, keys % n, np.bincount(inverse, self.uses.times).astype(np.int64)

    def guesses(self, habits: Habits) -> Ints:
        """(n_pulls, n_shown) the word that is named at each shown output."""
        joint = self.band.posterior.joint
        patient, output, times = self.shown
        lengths = np.diff(joint.indptr)[output].astype(np.int64)
        ends = np.cumsum(lengths)
        named = np.zeros((len(PULLS), output.size), dtype=np.int64)
        for some in np.split(np.arange(output.size), np.flatnonzero(np.diff(ends // _CANDIDATES)) + 1):
            case = np.repeat(some, lengths[some])
            places = np.arange(case.size) + ends[some[0]] - lengths[some[0]] - (ends - lengths)[case]
            places += joint.indptr[output[case]]
            word = self._words(joint.indices[places])
            scores = np.log(joint.data[places]) + habits.log_shares(patient[case], word, times[case])
            for row, score in enumerate(scores):
                named[row, some] = word[_first_of_most(score, lengths[some])]
        return named

    def settled(self, guesses: Ints) -> Ints:
        """(n_shown,) of the guesses by pull those of the pull that hits most in the other half of the patients."""
        odd = self.shown[0] % 2
        hits = np.array([[self.hits(named)[odd == half].sum() for half in (0, 1)] for named in guesses])
        best = hits.argmax(axis=0)
        return np.asarray(np.where(odd == 0, guesses[best[1]], guesses[best[0]]))

    def hits(self, named: Ints) -> Ints:
        """(n_shown,) tokens of each shown output that the named word is right for."""
        patient, output, _ = self.shown
        times, places = self.uses.times_of(patient, named)
        return np.where(self.drawn[places] == output, times, 0)

    def by_patient(self, hits: Ints) -> Ints:
        """(n_patients, 2) hits and tokens of the patients who have any."""
        size = int(self.uses.patient.max()) + 1
        table = np.column_stack([np.bincount(self.shown[0], w, size) for w in (hits, self.shown[2])]).astype(np.int64)
        return table[table[:, 1] > 0]

    def shuffled(self, named: Ints) -> float:
        """The share that the same guesses hit when they are permuted among the tokens."""
        n = self.uses.n_words
        guessed, true = np.bincount(named, self.shown[2], n), np.bincount(self.uses.word, self.uses.times, n)
        return float((guessed * true).sum() / guessed.sum() / true.sum())

    def prior_vulnerability(self) -> float:
        """The share that is right when always the most frequent word is named."""
        usual = self._words(np.asarray(np.argmax(self.band.won)))
        return float(self.uses.times[self.uses.word == usual].sum() / self.uses.times.sum())


def _first_of_most(score: Doubles, lengths: Ints) -> Ints:
    """The place of the largest score in each run of these lengths; the first of equal ones."""
    starts = np.cumsum(lengths) - lengths
    most = np.flatnonzero(score == np.repeat(np.maximum.reduceat(score, starts), lengths))
    return most[np.searchsorted(most, starts)]


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
    """The share of words read back by an attacker who counts each output in a patient's notes, all and rare.

    One draw is made for each patient and word, as memo `patient` does. Memory is bounded by a uniform sample of
    `patients` patients. `one_draw` in the detail is the attacker of `inversion` on the same draws.

    Args:
        corpus: the notes as they enter the channel. counts, unknown, errors: as in `inversion_names`.
    """
    outside = dict(sorted(unknown.items(), key=lambda item: -item[1]))
    inputs = Inputs(channel, counts, frequencies(outside))
    sample = sampled_words(corpus, patients, rng)
    uses = _uses(list(sample.values.values()), [*channel.words, *outside])
    often = np.concatenate([counts, inputs.unknown])
    speaks = np.append(channel.speaks[:-1], np.full(len(outside), channel.speaks[-1]))
    habits = Habits(uses, np.log2(np.maximum(often, 1)).astype(np.int64))
    bands = {"all": (inputs.all, speaks), f"below {rare}": (inputs.below(rare), speaks & (often < rare))}
    found = []
    for name, (band, kept) in bands.items():
        detail: dict[str, Any] = {"stratum": name, "scope": "patient", "sampled": sample.left_out}
        top = len(counts) + int(np.argmax(kept[len(counts) :])) if outside else len(counts)
        found.append(_finding(band, uses.of(kept), top, habits, rng, detail))
    return found


def _finding(band: Band, uses: Uses, top: int, habits: Habits, rng: Generator, detail: dict[str, Any]) -> Finding:
    if not uses.times.size:
        return unmeasured(MEASURE, NO_SUCH_WORD, detail=detail, source=SOURCE, unit="tokens")
    rows = np.minimum(uses.word, band.channel.unknown)
    game = _Game(band, uses, drawn_outputs(band.channel, rows, 1, rng)[:, 0], top)
    every = game.guesses(habits)
    named = game.settled(every)
    by_patient = game.by_patient(game.hits(named))
    one_draw = ratio(game.by_patient(game.hits(every[-1])))
    told: dict[str, Any] = {"source": SOURCE, "detail": {**detail, "one_draw": one_draw, "patients": len(by_patient)}}
    told |= {"chance": game.prior_vulnerability(), "control": game.shuffled(named), **GUESSING}
    return clustered_share(MEASURE, by_patient, over="patients", **told)


def _uses(counters: Sequence[Counter[str]], vocabulary: Sequence[str]) -> Uses:
    """The pairs of patient and word; words that stand in no list of the owner's are left out."""
    ids = {word: row for row, word in enumerate(vocabulary)}
    rows = [sorted((ids[word], n) for word, n in counter.items() if word in ids) for counter in counters]
    pairs = np.array([pair for row in rows for pair in row], dtype=np.int64).reshape(-1, 2)
    patient = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    return Uses(patient, pairs[:, 0], pairs[:, 1], len(vocabulary))
