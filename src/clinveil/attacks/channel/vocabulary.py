"""Whether a rare word stands in a note at all, told by the outputs that are there and those that are not.

Order is of no use to this attacker, so a shuffle does not hinder them. They hold the channel, lay a rare word beside a
note, and ask how much likelier its outputs are if the word stands there once: as Poisson counts,

    sum over y of c(y) log(1 + C(y | x) / (n q(y))) - 1

with c(y) the note's outputs y, n all its outputs, and q(y) how often y stands in the release. A memo repeats draws, so
under one an output counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_matrix

from clinveil.attacks.adversary import AdversaryView, AlignedNote
from clinveil.attacks.attack import Attack, Context, attacks
from clinveil.attacks.channel._inputs import RARE
from clinveil.attacks.channel._view import halves, scenes
from clinveil.core.finding import Finding
from clinveil.core.settings import flag
from clinveil.core.types import Doubles, Ints
from clinveil.core.words import words_beside
from clinveil.stats import bootstrap_clusters, ratio
from clinveil.stats.findings import unmeasured

MEASURE = "attack.vocabulary"
SOURCE = "likelihood ratio of Poisson counts, with and without the word; attack A8 of the threat model"
OTHERS, WORDS, TOKENS = 10, 1000, 200_000
BESIDE: Any = {
    "unit": "pairs",
    "chance": 0.5,
    "chance_is": "scores without order",
    "control_is": "the same scores, outputs dealt out anew among all notes",
    "control_kind": "negative",
    "source": SOURCE,
}


@attacks.register("vocabulary")
class Vocabulary(Attack):
    """Tell notes in which a rare word stands from notes in which it does not, by the outputs of the channel."""

    needs = frozenset({"channel", "counts", "released", "entered"})
    words = words_beside(__file__)
    order = 420
    rare: int = flag(RARE, "Words of fewer occurrences are rare.", ge=2)
    asked: int = flag(WORDS, "Rare words that are asked about, drawn by chance.", ge=1)

    def __call__(self, context: Context, rng: Generator) -> list[Finding]:
        """Raises InputError for fewer than two patients, and where notes and channel do not belong together."""
        cases = scenes(context, halves(context, TOKENS, 0, rng), rng)
        notes = [note for view in cases for note in view.notes]
        return [vocabulary(replace(cases[0], notes=notes), rng, rare=self.rare, asked=self.asked)]


def vocabulary(view: AdversaryView, rng: Generator, *, rare: int = RARE, asked: int = WORDS) -> Finding:
    """P(a note with the word scores above one of another patient without it), over rare words and their notes.

    Args:
        rare: words of fewer occurrences (`view.counts`) are rare. asked: so many of them, drawn by chance.
    """
    assert view.counts is not None
    about = {"rare": rare, "scope": view.channel.policy.scope}
    some = np.flatnonzero((view.counts > 0) & (view.counts < rare) & (np.diff(view.channel.indptr)[:-1] > 0))
    drawn = np.sort(rng.permutation(some)[:asked])
    pairs = _pairs(view.notes, drawn, rng)
    if not len(pairs):
        return unmeasured(MEASURE, "no rare word that some patients' notes have and others' have not", detail=about)
    areas, control = _areas(view, pairs), _areas(replace(view, notes=_dealt(view.notes, rng)), pairs)
    by_patient = _by_patient(view.notes, pairs, areas)
    ends = bootstrap_clusters(by_patient, ratio, rng)
    told: Any = {"control": float(control.mean()), "method": "bootstrap over patients, 95 %", "detail": about, **BESIDE}
    return Finding(MEASURE, float(areas.mean()), len(pairs), "lower", *ends, **told)


def _pairs(notes: Sequence[AlignedNote], words: Ints, rng: Generator) -> Ints:
    """(n, 2 + OTHERS): a rare word, a note that has it, and notes of other patients that have it not."""
    having: dict[int, list[int]] = {word: [] for word in words.tolist()}
    for row, note in enumerate(notes):
        for word in np.intersect1d(note.truth, words).tolist():
            having[word].append(row)
    patients, found = np.array([note.patient for note in notes]), list[list[int]]()
    for word, rows in having.items():
        without = np.flatnonzero(~np.isin(patients, patients[rows]))
        if without.size:
            found += [[word, row, *rng.choice(without, OTHERS).tolist()] for row in rows]
    return np.array(found, dtype=np.int64).reshape(-1, 2 + OTHERS)


def _areas(view: AdversaryView, pairs: Ints) -> Doubles:
    """Of each pair the share of notes without the word that score below the note with it; ties by half."""
    counts, n_words = _outputs(view), len(view.channel.words)
    often = np.bincount(np.concatenate([note.outputs for note in view.notes]), minlength=n_words) + 0.5
    rate, sizes = often / often.sum(), np.array([max(1, len(note)) for note in view.notes])
    areas = np.zeros(len(pairs))
    for word in np.unique(pairs[:, 0]).tolist():
        mine = np.flatnonzero(pairs[:, 0] == word)
        outputs, chances = view.channel.row(word)
        rows, back = np.unique(pairs[mine, 1:], return_inverse=True)
        ratios = np.log1p(chances / (sizes[rows, None] * rate[outputs]))
        scores = (counts[rows][:, outputs].toarray() * ratios).sum(axis=1)[back.reshape(mine.size, -1)]
        own, other = scores[:, :1], scores[:, 1:]
        areas[mine] = ((own > other) + 0.5 * (own == other)).mean(axis=1)
    return areas


def _outputs(view: AdversaryView) -> csr_matrix:
    """How often each note has each output, (n_notes, n_words); under a memo, whether."""
    rows = np.repeat(np.arange(len(view.notes)), [len(note) for note in view.notes])
    every = np.concatenate([note.outputs for note in view.notes])
    table = csr_matrix((np.ones(every.size), (rows, every)), shape=(len(view.notes), len(view.channel.words)))
    if view.channel.policy.scope != "occurrence":
        table.data[:] = 1
    return table


def _dealt(notes: Sequence[AlignedNote], rng: Generator) -> list[AlignedNote]:
    every = rng.permutation(np.concatenate([note.outputs for note in notes]))
    parts = np.split(every, np.cumsum([len(note) for note in notes])[:-1])
    return [replace(note, outputs=part) for note, part in zip(notes, parts, strict=True)]


def _by_patient(notes: Sequence[AlignedNote], pairs: Ints, areas: Doubles) -> Doubles:
    """(n_patients, 2) sums of the areas, and how many."""
    _, number = np.unique(np.array([notes[row].patient for row in pairs[:, 1].tolist()]), return_inverse=True)
    return np.stack([np.bincount(number, areas), np.bincount(number)], axis=1)
