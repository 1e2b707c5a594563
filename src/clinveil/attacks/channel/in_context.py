"""Token inversion of words drawn in context: words recovered from a release by an attacker with the
channel, its language model and the word frequencies of the source.

For a released word y_t the attacker names the word x with the largest pi(x) P(y_t | x, words
written before); the probabilities are exact (`Mechanism.likelihood`). No attacker who uses neither
later words nor the words around x is better. The share of right names depends on the words written
before, so it is counted on a sample of released words. Words outside the channel's vocabulary are
never named: of two words that can produce y_t through the language model alone, the attacker
prefers the more frequent one.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from clinveil.attacks.adversary import NoteRows
from clinveil.attacks.attack import Context, channel_and_counts
from clinveil.attacks.channel._view import adversary_views, halves
from clinveil.channel import Mechanism, mechanism_of
from clinveil.core import Doubles, Finding, Ints, Mask
from clinveil.scale import threads
from clinveil.stats import HitCounts, MeasureSpec

WORDS = 20_000
CHANCE_IS = "always naming the most frequent of these words"
CONTROL_IS = "the same guesses, shuffled among these words"
SOURCE = (
    "Bayes vulnerability with the words written before, counted on released words: Smith 2009,"
    " FoSSaCS"
)
NO_SUCH_WORD = "no such word among the sampled words"


def inversion_in_context(
    context: Context, names: Set[str], rng: Generator, *, rare: int, words: int = WORDS
) -> list[Finding]:
    """Return `attack.inversion` of all words, rare words and names on a sample of released words.

    Args:
        context: with channel, counts, released and entered notes. names: forms of names; without
            any, names have no finding. rare: words of fewer occurrences are rare.
            words: size of the sample.

    Raises:
        InputError: fewer than two patients, or release and notes do not match.
    """
    channel, counts, _ = channel_and_counts(context)
    views = adversary_views(context, halves(context, words, 0, rng))
    notes = [note for view in views for note in view.notes]
    mechanism = mechanism_of(channel)
    bands = [
        _Band("attack.inversion", ("all words",), np.ones(counts.size + 1, dtype=np.bool_)),
        _Band(
            "attack.inversion_rare",
            (f"words seen below {rare} times",),
            np.append(counts < rare, True),
        ),
    ]
    if names:
        of_names = np.array([word in names for word in channel.words], dtype=np.bool_)
        bands.append(_Band("attack.inversion_names", (), np.append(of_names, False)))
    priors = [np.where(band.words[:-1], counts, 0).astype(np.float64) for band in bands]

    def guessed(note: NoteRows) -> list[Ints]:
        return guesses(note, mechanism, priors)

    found = list(threads(context.workers)(guessed, notes))
    truth = np.concatenate([note.truth for note in notes])
    patients = np.repeat([note.patient for note in notes], [len(note) for note in notes])
    return [
        band.finding(truth, np.concatenate([of_note[place] for of_note in found]), patients)
        for place, band in enumerate(bands)
    ]


def guesses(note: NoteRows, mechanism: Mechanism, priors: list[Doubles]) -> list[Ints]:
    """Return the word with the largest prior times likelihood for each released word, (n,), by
    prior.

    Args:
        priors: (n_words,) each; words with a prior of 0 are named only if no other is possible.
    """
    likelihood = note.likelihood(mechanism)
    position = np.repeat(np.arange(len(note)), np.diff(likelihood.starts))
    named = list[Ints]()
    for prior in priors:
        most_frequent = int(prior.argmax())
        score = likelihood.chances * prior[likelihood.rows]
        order = np.argsort(score, kind="stable")
        order = order[score[order] > (likelihood.others * prior[most_frequent])[position[order]]]
        guess = np.full(len(note), most_frequent, dtype=np.int64)
        # Of repeated positions the last one, with the largest score, is assigned.
        guess[position[order]] = likelihood.rows[order]
        named.append(guess)
    return named


@dataclass(frozen=True, eq=False)
class _Band:
    """A subset of the words, of which the attacker knows that the source word is one.

    Attributes:
        words: (n_words + 1,) mask; the last one is for words outside the vocabulary.
    """

    measure: str
    labels: tuple[str, ...]
    words: Mask = field(repr=False)

    def finding(self, truth: Ints, guess: Ints, patients: Ints) -> Finding:
        """Return the share of these words that are named; arguments are (n,) of all sampled
        words.
        """
        spec = MeasureSpec(
            measure=self.measure,
            over="patients",
            unit="tokens",
            source=SOURCE,
            chance_is=CHANCE_IS,
            control_is=CONTROL_IS,
            control_kind="negative",
        )
        inside = self.words[truth]
        if not inside.any():
            return spec.missing(NO_SUCH_WORD, labels=self.labels)
        own = truth[inside]
        named = guess[inside]
        _, place = np.unique(patients[inside], return_inverse=True)
        hits = np.column_stack([np.bincount(place, named == own), np.bincount(place)])
        size = self.words.size
        shares = np.bincount(own, minlength=size) / own.size
        guessed = np.bincount(named, minlength=size) / own.size
        known = shares[:-1]
        counts = HitCounts.of_clusters(
            hits.astype(np.int64),
            chance=float(known.max()) if known.size else 0.0,
            control=float(known @ guessed[:-1]),
        )
        types = int(np.count_nonzero(shares))
        return spec.share(counts, labels=self.labels, numbers={"draws": 1, "types": types})
