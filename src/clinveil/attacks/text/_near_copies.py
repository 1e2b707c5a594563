"""Near copies: notes in which words were replaced, or of which some sentences were copied.

An own phrase of a patient has five words, and occurs in no held-out note and in notes of at most two training patients
(for held-out patients: of at most two patients of either side). A synthetic note is a near copy of the patient with
more of these phrases in it than coincidence explains. The limit depends on the median of the patients' largest count in
one synthetic note, so that copies do not raise it. Above an upper limit the count alone decides, and between both the
phrases must also be 8 % of the patient's. A note with one word in eight replaced keeps three of eight phrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.attacks.text._own_copies import Notes, patients_finding, phrase_hashes, stock_phrases
from clinveil.core.finding import Finding
from clinveil.core.types import Ints, SmallInts

PHRASE = 5  # words
LEAST, DEVIATIONS = 4, 4  # of the limit; the upper limit: 8, 6
UPPER_LEAST, UPPER_DEVIATIONS = 8, 6
SHARE = 0.08  # of the own phrases of a patient
Hashes = NDArray[np.uint64]


def near_copies(training: Notes, held_out: Notes, synthetic: Sequence[SmallInts], detail: dict[str, Any]) -> Finding:
    """Return `attack.copies_near`: training patients with a near copy; control: held-out patients."""
    sides = (training, held_out)
    keys = [phrase_hashes(side.ids, side.offsets, PHRASE) for side in sides]
    stock = stock_phrases(keys, [side.word_owners for side in sides])
    lengths = np.array([note.size for note in synthetic])
    offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    written = phrase_hashes(np.concatenate(synthetic), offsets, PHRASE)
    pairs = _distinct(written, np.repeat(np.arange(lengths.size), lengths), written != 0)
    counts, own = list[Ints](), list[Ints]()
    for side, key, is_stock in zip(sides, keys, stock, strict=True):
        phrases = _distinct(key, side.word_owners, (key != 0) & ~is_stock)
        counts.append(_most_in_one(phrases, pairs, lengths.size, side.patients))
        own.append(np.bincount(phrases[1], minlength=side.patients))
    # Where most patients are copied, their median is no measure of coincidence.
    middle = min(float(np.median(np.concatenate(counts))), float(counts[1].max()))
    limit, upper = (
        ceil(middle + deviations * sqrt(middle + 1) + least)
        for least, deviations in ((LEAST, DEVIATIONS), (UPPER_LEAST, UPPER_DEVIATIONS))
    )
    copied = [(n >= upper) | ((n >= limit) & (n >= SHARE * all_own)) for n, all_own in zip(counts, own, strict=True)]
    more = {**detail, "least_phrases": limit, "phrase": PHRASE, "most_phrases": int(counts[0].max())}
    return patients_finding("attack.copies_near", copied[0], copied[1], own[0] >= limit, {**more, "upper": upper})


def _distinct(keys: Hashes, owners: Ints, which: NDArray[np.bool_]) -> tuple[Hashes, Ints]:
    """Return the distinct pairs of phrase and owner, sorted by phrase."""
    keys, owners = keys[which], owners[which]
    order = np.lexsort((owners, keys))
    keys, owners = keys[order], owners[order]
    new = np.append(True, (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1]))[: keys.size]
    return keys[new], owners[new]


def _most_in_one(phrases: tuple[Hashes, Ints], written: tuple[Hashes, Ints], notes: int, patients: int) -> Ints:
    """Return the largest number of a patient's own phrases in one synthetic note, (n_patients,)."""
    first, last = (np.searchsorted(written[0], phrases[0], side) for side in ("left", "right"))
    n = last - first
    at = np.arange(n.sum()) + np.repeat(first - np.cumsum(n) + n, n)
    pairs, counts = np.unique(np.repeat(phrases[1], n) * notes + written[1][at], return_counts=True)
    most = np.zeros(patients, dtype=np.int64)
    np.maximum.at(most, pairs // notes, counts)
    return most
