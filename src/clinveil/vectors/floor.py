"""The rare-word floor: which words may come out of a channel at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.tokens import words as words_of
from clinveil.vectors.count import WordCounts
from clinveil.vectors.table import Vectors

FEWEST_PATIENTS = 50


def usable(words: Sequence[str]) -> NDArray[np.bool_]:
    """Which words the tokenizer would give back as exactly one word in just this form, shape (n_words,).

    Others (`new_york`, `don't`, `covid19`, `The`, an empty one) occur in imported vectors; as an output they would
    fall apart or change when the release is read again.
    """
    return np.fromiter((words_of(word) == [word] for word in words), dtype=np.bool_, count=len(words))


def output_floor(
    vectors: Vectors, min_patients: int, *, need: int, allow_small: bool, counts: WordCounts | None = None
) -> NDArray[np.bool_]:
    """The words that may come out: usable ones, seen in the notes of at least `min_patients` patients.

    Args:
        vectors: with patients of their own training notes, which decide.
        min_patients: the floor (design, security rule 4).
        need: eligible words that the channel needs at least (N + 1: a word is never its own neighbour).
        allow_small: go on with fewer than 50 patients (paper A: not for small data sets).
        counts: words of the notes at hand; they decide for imported vectors, which carry no patients.

    Returns:
        A mask of shape (n_words,).

    Raises:
        InputError: no patient counts at all, fewer than 50 patients, fewer than `need` eligible words.
    """
    n_patients, patients = _patients(vectors, counts)
    if n_patients < FEWEST_PATIENTS and not allow_small:
        raise InputError(
            f"{n_patients} patients are fewer than {FEWEST_PATIENTS}: too few to hide among",
            hint="give more notes, or go on with --allow-small",
        )
    mask = (patients >= min_patients) & usable(vectors.words)
    if (eligible := int(mask.sum())) < need:
        raise InputError(
            f"{eligible} words occur in the notes of {min_patients} or more patients, but {need} are needed",
            hint="give more notes, or a smaller N or --min-patients",
        )
    return mask


def _patients(vectors: Vectors, counts: WordCounts | None) -> tuple[int, NDArray[np.int64]]:
    if vectors.patients is not None and vectors.n_patients is not None:
        return vectors.n_patients, vectors.patients
    if counts is None:
        raise InputError(
            "these vectors do not say in how many patients' notes a word occurs", hint="count the notes at hand"
        )
    known = dict(zip(counts.words, counts.patients.tolist(), strict=True))
    found = (known.get(word, 0) for word in vectors.words)
    return counts.n_patients, np.fromiter(found, dtype=np.int64, count=len(vectors))
