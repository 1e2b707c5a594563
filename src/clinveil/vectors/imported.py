"""Vectors from elsewhere, fitted to the notes at hand: the rows of their words, with their counts and patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

import numpy as np

from clinveil.core.errors import InputError
from clinveil.core.tokens import words as words_of
from clinveil.core.types import Ints
from clinveil.vectors.count import WordCounts
from clinveil.vectors.table import Vectors

FEWEST_WORDS, LEAST_SHARE = 20, 0.05  # of the notes' words, and of their tokens
_SAMPLE = 500


def shared_words(vectors: Vectors, counts: WordCounts) -> Ints:
    """The numbers in `counts` of the words that have a vector, ascending.

    Raises InputError where they are so few that the vectors must be of another language, or another tokenization.
    """
    found = np.array([i for i, word in enumerate(counts.words) if word in vectors.ids], dtype=np.int64)
    _refuse_foreign(len(found), len(counts), int(counts.counts[found].sum()), counts.n_tokens)
    return found


def refuse_foreign(vectors: Vectors, texts: Iterable[str]) -> None:
    """Look at the first notes: vectors that know next to none of their words raise InputError before any work."""
    seen = Counter(word for text in islice(texts, _SAMPLE) for word in words_of(text))
    known = [word for word in seen if word in vectors.ids]
    if seen:
        _refuse_foreign(len(known), len(seen), sum(seen[word] for word in known), seen.total())


def _refuse_foreign(known: int, n_words: int, known_tokens: int, n_tokens: int) -> None:
    share = known_tokens / max(n_tokens, 1)
    if known < FEWEST_WORDS or share < LEAST_SHARE:
        raise InputError(
            f"the vectors know {known:,} of {n_words:,} words of the notes, {share:.1%} of their tokens",
            hint="are they of this language, in lower case, one word a row?",
        )


def of_notes(vectors: Vectors, counts: WordCounts) -> Vectors:
    """Vectors from elsewhere, of the notes' words alone, in the notes' order and with their counts and patients.

    So the notes at hand decide what may come out, whatever notes the vectors were trained on. Words without a vector
    are left out; the channel takes them for unknown ones. Raises InputError where next to no word has a vector.
    """
    found = shared_words(vectors, counts)
    words = [counts.words[i] for i in found]
    matrix = np.ascontiguousarray(vectors.matrix[[vectors.ids[word] for word in words]])
    patients, n_patients = counts.patients[found], counts.n_patients
    return replace(
        vectors, words=words, matrix=matrix, counts=counts.counts[found], patients=patients, n_patients=n_patients
    )


def at_hand(vectors: Vectors, counts: WordCounts) -> Vectors:
    """Vectors with patients of their own training notes as they are; others as `of_notes` makes them. InputError."""
    if vectors.patients is None:
        return of_notes(vectors, counts)
    shared_words(vectors, counts)
    return vectors


def without_vector(vectors: Vectors, counts: WordCounts) -> tuple[int, int]:
    """How many of the notes' words have no vector, and how many tokens they are."""
    lacking = np.array([word not in vectors.ids for word in counts.words], dtype=np.bool_)
    return int(lacking.sum()), int(counts.counts[lacking].sum())
