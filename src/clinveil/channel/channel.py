"""`Channel`, P(output | input) over a vocabulary: how words are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags_array

from clinveil.channel.policy import PLAIN, Layout, Numbers, WritingPolicy
from clinveil.core import (
    Doubles,
    Ints,
    Mask,
    SmallInts,
    hold_read_only,
    lookup_form,
    read_only_view,
    word_spans,
)
from clinveil.core import words as words_of

if TYPE_CHECKING:
    from clinveil.lm import ContextModel

SUM_TOLERANCE = 1e-9
LIKELIEST = 100  # most frequent inputs considered as the source of a background draw


@dataclass(frozen=True, eq=False)
class Posterior:
    """Joint distribution of inputs and outputs: exact inference of an attacker with the channel
    from one output.

    Attributes:
        matrix: (n_words + 1, n_words), the channel. prior: (n_words + 1,), gain of a correct guess
            of each row: its tokens or its share.
    """

    matrix: csr_matrix = field(repr=False)
    prior: Doubles = field(repr=False)

    @cached_property
    def joint(self) -> csc_matrix:
        """prior(x) C(y|x), (n_words + 1, n_words), without stored zeros, sorted rows in each
        column.
        """
        matrix: csc_matrix = csc_matrix(diags_array(self.prior) @ self.matrix)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return matrix

    @cached_property
    def candidates(self) -> Ints:
        """Number of rows with a positive prior that can produce each output, (n_words,)."""
        return np.asarray(np.diff(self.joint.indptr), dtype=np.int64)

    @cached_property
    def best(self) -> tuple[Ints, Doubles]:
        """Best guess at each output and its gain: argmax and max over x of prior(x) C(y|x).

        Both (n_words,); -1 and 0 for impossible outputs. Ties go to the first row (the more
        frequent word in a vocabulary sorted by frequency).
        """
        joint = self.joint
        columns = np.repeat(np.arange(joint.shape[1]), self.candidates)
        won = np.zeros(joint.shape[1])
        np.maximum.at(won, columns, joint.data)
        places = np.flatnonzero(joint.data == won[columns])
        reached, first = np.unique(columns[places], return_index=True)
        rows = np.full(joint.shape[1], -1, dtype=np.int64)
        rows[reached] = joint.indices[places[first]]
        return rows, won

    @property
    def vulnerability(self) -> float:
        """Expected gain of the best guess, sum over y of max over x of prior(x) C(y|x) (Smith 2009,
        FoSSaCS).
        """
        return float(self.best[1].sum())

    def single(self, types: int = 1) -> Mask:
        """Return a mask of outputs with a single candidate, (n_words,); the last row counts as
        `types` words.
        """
        candidates = self.candidates
        if types > 1:
            candidates = candidates.copy()
            candidates[self.matrix[-1].indices] += types - 1
        return np.asarray(candidates == 1, dtype=np.bool_)


@dataclass(frozen=True)
class Channel:
    """A sparse row-stochastic matrix, used for sampling, exact privacy figures and all attacks.

    Rows are inputs: row w for word w, and row `len(words)` for all unknown words. Columns are
    outputs. A row is empty (the token is dropped) or sums to 1. The arrays are read-only.

    Attributes:
        words: the vocabulary, lookup forms.
        indptr: (n_words + 2,) int64; indices: (n_entries,) int32; probabilities: (n_entries,)
            float64 in (0, 1].
        eligible: (n_words,) bool, words that may be outputs (at or above the rare-word floor).
        mechanism, parameters: recorded in the manifest.
        kept: words left unchanged on request (`keep_words`).
        policy: how notes are written. Not part of the saved channel or its digest.
        context: model of the words in their context; None for independent draws.

    Raises:
        ValueError: a row does not sum to 1, or an output is neither eligible nor kept.
    """

    words: Sequence[str] = field(repr=False)
    indptr: Ints = field(repr=False)
    indices: SmallInts = field(repr=False)
    probabilities: Doubles = field(repr=False)
    eligible: Mask = field(repr=False)
    mechanism: str = "neighbours"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kept: frozenset[str] = field(default=frozenset(), repr=False)
    policy: WritingPolicy = PLAIN
    context: ContextModel | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n_words = len(self.words)
        if (
            self.indptr.shape != (n_words + 2,)
            or self.indptr[0] != 0
            or (np.diff(self.indptr) < 0).any()
        ):
            raise ValueError(f"a channel of {n_words} words needs {n_words + 1} rows")
        if not self.indptr[-1] == self.indices.size == self.probabilities.size:
            raise ValueError("a channel needs one probability for each output")
        if self.probabilities.size and not (self.probabilities > 0).all():
            raise ValueError("a channel probability is not positive")
        filled = np.diff(self.indptr) > 0
        # Sum per row: differences of one cumulative sum are less precise than the tolerance.
        sums = (
            np.add.reduceat(self.probabilities, self.indptr[:-1][filled])
            if filled.any()
            else np.ones(0)
        )
        if not np.allclose(sums, 1.0, atol=SUM_TOLERANCE, rtol=0):
            worst = np.argmax(np.abs(sums - 1.0))
            row = np.flatnonzero(filled)[worst]
            raise ValueError(
                f"a channel row does not sum to 1: row {row} sums to {sums[worst]:.6g}"
            )
        if self.indices.size and not 0 <= self.indices.min() <= self.indices.max() < n_words:
            raise ValueError("an output of the channel is not in its vocabulary")
        outputs = np.zeros(n_words, dtype=np.bool_)
        outputs[self.indices] = True
        if any(
            self.words[i] not in self.kept
            for i in np.flatnonzero(outputs & ~self.eligible).tolist()
        ):
            raise ValueError("a word below the rare-word floor is an output of the channel")
        hold_read_only(self, "indptr", "indices", "probabilities", "eligible")

    @cached_property
    def ids(self) -> dict[str, int]:
        """Row by word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def in_context(self) -> bool:
        """Whether words are drawn in context. With `background` and `context_strength` 0 a context
        model changes nothing.
        """
        uses = self.policy.background > 0 or self.policy.context_strength > 0
        return self.context is not None and uses

    @property
    def unknown(self) -> int:
        """Row of unknown words."""
        return len(self.words)

    @cached_property
    def rows(self) -> Ints:
        """Row of each entry, (n_entries,)."""
        return read_only_view(np.repeat(np.arange(len(self.words) + 1), np.diff(self.indptr)))

    @cached_property
    def has_output(self) -> Mask:
        """Rows with at least one output, (n_words + 1,) bool; tokens of other rows are dropped."""
        return read_only_view(np.diff(self.indptr) > 0)

    @cached_property
    def unchanged(self) -> Doubles:
        """N_w, (n_words,): the probability that a word is replaced by itself (Feyisetan et al.
        2020).
        """
        same = self.rows == self.indices
        summed = np.bincount(self.rows[same], self.probabilities[same], len(self.words) + 1)
        return read_only_view(np.asarray(summed[: len(self.words)], dtype=np.float64))

    @cached_property
    def written(self) -> Mask:
        """Possible outputs of known words, (n_words,) bool; pool words count only with background
        draws.
        """
        outputs = np.zeros(len(self.words), dtype=np.bool_)
        outputs[
            self.indices if self.policy.background else self.indices[self.rows < self.unknown]
        ] = True
        return read_only_view(outputs)

    @cached_property
    def outputs_are_words(self) -> bool:
        """Whether every output is a single word in lookup form; checked once per channel, as it
        reads all outputs.
        """
        return bool(usable([self.words[i] for i in np.unique(self.indices).tolist()]).all())

    def released_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the words of a text that are released, in order: one per released
        word.
        """
        return [
            (start, end)
            for start, end in word_spans(text)
            if self.has_output[self.ids.get(lookup_form(text[start:end]), self.unknown)]
        ]

    def outputs(self, prior: NDArray[Any]) -> Doubles:
        """Return the expected frequency of each output, (n_words,), for a prior of (n_words,) or
        (n_words + 1,).

        The unit is that of the prior: tokens for counts, shares for a distribution.
        """
        mass = self._over_rows(prior)
        share = self.policy.background
        own = np.asarray(self.matrix().T @ mass, dtype=np.float64)
        return (1.0 - share) * own + share * (mass @ self.has_output) * self.pool if share else own

    def _over_rows(self, prior: NDArray[Any]) -> Doubles:
        return np.pad(prior.astype(np.float64), (0, len(self.words) + 1 - len(prior)))

    def posterior(self, prior: NDArray[Any]) -> Posterior:
        """Return what an attacker with the channel infers from one output, for a prior (n_words,)
        or (n_words + 1,).
        """
        likeliest = np.argsort(-prior, kind="stable")[:LIKELIEST]
        return Posterior(self.mixed(likeliest), self._over_rows(prior))

    def row(self, word: int) -> tuple[SmallInts, Doubles]:
        """Return outputs and probabilities of one row."""
        entries = slice(self.indptr[word], self.indptr[word + 1])
        return self.indices[entries], self.probabilities[entries]

    def matrix(self) -> csr_matrix:
        """Return the channel as a sorted SciPy CSR matrix, (n_words + 1, n_words), with read-only
        arrays.
        """
        matrix = csr_matrix(self._sorted, shape=(len(self.words) + 1, len(self.words)))
        matrix.has_canonical_format = True  # otherwise SciPy would check, and sort in place
        return matrix

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Probabilities, outputs and row offsets, with sorted outputs in each row."""
        shape = (len(self.words) + 1, len(self.words))
        matrix = csr_matrix((self.probabilities, self.indices, self.indptr), shape=shape, copy=True)
        matrix.sum_duplicates()
        arrays = matrix.data, matrix.indices, matrix.indptr
        for array in arrays:
            array.setflags(write=False)
        return arrays

    @property
    def pool(self) -> Doubles:
        """Distribution of background draws, (n_words,): the row of unknown words, or zeros if it is
        empty; of draws in context, the model's distribution without its context.
        """
        if self.in_context and self.context is not None:
            shares = np.zeros(len(self.words))
            shares[self.context.rows] = self.context.unigram
            return shares
        return np.asarray(self.matrix()[self.unknown].toarray().ravel(), dtype=np.float64)

    def mixed(self, among: Ints) -> csr_matrix:
        """Return P(output | input) with the policy's background draws, (n_words + 1, n_words).

        The result stays sparse: rows in `among` (the likeliest inputs) get the whole background
        distribution, other rows get it only on their own outputs. Without background draws it is
        `matrix()`.
        """
        matrix = self.matrix()
        share = self.policy.background
        if not share:
            return matrix
        background = csr_matrix(share * self.pool)
        chosen = np.zeros(len(self.words) + 1)
        chosen[among] = 1.0
        own = matrix.sign()
        everywhere = csr_matrix(chosen[:, None]) @ background
        wanted = (
            matrix * (1.0 - share)
            + own.multiply(share * self.pool)
            + everywhere
            - own.multiply(everywhere)
        )
        mixed = csr_matrix(wanted)
        mixed.eliminate_zeros()
        mixed.sort_indices()
        return mixed

    def under(
        self,
        *,
        layout: Layout = "plain",
        numbers: Numbers = "drop",
        background: float = 0.0,
        context_strength: float = 0.0,
    ) -> Channel:
        """Return the channel with another `WritingPolicy`."""
        return replace(self, policy=WritingPolicy(layout, numbers, background, context_strength))

    def keeping(self, words: Iterable[str]) -> Channel:
        """Return the channel with these words (lookup forms) left unchanged."""
        kept = frozenset(words) & self.ids.keys()
        if not kept:
            return self
        # Each row becomes empty, then gets one new entry.
        bare = self.dropping(kept)
        rows = np.sort([self.ids[word] for word in kept])
        offsets = bare.indptr[rows]
        indptr = bare.indptr.copy()
        indptr[1:] += np.cumsum(np.isin(np.arange(len(self.words) + 1), rows))
        return replace(
            bare,
            indptr=indptr,
            indices=np.insert(bare.indices, offsets, rows.astype(np.int32)),
            probabilities=np.insert(bare.probabilities, offsets, 1.0),
            kept=self.kept | kept,
        )

    def dropping(self, words: Iterable[str]) -> Channel:
        """Return the channel with these words (lookup forms) dropped: their rows are empty."""
        dropped = frozenset(words) & self.ids.keys()
        empty = np.zeros(len(self.words) + 1, dtype=np.bool_)
        empty[[self.ids[word] for word in dropped]] = True
        stays = ~empty[self.rows]
        lengths = np.where(empty, 0, np.diff(self.indptr))
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        indices = self.indices[stays]
        probabilities = self.probabilities[stays]
        return replace(
            self,
            indptr=indptr,
            indices=indices,
            probabilities=probabilities,
            kept=self.kept - dropped,
        )


def identity_channel(words: Sequence[str]) -> Channel:
    """Return the channel that leaves these words unchanged and drops unknown ones: a control for
    attackers.
    """
    n = len(words)
    indptr = np.append(np.arange(n + 1), n)
    indices = np.arange(n, dtype=np.int32)
    return Channel(words, indptr, indices, np.ones(n), np.ones(n, dtype=np.bool_), "identity")


def usable(words: Sequence[str]) -> Mask:
    """Return which words the tokenizer returns unchanged as one word, shape (n_words,).

    Other words (`new_york`, `don't`, `covid19`, `The`, an empty one) occur in imported vectors. As
    outputs they would be split or changed when the release is tokenized again.
    """
    return np.fromiter(
        (words_of(word) == [word] for word in words), dtype=np.bool_, count=len(words)
    )
