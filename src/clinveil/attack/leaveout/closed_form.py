"""S-PDTP of the unigram model: exact, for every unit, without training anything twice."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from clinveil.attack.pdtp import unigram_pdtp
from clinveil.finding import Finding
from clinveil.lm.notes import PlainNotes
from clinveil.stats import bootstrap_clusters

SOURCE = "paper C, section 4.2 and Table 2 (unigram), closed form"


def closed_form(notes: PlainNotes, rng: Generator, *, by_note: bool = False, alpha: float = 1.0) -> list[Finding]:
    """`attack.pdtp` of the unigram model over all units; words only, as in paper C's code.

    There is no placebo or reseed floor to set beside it: nothing is drawn at random, and leaving out another unit
    changes a word's probability by its own share, which is `control` (the mean over pairs of a sample).
    """
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in text.split()] for text in notes.texts]
    groups: dict[str, list[int]] = {}
    for row, patient in enumerate(notes.patients):
        groups.setdefault(str(row) if by_note else patient, []).extend(rows[row])
    units = [np.unique(np.array(words, dtype=np.int64), return_counts=True) for words in groups.values()]
    counts = np.bincount(np.concatenate([np.repeat(*unit) for unit in units]), minlength=len(numbers))
    scores = unigram_pdtp(counts, units, alpha)
    low, high = bootstrap_clusters(scores, lambda values: float(values.mean()), rng)
    detail: dict[str, str | float] = {"mode": "unigram", "model": "unigram", "scale": "nats"}
    detail["unit"] = "notes" if by_note else "patients"
    detail |= {"interval": "bootstrap over units, 95 %", "largest": float(scores.max()), "words": len(numbers)}
    placebo = _placebo(counts, units, alpha, rng)
    detail["control_is"] = "another unit left out, mean over random pairs"
    return [
        Finding("attack.pdtp", float(scores.mean()), scores.size, "lower", low, high, None, placebo, SOURCE, detail)
    ]


def _placebo(
    counts: np.ndarray[tuple[int], np.dtype[np.int64]],
    units: list[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]],
    alpha: float,
    rng: Generator,
    pairs: int = 200,
) -> float | None:
    """The mean largest difference over the words of one unit when another one is left out."""
    if len(units) < 2:
        return None
    total = counts.sum() + alpha * counts.size
    found = []
    for _ in range(pairs):
        scored, left = (units[i] for i in rng.choice(len(units), 2, replace=False))
        gone = np.zeros(counts.size, dtype=np.int64)
        gone[left[0]] = left[1]
        after = np.log((counts - gone + alpha) / (total - gone.sum()))[scored[0]]
        found.append(float(np.abs(np.log((counts + alpha) / total)[scored[0]] - after).max()))
    return float(np.mean(found))
