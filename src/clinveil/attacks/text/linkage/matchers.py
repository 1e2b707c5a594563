"""Matchers without the channel: similarity of every released note and every known text.

Each takes the two sides and returns scores, (n_released, n_known); higher is more similar.
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
    """Return how often each word occurs in each text, (n_texts, n_words); unnumbered words are ignored."""
    rows = [ids.encode(text) for text in texts]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *(np.array(row, dtype=np.int64) for row in rows)])
    matrix = csr_matrix((np.ones(flat.size), flat, indptr), shape=(len(texts), len(ids)))
    matrix.sum_duplicates()
    return matrix


def both(sides: Sides, *, pairs: bool = False) -> tuple[csr_matrix, csr_matrix]:
    """Return counts of both sides over the words (or pairs of adjacent words) of both."""
    texts = [[_pairs(text) for text in side] if pairs else side for side in (sides.released_words, sides.known_words)]
    ids = WordIds.of((word for side in texts for text in side for word in text), first=0)
    return counts(texts[0], ids), counts(texts[1], ids)


def _pairs(text: Sequence[str]) -> list[str]:
    return [f"{left} {right}" for left, right in pairwise(text)]


def rarity(*sides: csr_matrix) -> Doubles:
    """Return log((1 + texts) / (1 + texts with the word)) + 1 over all texts of both sides, (n_words,)."""
    n = sum(side.shape[0] for side in sides)
    seen = sum(np.bincount(side.indices, minlength=side.shape[1]) for side in sides)
    return np.asarray(np.log((1 + n) / (1 + seen)) + 1)


def tfidf(sides: Sides, *, pairs: bool = False) -> Doubles:
    """Return the cosine of TF-IDF with 1 + log of counts, over words or pairs of adjacent words."""
    released, known = both(sides, pairs=pairs)
    rare = diags(rarity(released, known))
    left, right = (unit(logged(side) @ rare) for side in (released, known))
    return np.asarray((left @ right.T).toarray())


def logged(matrix: csr_matrix) -> csr_matrix:
    """Return 1 + log of each count."""
    return csr_matrix((1 + np.log(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def unit(matrix: csr_matrix) -> csr_matrix:
    """Normalize each row to length 1; empty rows are unchanged."""
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return diags(1 / np.maximum(norms, 1e-12)) @ matrix


def bm25(sides: Sides, *, known_as_query: bool = False) -> Doubles:
    """Return Okapi BM25 of known texts for the words of released notes, or (`asked_by_known`) the reverse.

    Source: Robertson & Zaragoza 2009, Found. Trends Inf. Retr. 3:333, k1 = 1.2, b = 0.75.
    """
    released, known = both(sides)
    texts, queries = (released, known) if known_as_query else (known, released)
    lengths = np.asarray(texts.sum(axis=1)).ravel()
    length_norm = K1 * (1 - B + B * lengths / lengths.mean())
    weights = texts.data * (K1 + 1) / (texts.data + np.repeat(length_norm, np.diff(texts.indptr)))
    weighed = csr_matrix((weights, texts.indices, texts.indptr), shape=texts.shape) @ diags(rarity(texts))
    scores = (
        weighed @ csr_matrix((np.ones(queries.nnz), queries.indices, queries.indptr), shape=queries.shape).T
    ).toarray()
    return np.asarray(scores if known_as_query else scores.T)


def length(sides: Sides) -> Doubles:
    """Return minus the log differences in the number of released words, numbers, marks and lines."""
    left = np.array([_shape(*left) for left in zip(sides.released, sides.released_words, strict=True)])
    right = np.array([_shape(*left) for left in zip(sides.known, sides.known_words, strict=True)])
    score = np.zeros((len(left), len(right)))
    for column in np.flatnonzero((left != left[0]).any(axis=0)):
        score -= np.log1p(np.abs(left[:, column][:, None] - right[:, column][None, :]))
    return score


def _shape(text: str, words: Sequence[str]) -> tuple[int, int, int, int]:
    """Return the number of words, numbers, lines and punctuation marks."""
    return len(words), len(_NUMBER.findall(text)), text.strip().count("\n"), len(_MARK.findall(text))


def mean_vector(sides: Sides, vectors: Vectors) -> Doubles:
    """Return the cosine of mean word vectors, weighted by rarity and centred."""
    ids = WordIds(dict(zip(vectors.words, range(len(vectors.words)), strict=True)), 0)
    released, known = (counts(side, ids) for side in (sides.released_words, sides.known_words))
    rare = diags(rarity(released, known))
    left, right = (_centred(np.asarray(logged(side) @ rare @ vectors.matrix)) for side in (released, known))
    return np.asarray(left @ right.T)


def _centred(matrix: Doubles) -> Doubles:
    matrix = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    matrix = matrix - matrix.mean(axis=0)
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12))
