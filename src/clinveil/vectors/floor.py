"""The rare-word floor: the words that may be outputs of a channel."""

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
    """Return which words the tokenizer returns unchanged as one word, shape (n_words,).

    Other words (`new_york`, `don't`, `covid19`, `The`, an empty one) occur in imported vectors. As outputs they would
    be split or changed when the release is tokenized again.
    """
    return np.fromiter((words_of(word) == [word] for word in words), dtype=np.bool_, count=len(words))


def output_floor(
    vectors: Vectors, min_patients: int, *, need: int, allow_small: bool, counts: WordCounts | None = None
) -> NDArray[np.bool_]:
    """Return the words that may be outputs: usable ones that occur in the notes of at least `min_patients` patients.

    Args:
        vectors: their patient counts are used if they have any.
        min_patients: the floor.
        need: eligible words that the channel needs at least (N + 1: a word is never its own neighbour).
        allow_small: accept fewer than 50 patients (paper A: not for small data sets).
        counts: counts of the notes at hand, used for imported vectors, which have no patient counts.

    Returns:
        A mask of shape (n_words,).

    Raises:
        InputError: no patient counts, fewer than 50 patients, or fewer than `need` eligible words.
    """
    n_patients, patients = _patients(vectors, counts)
    if n_patients < FEWEST_PATIENTS and not allow_small:
        raise InputError(
            f"the notes describe {n_patients} patients; at least {FEWEST_PATIENTS} are required",
            hint="pass more notes, or --set allow_small=true",
        )
    mask = (patients >= min_patients) & usable(vectors.words)
    if (eligible := int(mask.sum())) < need:
        raise InputError(
            f"{eligible} words occur in the notes of {min_patients} or more patients; {need} are required",
            hint="pass more notes, a smaller N or a smaller --min-patients",
        )
    return mask


def _patients(vectors: Vectors, counts: WordCounts | None) -> tuple[int, NDArray[np.int64]]:
    if vectors.patients is not None and vectors.n_patients is not None:
        return vectors.n_patients, vectors.patients
    if counts is None:
        raise InputError("the vectors have no patient counts of their words", hint="pass counts of the notes at hand")
    known = dict(zip(counts.words, counts.patients.tolist(), strict=True))
    patients = (known.get(word, 0) for word in vectors.words)
    return counts.n_patients, np.fromiter(patients, dtype=np.int64, count=len(vectors))
