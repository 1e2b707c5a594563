"""Matchers: similarity of every released note and every known text; higher is more similar.

Those with a channel give the likelihood of the released words if a known text (or a piece of it) is
their source. The channel is the release's own (an attacker with the vault's vectors or channel), or
a shadow channel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_matrix, diags, vstack

from clinveil.attacks.text.linkage.sides import LinkageSides
from clinveil.channel import Channel
from clinveil.core import Doubles, Ints, WordIds
from clinveil.vectors import Vectors

K1 = 1.2
B = 0.75
_NUMBER = re.compile(r"\d+")
_MARK = re.compile(r"[^\w\s]")
SHARES = (0.1, 0.5, 0.95)
FRAGMENT_SHARES = (0.01, 0.05, 0.2)
SLIP = 1e-3
"""Probability that a fragment word came out in another way: identifiers replaced earlier, words
dropped.
"""


def counts(texts: Sequence[Sequence[str]], ids: WordIds) -> csr_matrix:
    """Return how often each word occurs in each text, (n_texts, n_words); unnumbered words are
    ignored.
    """
    rows = [ids.encode(text) for text in texts]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.array(row, dtype=np.int64) for row in rows)]
    )
    matrix = csr_matrix((np.ones(flat.size), flat, indptr), shape=(len(texts), len(ids)))
    matrix.sum_duplicates()
    return matrix


def both(sides: LinkageSides, *, pairs: bool = False) -> tuple[csr_matrix, csr_matrix]:
    """Return counts of both sides over the words (or pairs of adjacent words) of both."""
    texts = [
        [_pairs(text) for text in side] if pairs else side
        for side in (sides.released_words, sides.known_words)
    ]
    ids = WordIds.of((word for side in texts for text in side for word in text), first=0)
    return counts(texts[0], ids), counts(texts[1], ids)


def _pairs(text: Sequence[str]) -> list[str]:
    return [f"{left} {right}" for left, right in pairwise(text)]


def rarity(*sides: csr_matrix) -> Doubles:
    """Return log((1 + texts) / (1 + texts with the word)) + 1 over all texts of both sides,
    (n_words,).
    """
    n = sum(side.shape[0] for side in sides)
    seen = sum(np.bincount(side.indices, minlength=side.shape[1]) for side in sides)
    return np.asarray(np.log((1 + n) / (1 + seen)) + 1)


def tfidf(sides: LinkageSides, *, pairs: bool = False) -> Doubles:
    """Return the cosine of TF-IDF with 1 + log of counts, over words or pairs of adjacent words."""
    from sklearn.feature_extraction.text import TfidfTransformer  # slow import

    released, known = both(sides, pairs=pairs)
    weighed = TfidfTransformer(sublinear_tf=True).fit(vstack([released, known]))
    return np.asarray((weighed.transform(released) @ weighed.transform(known).T).toarray())


def logged(matrix: csr_matrix) -> csr_matrix:
    """Return 1 + log of each count."""
    return csr_matrix((1 + np.log(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


def bm25(sides: LinkageSides, *, known_as_query: bool = False) -> Doubles:
    """Return Okapi BM25 of known texts for the words of released notes, or (`asked_by_known`) the
    reverse.

    Source: Robertson & Zaragoza 2009, Found. Trends Inf. Retr. 3:333, k1 = 1.2, b = 0.75.
    """
    released, known = both(sides)
    texts, queries = (released, known) if known_as_query else (known, released)
    lengths = np.asarray(texts.sum(axis=1)).ravel()
    length_norm = K1 * (1 - B + B * lengths / lengths.mean())
    weights = texts.data * (K1 + 1) / (texts.data + np.repeat(length_norm, np.diff(texts.indptr)))
    weighed = csr_matrix((weights, texts.indices, texts.indptr), shape=texts.shape) @ diags(
        rarity(texts)
    )
    scores = (
        weighed
        @ csr_matrix((np.ones(queries.nnz), queries.indices, queries.indptr), shape=queries.shape).T
    ).toarray()
    return np.asarray(scores if known_as_query else scores.T)


def length(sides: LinkageSides) -> Doubles:
    """Return minus the log differences in the number of released words, numbers, marks and
    lines.
    """
    left = np.array(
        [_shape(*left) for left in zip(sides.released, sides.released_words, strict=True)]
    )
    right = np.array([_shape(*left) for left in zip(sides.known, sides.known_words, strict=True)])
    score = np.zeros((len(left), len(right)))
    for column in np.flatnonzero((left != left[0]).any(axis=0)):
        score -= np.log1p(np.abs(left[:, column][:, None] - right[:, column][None, :]))
    return score


def _shape(text: str, words: Sequence[str]) -> tuple[int, int, int, int]:
    """Return the number of words, numbers, lines and punctuation marks."""
    return (
        len(words),
        len(_NUMBER.findall(text)),
        text.strip().count("\n"),
        len(_MARK.findall(text)),
    )


def mean_vector(sides: LinkageSides, vectors: Vectors) -> Doubles:
    """Return the cosine of mean word vectors, weighted by rarity and centred."""
    ids = WordIds(dict(zip(vectors.words, range(len(vectors.words)), strict=True)), 0)
    released = counts(sides.released_words, ids)
    known = counts(sides.known_words, ids)
    rare = diags(rarity(released, known))
    left = _centred(np.asarray(logged(released) @ rare @ vectors.matrix))
    right = _centred(np.asarray(logged(known) @ rare @ vectors.matrix))
    return np.asarray(left @ right.T)


def _centred(matrix: Doubles) -> Doubles:
    matrix = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    matrix = matrix - matrix.mean(axis=0)
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12))


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Both sides, as seen by an attacker with a channel.

    Attributes:
        released: (n_released, n_words) counts of outputs. known: (n_known, n_words) counts of
            inputs.
        ratio: (n_words, n_words) P(output | input) divided by the frequency of the output, by
            input.
    """

    released: csr_matrix
    known: csr_matrix
    ratio: csr_matrix

    @classmethod
    def of(cls, sides: LinkageSides, channel: Channel) -> Likelihood:
        """Build from both sides; output frequencies are those of the released notes, plus 0.5
        occurrences each.
        """
        ids = WordIds(channel.ids, 0)
        released = counts(sides.released_words, ids)
        known = counts(sides.known_words, ids)
        output_counts = np.asarray(released.sum(axis=0)).ravel() + 0.5
        return cls(
            released,
            known,
            channel.matrix()[: len(channel.words)] @ diags(output_counts.sum() / output_counts),
        )

    def mixture(self, shares: Sequence[float], *, once: bool = False) -> Doubles:
        """Return log P(note | text) - log P(note), where each word comes from the text with
        probability s.

        Bags of words: sum_t log(1 - s + s sum_x p(x | text) C(y_t | x) / q(y_t)), s the best of
        `shares` for the pair.

        Args:
            once: count each output once per note, because substitution scopes repeat draws.
        """
        sizes = np.maximum(np.asarray(self.known.sum(axis=1)).ravel(), 1)
        text = (diags(1 / sizes) @ self.known @ self.ratio).tocsr()
        note = self.released
        if once:
            note = csr_matrix((np.ones(note.nnz), note.indices, note.indptr), shape=note.shape)
        n = np.asarray(note.sum(axis=1))
        best = np.zeros((note.shape[0], text.shape[0]))
        for share in shares:
            gain = csr_matrix(
                (np.log1p(share / (1 - share) * text.data), text.indices, text.indptr),
                shape=text.shape,
            )
            np.maximum(best, (note @ gain.T).toarray() + n * np.log(1 - share), out=best)
        return best

    def covered(self) -> Doubles:
        """Return how well the note explains each known word: sum_w log(slip + sum_t C(y_t | w) / (n
        q(y_t))).

        For fragments: all of their words are in the note.
        """
        used = np.unique(self.known.indices)
        sizes = np.maximum(np.asarray(self.released.sum(axis=1)).ravel(), 1)
        found = diags(1 / sizes) @ self.released @ self.ratio[used].T
        found = csr_matrix(found)
        found.data = np.log1p(found.data / SLIP)
        return np.asarray((found @ self.known[:, used].T).toarray())


def in_order(sides: LinkageSides, channel: Channel) -> Doubles:
    """Score the best position of each known fragment in each released note: max_s sum_k log C(y_s+k
    | w_k) / q.

    A word that does not fit costs log of `SLIP`. Exact over all positions with at least one fitting
    word.
    """
    ratio = Likelihood.of(sides, channel).ratio
    ids = WordIds(channel.ids, 0)
    rows = [ids.encode(text, unknown=len(channel.words)) for text in sides.released_words]
    lengths = np.array([len(row) for row in rows])
    tokens = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    position = np.arange(tokens.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    # Places before each note, for fragments that begin there.
    empty = max(1, *(len(text) for text in sides.known_words))
    starts = np.concatenate([[0], np.cumsum(lengths + empty)])
    order = np.argsort(tokens, kind="stable")
    begins = np.searchsorted(tokens[order], np.arange(len(channel.words) + 1))
    place = (np.repeat(starts[:-1] + empty, lengths) + position)[order]

    @cache
    def fits(word: int) -> tuple[Ints, Doubles]:
        """Return the positions of a word's possible outputs in all released notes, and the gain of
        each.
        """
        entries = slice(ratio.indptr[word], ratio.indptr[word + 1]) if word >= 0 else slice(0, 0)
        outputs = ratio.indices[entries]
        gains = np.log1p(ratio.data[entries] / SLIP)
        found = [place[begins[y] : begins[y + 1]] for y in outputs.tolist()]
        places = np.concatenate([np.zeros(0, np.int64), *found])
        return places, np.repeat(gains, [len(f) for f in found])

    def best_of(text: Sequence[str]) -> Doubles:
        """Return the highest sum of gains at one place of each note, (n_released,)."""
        both = [fits(word) for word in ids.encode(text, unknown=-1)]
        places = np.concatenate([found - k for k, (found, _) in enumerate(both)])
        gains = np.concatenate([gain for _, gain in both])
        return np.maximum.reduceat(np.bincount(places, gains, starts[-1]), starts[:-1])

    return np.stack([best_of(text) for text in sides.known_words], axis=1)
