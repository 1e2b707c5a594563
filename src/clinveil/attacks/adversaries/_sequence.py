"""Candidate inputs of each output, word-pair probabilities, and the forward-backward algorithm over
a note; compiled.

Candidates come from the channel (`candidates`) or from other evidence (`table_of`). P(x | w) is the
share of an observed pair plus a backoff to the word frequency (absolute discounting). The backoff
has the same form for all pairs, so a step of the algorithm costs as much as the number of observed
pairs, not the square of the number of candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from clinveil.attacks.adversary import AdversaryView, NoteRows, Recovery, entries, from_table
from clinveil.channel import Mechanism, NoteLikelihood
from clinveil.core import Doubles, Ints, Mask, SmallInts, helper, kernel
from clinveil.scale import threads

TINY = 1e-300
COMMON = 20  # words that are candidates of every output, through the background
MAX_CANDIDATES = 60  # maximum candidates of an output
MAX_INPUTS = 60
"""Maximum inputs of an output that sequence models weigh; most of the others are improbable."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The inputs of each output, sorted by row.

    Attributes:
        starts: (n_words + 1,) offsets of each output in the other arrays. rows: inputs.
        weights: P(output | input), or from `table_of` P(input | output).
    """

    starts: Ints
    rows: Ints
    weights: Doubles

    def recoveries(self, view: AdversaryView) -> list[Recovery]:
        """Return the recovery of each note, for weights P(input | output); the candidates depend on
        the output only.
        """
        return [
            from_table(note.outputs, self.starts, self.rows, self.weights) for note in view.notes
        ]

    def inverse(self, prior: Doubles) -> Candidates:
        """Return the same candidates with P(y | x), up to a factor per y: P(x | y) by the prior,
        (n_words,).
        """
        return Candidates(
            self.starts, self.rows, np.asarray(self.weights / prior[self.rows], dtype=np.float64)
        )


@dataclass(frozen=True, eq=False)
class Weighed(Candidates):
    """Candidates of which a sequence model weighs only some; the others keep their context-free
    probability.

    Attributes:
        posterior: P(input | output) of each entry, by Bayes' rule. weighed: whether the sequence
            model weighs it.
    """

    posterior: Doubles
    weighed: Mask


def candidates(view: AdversaryView, limit: int = MAX_INPUTS) -> Weighed:
    """Return the inputs of each output; a sequence model weighs at most `limit` of them, the most
    probable ones.
    """
    matrix = view.by_output
    starts = matrix.indptr.astype(np.int64)
    rows = matrix.indices.astype(np.int64)
    return _weighed(starts, rows, matrix.data.astype(np.float64), view.prior, limit)


def _weighed(starts: Ints, rows: Ints, weights: Doubles, prior: Doubles, limit: int) -> Weighed:
    """Return candidates with their probability by Bayes' rule."""
    scores = weights * prior[rows]
    sizes = np.diff(starts)
    output = np.repeat(np.arange(sizes.size), sizes)
    weighed = np.empty(rows.size, dtype=np.bool_)
    order = np.lexsort((rows, -scores, output))
    weighed[order] = np.arange(order.size) - starts[output[order]] < limit
    joint = np.maximum(scores, TINY)
    sums = np.add.reduceat(np.append(joint, 0.0), starts[:-1])
    return Weighed(starts, rows, weights, np.asarray(joint / np.repeat(sums, sizes)), weighed)


def in_context_candidates(
    likelihood: NoteLikelihood, view: AdversaryView, limit: int = MAX_INPUTS
) -> Weighed:
    """Return the inputs of each released word of one note, by position, for words drawn in context.

    Inputs are the words with the output among their own, and the likeliest words, which the
    background can have replaced.
    """
    n = likelihood.others.size
    common = view.likeliest
    position = np.repeat(np.arange(n), np.diff(likelihood.starts))
    keys = np.concatenate([position, np.repeat(np.arange(n), common.size)])
    keys = keys * view.prior.size + np.concatenate([likelihood.rows, np.tile(common, n)])
    weights = np.concatenate([likelihood.chances, np.repeat(likelihood.others, common.size)])
    # The first of two equal keys is the exact probability.
    keys, first = np.unique(keys, return_index=True)
    keys = keys[weights[first] > 0]
    weights = weights[first][weights[first] > 0]
    rows = keys % view.prior.size
    position = keys // view.prior.size
    starts = np.searchsorted(position, np.arange(n + 1)).astype(np.int64)
    return _weighed(starts, rows, weights, view.prior, limit)


def frequency(notes: Sequence[Ints], n_words: int) -> Doubles:
    """Return the share of each known word in some notes, (n_words,), smoothed by 0.1
    occurrences.
    """
    counts = (
        np.bincount(np.concatenate([np.zeros(0, np.int64), *notes]), minlength=n_words + 1)[
            :n_words
        ]
        + 0.1
    )
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def table_of(
    joint: csc_matrix,
    background: Doubles,
    common: Doubles,
    limit: int = MAX_CANDIDATES,
    wide: int = COMMON,
) -> Candidates:
    """Return candidates from direct evidence, joint(x, y), and from a background(y) common(x)
    shared by all words.

    Args:
        joint: (n_words, n_words) scores by input and output, at least 0. background: (n_words,) by
            output.
        common: (n_words,) by input. limit: maximum candidates of an output.
        wide: number of words that are candidates of every output.
    """
    n_words = joint.shape[0]
    direct_entries = joint.tocoo()
    top = np.argsort(-common, kind="stable")[:wide]
    columns = np.concatenate([direct_entries.col, np.repeat(np.arange(n_words), top.size)])
    rows = np.concatenate([direct_entries.row, np.tile(top, n_words)])
    data = np.concatenate([direct_entries.data, np.zeros(rows.size - direct_entries.nnz)])
    # Sums duplicates, in linear time.
    merged = csc_matrix((data, (rows, columns)), shape=joint.shape)
    starts = merged.indptr.astype(np.int64)
    rows = merged.indices.astype(np.int64)
    columns = np.repeat(np.arange(n_words), np.diff(starts))
    scores: Doubles = merged.data + background[columns] * common[rows]
    totals = np.asarray(joint.sum(axis=0)).ravel() + background * common.sum()
    keep = scores > 0
    sizes = np.diff(starts)
    large = np.flatnonzero((sizes > limit)[columns])
    order = large[np.lexsort((-scores[large], columns[large]))]
    sizes = sizes[sizes > limit]
    keep[order[np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) >= limit]] = False
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns[keep], minlength=n_words))])
    return Candidates(starts.astype(np.int64), rows[keep], scores[keep] / totals[columns[keep]])


DISCOUNT = 0.75
LEAST = 0.1  # occurrences assumed for a word that never occurs


class BigramTable(NamedTuple):
    """P(x | w) = pairs[w, x] + backoff[w] · unigram[x].

    Attributes:
        unigram, backoff: (n_words,). indptr, indices, pairs: the discounted observed pairs, by row.
    Source: absolute discounting, interpolated: Ney, Essen & Kneser 1994, Comput. Speech Lang. 8:1.
    """

    unigram: Doubles
    backoff: Doubles
    indptr: Ints
    indices: SmallInts
    pairs: Doubles


@dataclass(frozen=True, eq=False)
class BigramCounts:
    """Unigram and bigram counts.

    Attributes:
        single: (n_words,). pairs: (n_words, n_words), how often one word follows another.
    """

    single: Doubles
    pairs: csr_matrix

    @classmethod
    def of(cls, notes: Iterable[Ints], n_words: int) -> BigramCounts:
        """Count notes given as rows; rows from n_words on are unknown words, which interrupt the
        sequence.
        """
        flat = joined(notes, n_words)
        known = (flat[:-1] < n_words) & (flat[1:] < n_words)
        ends = flat[:-1][known], flat[1:][known]
        pairs = csr_matrix((np.ones(ends[0].size), ends), shape=(n_words, n_words))
        pairs.sort_indices()
        return cls(np.bincount(flat, minlength=n_words + 1)[:n_words].astype(np.float64), pairs)

    @cached_property
    def tables(self) -> BigramTable:
        """Return the probabilities."""
        unigram = (self.single + LEAST) / (self.single + LEAST).sum()
        backoff, discounted = _discounted(self.pairs.data, self.pairs.indptr.astype(np.int64))
        indptr = self.pairs.indptr.astype(np.int64)
        indices = self.pairs.indices.astype(np.int32)
        return BigramTable(unigram, backoff, indptr, indices, discounted)


def _discounted(counts: Doubles, indptr: Ints) -> tuple[Doubles, Doubles]:
    """Return the backoff weight of each row, (n_rows,), and the discounted share of each entry."""
    taken = np.minimum(counts, DISCOUNT)
    ends = [np.concatenate([[0.0], np.cumsum(one)])[indptr] for one in (counts, taken)]
    totals = np.diff(ends[0])
    given = np.diff(ends[1])
    seen = np.where(totals > 0, totals, 1.0)
    backoff = np.where(totals > 0, np.clip(given / seen, 0.0, 1.0), 1.0)
    return backoff, (counts - taken) / np.repeat(seen, np.diff(indptr))


def joined(notes: Iterable[Ints], n_words: int) -> Ints:
    """Concatenate notes; unknown words and ends of notes become n_words."""
    end = np.array([n_words], dtype=np.int64)
    parts = [part for note in notes for part in (note, end)]
    return np.minimum(np.concatenate([end, *parts]), n_words)


Links = tuple[Ints, SmallInts, SmallInts, Doubles]
"""Offset of the first link of each position; then the two candidates of each link and the pair's
discounted share.
"""


@helper
def find_row(rows: SmallInts, low: int, high: int, wanted: int) -> int:
    """Return the index of a word among the sorted rows [low, high); -1 if absent."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and rows[low] == wanted else -1


@kernel
def links(begin: Ints, rows: Ints, pairs: BigramTable) -> Links:
    """Return the observed pairs between candidates of adjacent positions.

    Args:
        begin: (n + 1,) offset of the first candidate of each position. rows: candidates, sorted
            within a position.
    """
    n = begin.size - 1
    capacity = 1024
    size = 0
    left = np.empty(capacity, np.int32)
    right = np.empty(capacity, np.int32)
    share = np.empty(capacity)
    starts = np.zeros(n + 1, np.int64)
    # Place of a word among the candidates, from 1; fits a core's cache.
    column = np.zeros(pairs.unigram.size, np.int16)
    for t in range(1, n):
        starts[t] = size
        low = begin[t]
        high = begin[t + 1]
        for j in range(low, high):
            column[rows[j]] = j - low + 1
        for i in range(begin[t - 1], low):
            first = pairs.indptr[rows[i]]
            last = pairs.indptr[rows[i] + 1]
            most = min(last - first, high - low)
            if size + most > capacity:
                capacity = 2 * capacity + most
                left = np.append(left, np.empty(capacity - left.size, np.int32))
                right = np.append(right, np.empty(capacity - right.size, np.int32))
                share = np.append(share, np.empty(capacity - share.size))
            # Few successors: look each up among the candidates.
            if last - first <= 8 * (high - low):
                for p in range(first, last):
                    place = column[pairs.indices[p]]
                    if place > 0:
                        left[size] = i
                        right[size] = low + place - 1
                        share[size] = pairs.pairs[p]
                        size += 1
            else:
                for j in range(low, high):
                    p = find_row(pairs.indices, first, last, rows[j])
                    if p >= 0:
                        left[size] = i
                        right[size] = j
                        share[size] = pairs.pairs[p]
                        size += 1
        for j in range(low, high):
            column[rows[j]] = 0
    starts[n] = size
    return starts, left[:size], right[:size], share[:size]


@helper
def _normalize(values: Doubles, low: int, high: int) -> None:
    total = 0.0
    for j in range(low, high):
        total += values[j]
    for j in range(low, high):
        values[j] = max(values[j] / total, TINY) if total > 0 else 1.0 / (high - low)


@helper
def _forward(
    begin: Ints, rows: Ints, weights: Doubles, pairs: BigramTable, linked: Links, forward: Doubles
) -> None:
    starts, left, right, share = linked
    for t in range(begin.size - 1):
        low = begin[t]
        high = begin[t + 1]
        before = begin[max(t - 1, 0)]
        total = 0.0 if before < low else 1.0
        for i in range(before, low):
            total += forward[i] * pairs.backoff[rows[i]]
        for j in range(low, high):
            forward[j] = total * pairs.unigram[rows[j]]
        for k in range(starts[t], starts[t + 1]):
            forward[right[k]] += forward[left[k]] * share[k]
        for j in range(low, high):
            forward[j] *= weights[j]
        _normalize(forward, low, high)


@helper
def _backward(
    begin: Ints, rows: Ints, weights: Doubles, pairs: BigramTable, linked: Links, backward: Doubles
) -> None:
    starts, left, right, share = linked
    for t in range(begin.size - 2, 0, -1):
        low = begin[t]
        high = begin[t + 1]
        before = begin[t - 1]
        total = 0.0 if low < high else 1.0
        for j in range(low, high):
            total += pairs.unigram[rows[j]] * weights[j] * backward[j]
        for i in range(before, low):
            backward[i] = total * pairs.backoff[rows[i]] if low < high else 1.0
        for k in range(starts[t], starts[t + 1]):
            backward[left[k]] += share[k] * weights[right[k]] * backward[right[k]]
        _normalize(backward, before, low)


@kernel
def marginals(
    begin: Ints, rows: Ints, weights: Doubles, pairs: BigramTable, linked: Links
) -> Doubles:
    """Return P(candidate | all outputs of the note); a position without candidates breaks the
    chain.

    Args:
        weights: P(output | candidate). linked: from `links`.
    Source: Baum et al. 1970, Ann. Math. Stat. 41:164.
    """
    forward = np.zeros(rows.size)
    backward = np.ones(rows.size)
    _forward(begin, rows, weights, pairs, linked, forward)
    _backward(begin, rows, weights, pairs, linked, backward)
    for t in range(begin.size - 1):
        for j in range(begin[t], begin[t + 1]):
            forward[j] *= backward[j]
        _normalize(forward, begin[t], begin[t + 1])
    return forward


def in_context(begin: Ints, rows: Ints, weights: Doubles, pairs: BigramTable) -> Doubles:
    """Return P(word | all outputs of the note) of the candidates of each position; arguments as in
    `marginals`.
    """
    return np.asarray(marginals(begin, rows, weights, pairs, links(begin, rows, pairs)))


def recovered(view: AdversaryView, pairs: BigramTable, candidates: Candidates) -> list[Recovery]:
    """Return candidates weighed by all words of a note, without those of negligible probability."""

    def one(note: NoteRows) -> Recovery:
        begin, indices = entries(candidates.starts, note.outputs)
        return _likely(begin, candidates.rows[indices], candidates.weights[indices], pairs)

    return list(threads(view.threads)(one, view.notes))


def recovered_in_context(
    view: AdversaryView, pairs: BigramTable, mechanism: Mechanism
) -> list[Recovery]:
    """Return candidates weighed by all words of a note, for words drawn in context."""

    def one(note: NoteRows) -> Recovery:
        table = in_context_candidates(note.likelihood(mechanism), view)
        kept = table.weighed
        begin = np.concatenate([[0], np.cumsum(kept)])[table.starts].astype(np.int64)
        return _likely(begin, table.rows[kept], table.weights[kept], pairs)

    return list(threads(view.threads)(one, view.notes))


def _likely(begin: Ints, rows: Ints, weights: Doubles, pairs: BigramTable) -> Recovery:
    chances = in_context(begin, rows, weights, pairs)
    keep = chances > 1e-12
    counts = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
    return Recovery(counts[begin], rows[keep], chances[keep])
