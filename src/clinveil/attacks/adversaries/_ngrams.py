"""Unigram, bigram and trigram probabilities by absolute discounting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from clinveil.core.types import Doubles, Ints

DISCOUNT = 0.75
LEAST = 0.1  # occurrences assumed for a word that never occurs


class Pairs(NamedTuple):
    """P(x | w) = pairs[w, x] + backoff[w] · unigram[x].

    Attributes:
        unigram, backoff: (n_words,). indptr, indices, pairs: the discounted observed pairs, by row.
    Source: absolute discounting, interpolated: Ney, Essen & Kneser 1994, Comput. Speech Lang. 8:1.
    """

    unigram: Doubles
    backoff: Doubles
    indptr: Ints
    indices: Ints
    pairs: Doubles


class Triples(NamedTuple):
    """P(x | v, w) = triples[(v, w), x] + backoff[(v, w)] · P(x | w); the number of a pair is its index in `Pairs`.

    Attributes:
        backoff: (n_pairs,), 1 for a pair without successors. indptr: (n_pairs + 1,). indices, triples: by pair.
    """

    backoff: Doubles
    indptr: Ints
    indices: Ints
    triples: Doubles


@dataclass(frozen=True, eq=False)
class Counts:
    """Unigram and bigram counts.

    Attributes:
        single: (n_words,). pairs: (n_words, n_words), how often one word follows another.
    """

    single: Doubles
    pairs: csr_matrix

    @classmethod
    def of(cls, notes: Iterable[Ints], n_words: int) -> Counts:
        """Count notes given as rows; rows from n_words on are unknown words, which interrupt the sequence."""
        flat = joined(notes, n_words)
        known = (flat[:-1] < n_words) & (flat[1:] < n_words)
        ends = flat[:-1][known], flat[1:][known]
        pairs = csr_matrix((np.ones(ends[0].size), ends), shape=(n_words, n_words))
        pairs.sort_indices()
        return cls(np.bincount(flat, minlength=n_words + 1)[:n_words].astype(np.float64), pairs)

    @cached_property
    def tables(self) -> Pairs:
        """Return the probabilities."""
        unigram = (self.single + LEAST) / (self.single + LEAST).sum()
        backoff, discounted = _discounted(self.pairs.data, self.pairs.indptr.astype(np.int64))
        indptr, indices = self.pairs.indptr.astype(np.int64), self.pairs.indices.astype(np.int64)
        return Pairs(unigram, backoff, indptr, indices, discounted)


def _discounted(counts: Doubles, indptr: Ints) -> tuple[Doubles, Doubles]:
    """Return the backoff weight of each row, (n_rows,), and the discounted share of each entry."""
    taken = np.minimum(counts, DISCOUNT)
    ends = [np.concatenate([[0.0], np.cumsum(one)])[indptr] for one in (counts, taken)]
    totals, given = np.diff(ends[0]), np.diff(ends[1])
    seen = np.where(totals > 0, totals, 1.0)
    backoff = np.where(totals > 0, np.clip(given / seen, 0.0, 1.0), 1.0)
    return backoff, (counts - taken) / np.repeat(seen, np.diff(indptr))


def joined(notes: Iterable[Ints], n_words: int) -> Ints:
    """Concatenate notes; unknown words and ends of notes become n_words."""
    end = np.array([n_words], dtype=np.int64)
    parts = [part for note in notes for part in (note, end)]
    return np.minimum(np.concatenate([end, *parts]), n_words)


def triples(notes: Sequence[Ints], counts: Counts) -> Triples:
    """Return triples of notes over the pairs of `counts`, which must contain all pairs of the notes."""
    n_words = counts.single.size
    flat = joined(notes, n_words)
    known = (flat[:-2] < n_words) & (flat[1:-1] < n_words) & (flat[2:] < n_words)
    pair = pair_numbers(counts.pairs, flat[:-2][known], flat[1:-1][known])
    table = csr_matrix((np.ones(pair.size), (pair, flat[2:][known])), shape=(counts.pairs.nnz, n_words))
    table.sort_indices()
    backoff, discounted = _discounted(table.data, table.indptr.astype(np.int64))
    return Triples(backoff, table.indptr.astype(np.int64), table.indices.astype(np.int64), discounted)


def pair_numbers(pairs: csr_matrix, before: Ints, after: Ints) -> Ints:
    """Return the index of each pair among the stored pairs."""
    n_words = pairs.shape[1]
    rows = np.repeat(np.arange(pairs.shape[0], dtype=np.int64), np.diff(pairs.indptr))
    return np.searchsorted(rows * n_words + pairs.indices, before * n_words + after)
