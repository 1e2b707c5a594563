"""Linkage by length and sentence ends alone, which running text keeps whatever its words are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import diags

from clinveil.attacks.text.linkage.matchers import counts
from clinveil.attacks.text.linkage.sides import LinkageSides
from clinveil.core import Doubles, Ints, Mask, WordIds, word_spans

LONGEST_CODE = 62  # bits of a 64-bit number
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
    """Return the share of the places of each note with the sentence ends of the fragment.

    Whether a sentence ends before the first word is not part of ten words. Fragments of one length
    are compared at once, each as a number with a bit for every word.
    """
    scores = np.zeros((len(released), len(known)))
    sizes = np.array([pattern.size for pattern in known])
    for size in np.unique(sizes).tolist():
        columns = np.flatnonzero(sizes == size)
        patterns = np.array([_codes(known[at], size)[0] for at in columns.tolist()])
        for row, ends in enumerate(released):
            codes, counts = np.unique(_codes(ends, size), return_counts=True)
            at = np.minimum(np.searchsorted(codes, patterns), codes.size - 1)
            share = counts[at] / counts.sum()
            scores[row, columns] = np.where(codes[at] == patterns, share, 0.0)
    return scores


def _codes(ends: Mask, size: int) -> Ints:
    """Return the sentence ends within each run of `size` words as a number; a shorter note is one
    run.
    """
    places = max(1, ends.size - size + 1)
    exact = np.int64 if size <= LONGEST_CODE else object
    padded = np.append(ends, np.zeros(size, dtype=np.bool_)).astype(exact)
    codes = np.zeros(places, dtype=exact)
    for k in range(1, size):
        codes = 2 * codes + padded[k : k + places]
    return codes
