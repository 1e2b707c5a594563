"""Matchers of an attacker with a mechanism that draws words in their context.

For each released word y_t the mechanism gives P(y_t | x, words written before) of every source word
x. The gain of x is its excess over the language model, divided by the model's probability of y_t: 0
for a word that cannot have y_t as a neighbour, so that its scores say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_matrix, diags, vstack
from scipy.special import logsumexp

from clinveil.attacks.text.linkage.matchers import SLIP, counts
from clinveil.attacks.text.linkage.sides import LinkageSides
from clinveil.channel import Channel, NoteLikelihood, label_rows, mechanism_of, released_notes
from clinveil.core import Doubles, Ints, WordIds

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class ContextGains:
    """Both sides, as seen by an attacker with the mechanism.

    Attributes:
        gains: of each released note, (n, n_words) by released word and source word.
        known: (n_known, n_words) counts of the words of each known text.
        fragments: (n_known, longest) rows of the words of each known text, in order; n_words after
            its end and for unknown words.
        background: share of words that do not follow the note.
    """

    gains: Sequence[csr_matrix] = field(repr=False)
    known: csr_matrix = field(repr=False)
    fragments: Ints = field(repr=False)
    background: float

    @classmethod
    def of(cls, sides: LinkageSides, channel: Channel) -> ContextGains:
        """Compute the gains of all released notes."""
        assert channel.context is not None
        n_words = len(channel.words)
        ids = WordIds(channel.ids, 0)
        labels = label_rows(channel.context, sides.labels or [None] * len(sides.released))
        mechanism = mechanism_of(channel)
        notes = released_notes(channel, sides.released, labels.tolist())
        gains = [_gains(mechanism.likelihood(note), n_words) for note in notes]
        rows = [ids.encode(text, unknown=n_words) for text in sides.known_words]
        fragments = np.full((len(rows), max(map(len, rows))), n_words, dtype=np.int64)
        for number, row in enumerate(rows):
            fragments[number, : len(row)] = row
        return cls(gains, counts(sides.known_words, ids), fragments, channel.policy.background)

    def mixture(self, shares: Sequence[float]) -> Doubles:
        """Return log P(note | text) - log P(note), where each word comes from the text with
        probability s: the best s of `shares` for the pair.
        """
        sizes = np.maximum(np.asarray(self.known.sum(axis=1)).ravel(), 1)
        text = csr_matrix(diags(1 / sizes) @ self.known).T.tocsr()
        follows = max(1.0 - self.background, TINY)
        found = []
        for gains in self.gains:
            mean = csr_matrix(gains @ text)
            best = np.zeros(mean.shape[1])
            for share in shares:
                factor = share / (1 - share) / follows
                terms = csr_matrix(
                    (np.log1p(factor * mean.data), mean.indices, mean.indptr), shape=mean.shape
                )
                score = np.asarray(terms.sum(axis=0)).ravel() + mean.shape[0] * np.log(1 - share)
                np.maximum(best, score, out=best)
            found.append(best)
        return np.array(found)

    def covered(self) -> Doubles:
        """Return how well the note explains each known word: sum_w log(slip + mean gain of w)."""
        means = [csr_matrix(gains.mean(axis=0)) for gains in self.gains]
        found = csr_matrix(vstack(means))
        found.data = np.log1p(found.data / SLIP)
        return np.asarray((found @ self.known.T).toarray())

    def in_order(self) -> Doubles:
        """Return log of the mean over all positions of P(released words | fragment there) divided
        by P(released words | other words).
        """
        least = max(self.background, SLIP)
        return np.array([_at_best(gains, self.fragments, least) for gains in self.gains])


def _gains(likelihood: NoteLikelihood, n_words: int) -> csr_matrix:
    sizes = np.diff(likelihood.starts)
    model = np.maximum(likelihood.unknown, TINY)
    excess = likelihood.chances - np.repeat(likelihood.others, sizes)
    gains = csr_matrix(
        (excess / np.repeat(model, sizes), likelihood.rows, likelihood.starts),
        shape=(sizes.size, n_words),
    )
    gains.eliminate_zeros()
    return gains


def _at_best(gains: csr_matrix, fragments: Ints, least: float) -> Doubles:
    """Return the score of each fragment in one note."""
    n = gains.shape[0]
    length = fragments.shape[1]
    used, columns = np.unique(fragments, return_inverse=True)
    columns = columns.reshape(fragments.shape)
    # By word, so that each step below reads whole rows.
    logs = np.zeros((used.size, n + length))
    known = used < gains.shape[1]
    logs[known, :n] = np.log1p(csr_matrix(gains.T)[used[known]].toarray() / least)
    sums = np.zeros((fragments.shape[0], n))
    for k in range(length):
        sums += logs[columns[:, k], k : k + n]
    return np.asarray(logsumexp(sums, axis=1) - np.log(n))


def matchers_in_context(
    sides: LinkageSides, channel: Channel, shares: Sequence[float], *, fragment: bool
) -> Iterator[tuple[str, Doubles]]:
    """Yield name and scores of each matcher; `fragment`: the known texts are pieces of notes."""
    gains = ContextGains.of(sides, channel)
    yield "channel", gains.mixture(shares)
    if fragment:
        yield "channel, all of its words", gains.covered()
        yield "channel, words in order", gains.in_order()
