"""Fit imported vectors to the notes at hand: keep the rows of their words, with their counts and
patients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

import numpy as np

from clinveil.core import InputError, Ints
from clinveil.core import words as words_of
from clinveil.vectors.count import WordCounts
from clinveil.vectors.table import Vectors

# of the notes' words, and of their tokens
FEWEST_WORDS = 20
LEAST_SHARE = 0.05
_SAMPLE = 500


def shared_words(vectors: Vectors, counts: WordCounts) -> Ints:
    """Return the rows of `counts` with a word that has a vector, ascending.

    Raises InputError if they are so few that the vectors must have another language or
    tokenization.
    """
    known = np.array(
        [i for i, word in enumerate(counts.words) if word in vectors.ids], dtype=np.int64
    )
    _refuse_foreign(len(known), len(counts), int(counts.counts[known].sum()), counts.n_tokens)
    return known


def refuse_foreign(vectors: Vectors, texts: Iterable[str]) -> None:
    """Check the first notes before any work. Raises InputError if almost none of their words have a
    vector.
    """
    seen = Counter(word for text in islice(texts, _SAMPLE) for word in words_of(text))
    known = [word for word in seen if word in vectors.ids]
    if seen:
        _refuse_foreign(len(known), len(seen), sum(seen[word] for word in known), seen.total())


def _refuse_foreign(known: int, n_words: int, known_tokens: int, n_tokens: int) -> None:
    share = known_tokens / max(n_tokens, 1)
    if known < FEWEST_WORDS or share < LEAST_SHARE:
        raise InputError(
            f"only {known:,} of {n_words:,} words of the notes have a vector ({share:.1%} of the"
            " tokens)",
            hint=(
                "check that the vectors have the language of the notes, lower case, and one word"
                " per row"
            ),
        )


def of_notes(vectors: Vectors, counts: WordCounts) -> Vectors:
    """Return imported vectors of the notes' words only, in the notes' order and with their counts
    and patients.

    The rare-word floor then depends on the notes at hand, not on the training notes of the vectors.
    Words without a vector are left out; a channel treats them as unknown. Raises InputError if
    almost no word has a vector.
    """
    known = shared_words(vectors, counts)
    words = [counts.words[i] for i in known]
    matrix = np.ascontiguousarray(vectors.matrix[[vectors.ids[word] for word in words]])
    patients = counts.patients[known]
    n_patients = counts.n_patients
    return replace(
        vectors,
        words=words,
        matrix=matrix,
        counts=counts.counts[known],
        patients=patients,
        n_patients=n_patients,
    )


def at_hand(vectors: Vectors, counts: WordCounts) -> Vectors:
    """Return vectors that have patient counts unchanged, others fitted by `of_notes`. Raises
    InputError as it does.
    """
    if vectors.patients is None:
        return of_notes(vectors, counts)
    shared_words(vectors, counts)
    return vectors


def without_vector(vectors: Vectors, counts: WordCounts) -> tuple[int, int]:
    """Return how many words of the notes have no vector, and how many tokens these are."""
    lacking = np.array([word not in vectors.ids for word in counts.words], dtype=np.bool_)
    return int(lacking.sum()), int(counts.counts[lacking].sum())
