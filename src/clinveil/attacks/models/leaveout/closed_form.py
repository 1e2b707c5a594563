"""S-PDTP of the unigram model: exact, for every unit, without training anything twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from clinveil.attacks.models.leaveout import crossfit
from clinveil.core.finding import Finding
from clinveil.core.types import Doubles, Ints
from clinveil.lm.notes import PlainNotes

OTHERS = 5  # left out, for the placebo of one unit
PLACEBO = f"{OTHERS} other units left out, one at a time, mean"
SOURCE = "paper C, section 4.2 and Table 2 (unigram), closed form"


def closed_form(notes: PlainNotes, rng: Generator, *, by_note: bool = False, alpha: float = 1.0) -> list[Finding]:
    """`attack.pdtp` and `attack.pdtp_effect` of the unigram over all units; words only, as in paper C's code.

    There is no reseed floor and no other seed: nothing is drawn at random. Leaving out another unit changes a word's
    probability by that unit's own share of it: the control, of each unit the mean over a few others.
    """
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in text.split()] for text in notes.texts]
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(str(row) if by_note else patient, []).extend(rows[row])
    units = [np.unique(np.array(words, dtype=np.int64), return_counts=True) for words in groups.values()]
    counts = np.bincount(np.concatenate([np.repeat(*unit) for unit in units]), minlength=len(numbers))
    scores = unigram_pdtp(counts, units, alpha)
    group = crossfit.groups_of(notes.patients if by_note else tuple(groups), len(units))
    detail: dict[str, Any] = {"mode": "unigram", "model": "unigram", "scale": "nats", "words": len(numbers)}
    largest = {**detail, "largest": float(scores.max())}
    about: dict[str, Any] = {"unit": "notes" if by_note else "patients", "source": SOURCE}
    if len(units) < 2:
        return [crossfit.mean_finding("attack.pdtp", scores, group, largest, **about)]
    floors = _floors(counts, units, alpha, rng)
    placebo = {"control": float(floors[:, 0].mean()), "control_is": PLACEBO, "control_kind": "negative"}
    found = [crossfit.mean_finding("attack.pdtp", scores, group, largest, **about, **placebo)]
    if len(units) > 2:
        about |= {"control": float(floors[:, 2].mean()), "control_is": crossfit.CONTROL, "control_kind": "negative"}
    effect = crossfit.mean_finding("attack.pdtp_effect", floors[:, 1], group, detail, **crossfit.NO_EFFECT, **about)
    return [*found, effect]


def unigram_pdtp(counts: Ints, units: Sequence[tuple[Ints, Ints]], alpha: float = 1.0) -> Doubles:
    """(n_units,) S-PDTP of a unigram model with Lidstone smoothing, in closed form; the vocabulary is kept.

    max over words w of the unit of |log (C_w + a)/(N + aV) - log (C_w + a - n_w)/(N + aV - |unit|)|.

    Args:
        counts: (n_words,) occurrences of each word in all training notes, the units' own among them.
        units: of each unit the words it holds (distinct rows) and how often.
        alpha: Lidstone's constant.

    Raises:
        ValueError: alpha not positive, a unit without words, or with more of a word than there is.
    Source: paper C, section 4.2, and its released code.
    """
    if alpha <= 0:
        raise ValueError("Lidstone's constant must be positive")
    total = counts.sum() + alpha * counts.size
    scores = np.empty(len(units))
    for place, (rows, often) in enumerate(units):
        if not rows.size or (often > counts[rows]).any():
            raise ValueError("a unit has no word, or more of one than all notes together")
        with_unit = np.log((counts[rows] + alpha) / total)
        without = np.log((counts[rows] + alpha - often) / (total - often.sum()))
        scores[place] = np.abs(with_unit - without).max()
    return scores


def _floors(counts: Ints, units: list[tuple[Ints, Ints]], alpha: float, rng: Generator) -> Doubles:
    """(n_units, 3) placebo; effect of losing the unit at one of its words; mean of that for others (NaN for none)."""
    found = np.empty((len(units), 3))
    for unit in range(len(units)):
        others = rng.choice(len(units) - 1, min(OTHERS, len(units) - 1), replace=False)
        left = [unit, *(others + (others >= unit))]
        changes = np.stack([_change(counts, units[unit][0], units[other], alpha) for other in left])
        effects = crossfit.effects_on(-changes[None], 0)
        found[unit] = np.abs(changes[1:]).max(axis=1).mean(), effects[0], effects[1:].mean()
    return found


def _change(counts: Ints, scored: Ints, left: tuple[Ints, Ints], alpha: float) -> Doubles:
    """(n_scored,) log p of some words less what it is when a unit is left out."""
    total = counts.sum() + alpha * counts.size
    before = counts[scored] + alpha
    _, here, there = np.intersect1d(scored, left[0], assume_unique=True, return_indices=True)
    gone = np.zeros(scored.size, dtype=np.int64)
    gone[here] = left[1][there]
    return np.asarray(np.log((total - left[1].sum()) / total) - np.log((before - gone) / before))
