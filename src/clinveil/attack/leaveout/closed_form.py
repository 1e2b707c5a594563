"""S-PDTP of the unigram model: exact, for every unit, without training anything twice."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from clinveil.attack.pdtp import unigram_pdtp
from clinveil.finding import Finding
from clinveil.lm.notes import PlainNotes
from clinveil.stats import bootstrap_clusters

Counts = NDArray[np.int64]
OTHERS = 5  # left out, for the placebo of one unit
SOURCE = "paper C, section 4.2 and Table 2 (unigram), closed form"


def closed_form(notes: PlainNotes, rng: Generator, *, by_note: bool = False, alpha: float = 1.0) -> list[Finding]:
    """`attack.pdtp` and `attack.pdtp_excess` of the unigram over all units; words only, as in paper C's code.

    There is no reseed floor: nothing is drawn at random. Leaving out another unit changes a word's probability by that
    unit's own share of it: the control, of each unit the mean over a few others.
    """
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in text.split()] for text in notes.texts]
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(str(row) if by_note else patient, []).extend(rows[row])
    units = [np.unique(np.array(words, dtype=np.int64), return_counts=True) for words in groups.values()]
    counts = np.bincount(np.concatenate([np.repeat(*unit) for unit in units]), minlength=len(numbers))
    scores = unigram_pdtp(counts, units, alpha)
    detail: dict[str, str | float] = {"mode": "unigram", "model": "unigram", "scale": "nats"}
    detail["unit"] = "notes" if by_note else "patients"
    detail |= {"interval": "bootstrap over units, 95 %", "words": len(numbers)}
    placebos = _placebos(counts, units, alpha, rng) if len(units) > 1 else None
    control = None if placebos is None else float(placebos.mean())
    more = {
        **detail,
        "largest": float(scores.max()),
        "control_is": f"{OTHERS} other units left out, one at a time, mean",
    }
    found = [_mean("attack.pdtp", scores, rng, None, control, more)]
    if placebos is not None:
        found.append(_mean("attack.pdtp_excess", scores - placebos, rng, 0.0, None, detail))
    return found


def _mean(
    measure: str,
    values: NDArray[np.float64],
    rng: Generator,
    chance: float | None,
    control: float | None,
    detail: dict[str, str | float],
) -> Finding:
    low, high = bootstrap_clusters(values, lambda drawn: float(drawn.mean()), rng)
    return Finding(measure, float(values.mean()), values.size, "lower", low, high, chance, control, SOURCE, detail)


def _placebos(counts: Counts, units: list[tuple[Counts, Counts]], alpha: float, rng: Generator) -> NDArray[np.float64]:
    """(n_units,) the largest difference over the words of a unit when another is left out; mean over some others."""
    total = counts.sum() + alpha * counts.size
    found = np.zeros(len(units))
    for unit, (scored, _) in enumerate(units):
        before = counts[scored] + alpha
        others = rng.choice(len(units) - 1, min(OTHERS, len(units) - 1), replace=False)
        for other in others + (others >= unit):
            left, times = units[other]
            _, here, there = np.intersect1d(scored, left, assume_unique=True, return_indices=True)
            gone = np.zeros(scored.size, dtype=np.int64)
            gone[here] = times[there]
            change = np.log((before - gone) / before) - np.log((total - times.sum()) / total)
            found[unit] += float(np.abs(change).max(initial=0.0)) / others.size
    return found
