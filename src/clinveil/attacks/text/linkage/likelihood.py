"""Matchers with a channel: how likely the released words are, were the known text (or a piece of it) their source.

The channel is the release's own (a thief of the vectors or of the channel), or one that the attacker made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, diags

from clinveil.attacks.text.linkage.matchers import counts
from clinveil.attacks.text.linkage.sides import Sides
from clinveil.channel.channel import Channel
from clinveil.core.tokens import WordIds
from clinveil.core.types import Doubles, Ints

SHARES = (0.1, 0.5, 0.95)
FRAGMENT_SHARES = (0.01, 0.05, 0.2)
SLIP = 1e-3
"""The chance that a word of a fragment came out otherwise than the channel says: PHI replaced before, words dropped."""


@dataclass(frozen=True, eq=False)
class Likely:
    """What both sides are to somebody who holds a channel.

    Attributes:
        released: (n_released, n_words) counts of outputs. known: (n_known, n_words) counts of inputs.
        ratio: (n_words, n_words) P(output | input) over how often the output comes at all, by input.
    """

    released: csr_matrix
    known: csr_matrix
    ratio: csr_matrix

    @classmethod
    def of(cls, sides: Sides, channel: Channel) -> Likely:
        """How often outputs come is counted in the released notes, half an occurrence added to each."""
        ids = WordIds(channel.ids, 0)
        released, known = (counts(side, ids) for side in (sides.released_words, sides.known_words))
        usual = np.asarray(released.sum(axis=0)).ravel() + 0.5
        return cls(released, known, channel.matrix()[: len(channel.words)] @ diags(usual.sum() / usual))

    def mixture(self, shares: Sequence[float], *, once: bool = False) -> Doubles:
        """log P(note | text) - log P(note): each word comes from the text with a chance, else from anywhere.

        Bags of words: sum_t log(1 - s + s sum_x p(x | text) C(y_t | x) / q(y_t)), s the best of `shares` for the pair.

        Args:
            once: count each output once in a note, for a memo repeats what it drew.
        """
        sizes = np.maximum(np.asarray(self.known.sum(axis=1)).ravel(), 1)
        text = (diags(1 / sizes) @ self.known @ self.ratio).tocsr()
        note = self.released
        if once:
            note = csr_matrix((np.ones(note.nnz), note.indices, note.indptr), shape=note.shape)
        n = np.asarray(note.sum(axis=1))
        best = np.zeros((note.shape[0], text.shape[0]))
        for share in shares:
            gain = csr_matrix((np.log1p(share / (1 - share) * text.data), text.indices, text.indptr), shape=text.shape)
            np.maximum(best, (note @ gain.T).toarray() + n * np.log(1 - share), out=best)
        return best

    def covered(self) -> Doubles:
        """Of each known word how well the note's places explain it: sum_w log(slip + sum_t C(y_t | w) / (n q(y_t))).

        For fragments: all of their words stand in the note, whatever else does.
        """
        used = np.unique(self.known.indices)
        sizes = np.maximum(np.asarray(self.released.sum(axis=1)).ravel(), 1)
        found = diags(1 / sizes) @ self.released @ self.ratio[used].T
        found = csr_matrix(found)
        found.data = np.log1p(found.data / SLIP)
        return np.asarray((found @ self.known[:, used].T).toarray())


def in_order(sides: Sides, channel: Channel) -> Doubles:
    """Of each known fragment the best place in each released note, word by word: max_s sum_k log C(y_s+k | w_k) / q.

    A word that does not fit costs log of `SLIP`. Exact over all places where at least one word fits.
    """
    likely, ids = Likely.of(sides, channel), WordIds(channel.ids, 0)
    rows = [ids.encode(text, unknown=len(channel.words)) for text in sides.released_words]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    tokens = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    order = np.argsort(tokens, kind="stable")
    places = np.searchsorted(tokens[order], np.arange(len(channel.words) + 1))
    best = np.zeros((len(rows), len(sides.known)))
    for j, text in enumerate(sides.known_words):
        fits = [_fits(likely.ratio, word, order, places) for word in ids.encode(text, unknown=-1)]
        best[:, j] = _best_places(fits, starts)
    return best


def _fits(ratio: csr_matrix, word: int, order: Ints, places: Ints) -> tuple[Ints, Doubles]:
    """Places of all notes that could come from a word, and log(ratio / slip) of each."""
    if word < 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    entries = slice(ratio.indptr[word], ratio.indptr[word + 1])
    outputs, gains = ratio.indices[entries], np.log1p(ratio.data[entries] / SLIP)
    found = [order[places[y] : places[y + 1]] for y in outputs.tolist()]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found]), np.repeat(gains, [len(one) for one in found])


def _best_places(fits: Sequence[tuple[Ints, Doubles]], starts: Ints) -> Doubles:
    """Of each note the highest sum over a fragment's words, each k places after the first; 0 where none fits."""
    begins = np.concatenate([at - k for k, (at, _) in enumerate(fits)])
    gains = np.concatenate([gain for _, gain in fits])
    note = np.searchsorted(starts, np.concatenate([at for at, _ in fits]), side="right") - 1
    best = np.zeros(len(starts) - 1)
    if begins.size:
        keys, where = np.unique(note * (int(starts[-1]) + len(fits)) + begins + len(fits), return_inverse=True)
        sums = np.bincount(where, gains)
        np.maximum.at(best, keys // (int(starts[-1]) + len(fits)), sums)
    return best
