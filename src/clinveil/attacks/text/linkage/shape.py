"""Linkage by length and sentence ends alone, which running text keeps whatever its words are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import diags

from clinveil.attacks.text.linkage.matchers import counts
from clinveil.attacks.text.linkage.sides import LinkageSides
from clinveil.core import Doubles, Mask, WordIds, word_spans

_END = re.compile(r"[.!?]\s|\n\s*\n")


def sentence_ends(text: str) -> Mask:
    """Return whether a sentence ends between each word of a text and the word before it."""
    spans = list(word_spans(text))
    gaps = (text[before[1] : start] for before, (start, _) in pairwise(spans))
    ends = [False, *(_END.search(gap) is not None for gap in gaps)]
    return np.array(ends[: len(spans)], dtype=np.bool_)


def by_shape(sides: LinkageSides) -> Doubles:
    """Return the similarity of lengths and sentence ends, (n_released, n_known)."""
    released = [sentence_ends(text) for text in sides.released]
    if sides.wholes is None:
        return _of_whole(released, [sentence_ends(text) for text in sides.known])
    known = [
        sentence_ends(text)[start : start + len(words)]
        for text, start, words in zip(sides.wholes, sides.starts, sides.known_words, strict=True)
    ]
    return _of_fragments(released, known)


def _of_whole(released: Sequence[Mask], known: Sequence[Mask]) -> Doubles:
    """Return the cosine of pairs of adjacent sentence lengths, and how close the lengths are."""
    texts = [_length_pairs(ends) for ends in (*released, *known)]
    ids = WordIds.of((pair for text in texts for pair in text), first=0)
    matrix = counts(texts, ids)
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    matrix = diags(1 / np.maximum(norms, 1e-12)) @ matrix
    cosine = (matrix[: len(released)] @ matrix[len(released) :].T).toarray()
    lengths = np.array([ends.size for ends in (*released, *known)])
    distance = np.abs(lengths[: len(released), None] - lengths[None, len(released) :])
    return np.asarray(cosine + 1 / (1 + distance))


def _length_pairs(ends: Mask) -> list[str]:
    lengths = np.diff(np.concatenate([[0], np.flatnonzero(ends), [ends.size]])).tolist()
    return [f"{first} {second}" for first, second in pairwise([0, *lengths, 0])]


def _of_fragments(released: Sequence[Mask], known: Sequence[Mask]) -> Doubles:
    """Return the share of the places of each note with the sentence ends of the fragment."""
    scores = np.zeros((len(released), len(known)))
    for row, ends in enumerate(released):
        padded = np.append(ends, np.zeros(max(map(len, known)), dtype=np.bool_))
        for column, pattern in enumerate(known):
            # Whether a sentence ends before the first word is not part of ten words.
            places = max(1, ends.size - pattern.size + 1)
            fits = np.ones(places, dtype=np.bool_)
            for k in range(1, pattern.size):
                fits &= padded[k : k + places] == pattern[k]
            scores[row, column] = fits.mean()
    return scores
