"""Matchers without the channel: of every released note and every known text, how alike they are.

Each takes the two sides and returns scores, (n_released, n_known): the higher, the more alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix, diags

from clinveil.attacks.text.linkage.sides import Sides
from clinveil.core.tokens import WordIds
from clinveil.core.types import Doubles
from clinveil.vectors.table import Vectors

K1, B = 1.2, 0.75
_NUMBER, _MARK = re.compile(r"\d+"), re.compile(r"[^\w\s]")


def counts(texts: Sequence[Sequence[str]], ids: WordIds) -> csr_matrix:
    """(n_texts, n_words) how often each word stands in each text; words without a number are left out."""
    rows = [ids.encode(text) for text in texts]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *(np.array(row, dtype=np.int64) for row in rows)])
    made = csr_matrix((np.ones(flat.size), flat, indptr), shape=(len(texts), len(ids)))
    made.sum_duplicates()
    return made


def both(sides: Sides, *, pairs: bool = False) -> tuple[csr_matrix, csr_matrix]:
    """Counts of both sides over the words (or pairs of neighbouring words) of both."""
    texts = [[_pairs(text) for text in side] if pairs else side for side in (sides.released_words, sides.known_words)]
    ids = WordIds.of((word for side in texts for text in side for word in text), first=0)
    return counts(texts[0], ids), counts(texts[1], ids)


def _pairs(text: Sequence[str]) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(text)]


def rarity(*sides: csr_matrix) -> Doubles:
    """(n_words,) log((1 + texts) / (1 + texts with the word)) + 1 over all texts of both sides."""
    n = sum(side.shape[0] for side in sides)
    seen = sum(np.bincount(side.indices, minlength=side.shape[1]) for side in sides)
    return np.asarray(np.log((1 + n) / (1 + seen)) + 1)


def tfidf(sides: Sides, *, pairs: bool = False) -> Doubles:
    """Cosine of TF-IDF, 1 + log of counts, over words or pairs of neighbouring words."""
    released, known = both(sides, pairs=pairs)
    rare = diags(rarity(released, known))
    one, other = (unit(logged(side) @ rare) for side in (released, known))
    return np.asarray((one @ other.T).toarray())


def logged(made: csr_matrix) -> csr_matrix:
    """1 + log of each count."""
    return csr_matrix((1 + np.log(made.data), made.indices, made.indptr), shape=made.shape)


def unit(made: csr_matrix) -> csr_matrix:
    """Each row of length 1; a row of nothing stays."""
    norms = np.sqrt(np.asarray(made.multiply(made).sum(axis=1)).ravel())
    return diags(1 / np.maximum(norms, 1e-12)) @ made


def bm25(sides: Sides, *, asked_by_known: bool = False) -> Doubles:
    """Okapi BM25 of known texts for the words of released notes, or (`asked_by_known`) the other way round.

    Source: Robertson & Zaragoza 2009, Found. Trends Inf. Retr. 3:333, k1 = 1.2, b = 0.75.
    """
    released, known = both(sides)
    texts, asked = (released, known) if asked_by_known else (known, released)
    lengths = np.asarray(texts.sum(axis=1)).ravel()
    damped = K1 * (1 - B + B * lengths / lengths.mean())
    weights = texts.data * (K1 + 1) / (texts.data + np.repeat(damped, np.diff(texts.indptr)))
    weighed = csr_matrix((weights, texts.indices, texts.indptr), shape=texts.shape) @ diags(rarity(texts))
    scores = (weighed @ csr_matrix((np.ones(asked.nnz), asked.indices, asked.indptr), shape=asked.shape).T).toarray()
    return np.asarray(scores if asked_by_known else scores.T)


def length(sides: Sides) -> Doubles:
    """Minus the log of how far words, numbers, punctuation and lines differ in number; of what is released alone."""
    one = np.array([_shape(*one) for one in zip(sides.released, sides.released_words, strict=True)])
    other = np.array([_shape(*one) for one in zip(sides.known, sides.known_words, strict=True)])
    total = np.zeros((len(one), len(other)))
    for column in np.flatnonzero((one != one[0]).any(axis=0)):
        total -= np.log1p(np.abs(one[:, column][:, None] - other[:, column][None, :]))
    return total


def _shape(text: str, words: Sequence[str]) -> tuple[int, int, int, int]:
    """Words, numbers, lines and punctuation."""
    return len(words), len(_NUMBER.findall(text)), text.strip().count("\n"), len(_MARK.findall(text))


def mean_vector(sides: Sides, vectors: Vectors) -> Doubles:
    """Cosine of the mean word vectors, rare words weighing more, the mean of all taken off."""
    ids = WordIds(dict(zip(vectors.words, range(len(vectors.words)), strict=True)), 0)
    released, known = (counts(side, ids) for side in (sides.released_words, sides.known_words))
    rare = diags(rarity(released, known))
    one, other = (_centred(np.asarray(logged(side) @ rare @ vectors.matrix)) for side in (released, known))
    return np.asarray(one @ other.T)


def _centred(made: Doubles) -> Doubles:
    made = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
    made = made - made.mean(axis=0)
    return np.asarray(made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12))
