"""`Channel`, P(output | input) over a vocabulary: what every token mechanism compiles to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from clinveil.channel.policy import PLAIN, SCOPES, Policy
from clinveil.channel.posterior import Posterior, entropy
from clinveil.core.types import Doubles, Ints, Mask, SmallInts, hold_read_only, read_only_view
from clinveil.vectors.floor import usable

SUM_TOLERANCE = 1e-9
LIKELIEST = 100  # inputs that an attacker weighs for an output that a background draw can explain


@dataclass(frozen=True)
class Channel:
    """A sparse row-stochastic matrix; sampling, exact privacy figures and all attacks work off this one object.

    Rows are inputs: row w for word w, and row `len(words)` for every word that the channel does not know. Columns are
    outputs. A row is empty (the token is dropped) or sums to 1. The arrays are read-only.

    Attributes:
        words: the vocabulary, lookup forms.
        indptr: (n_words + 2,) int64; indices: (n_entries,) int32; probabilities: (n_entries,) float64 in (0, 1].
        eligible: (n_words,) bool, words that may come out (the rare-word floor).
        mechanism, parameters: what made it, for the manifest.
        kept: words that the user asked to leave as they are (`--keep-words`).
        policy: how notes are written with it. It is no part of the saved channel, nor of its digest.
        scopes: (n_words + 1,) uint8, within what the draw of each row is repeated (number in `policy.SCOPES`); None:
            all rows as `policy.scope` says.

    Raises:
        ValueError: a row that does not sum to 1, an output that is not eligible and not a kept word, a scope of none.
    """

    words: Sequence[str] = field(repr=False)
    indptr: Ints = field(repr=False)
    indices: SmallInts = field(repr=False)
    probabilities: Doubles = field(repr=False)
    eligible: Mask = field(repr=False)
    mechanism: str = "neighbours"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kept: frozenset[str] = field(default=frozenset(), repr=False)
    policy: Policy = PLAIN
    scopes: NDArray[np.uint8] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n_words = len(self.words)
        if self.indptr.shape != (n_words + 2,) or self.indptr[0] != 0 or (np.diff(self.indptr) < 0).any():
            raise ValueError(f"a channel of {n_words} words needs {n_words + 1} rows")
        if not self.indptr[-1] == self.indices.size == self.probabilities.size:
            raise ValueError("a channel needs one probability for each output")
        if self.probabilities.size and not (self.probabilities > 0).all():
            raise ValueError("a channel holds a probability that is not positive")
        filled = np.diff(self.indptr) > 0
        # Summed row by row: differences of one long running sum lose the digits that the tolerance asks for.
        sums = np.add.reduceat(self.probabilities, self.indptr[:-1][filled]) if filled.any() else np.ones(0)
        if not np.allclose(sums, 1.0, atol=SUM_TOLERANCE, rtol=0):
            worst = np.argmax(np.abs(sums - 1.0))
            row = np.flatnonzero(filled)[worst]
            raise ValueError(f"a channel row does not sum to 1: row {row} sums to {sums[worst]:.6g}")
        if self.indices.size and not 0 <= self.indices.min() <= self.indices.max() < n_words:
            raise ValueError("an output of the channel is no word of it")
        outputs = np.zeros(n_words, dtype=np.bool_)
        outputs[self.indices] = True
        if any(self.words[i] not in self.kept for i in np.flatnonzero(outputs & ~self.eligible).tolist()):
            raise ValueError("a word below the rare-word floor is an output of the channel")
        hold_read_only(self, "indptr", "indices", "probabilities", "eligible")
        if self.scopes is not None:
            if self.scopes.shape != (n_words + 1,) or self.scopes.dtype != np.uint8 or self.scopes.max() >= len(SCOPES):
                raise ValueError(f"a channel of {n_words} words needs {n_words + 1} scopes of draws")
            hold_read_only(self, "scopes")

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What the mechanism's settings ask for and this vocabulary does not give, in sentences."""
        told = self.parameters
        if told.get("as_wanted", True):
            return ()
        most = f"one word is {told['greatest_share']:.0%} of the tokens of its cluster"
        return (f"The clusters are not as wanted: the smallest has {told['fewest_words']} words to come out, {most}.",)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def unknown(self) -> int:
        """The row of words that the channel does not know."""
        return len(self.words)

    @cached_property
    def rows(self) -> Ints:
        """The row of each entry, (n_entries,)."""
        return read_only_view(np.repeat(np.arange(len(self.words) + 1), np.diff(self.indptr)))

    @cached_property
    def speaks(self) -> Mask:
        """(n_words + 1,) which rows have an output at all."""
        return read_only_view(np.diff(self.indptr) > 0)

    @cached_property
    def unchanged(self) -> Doubles:
        """N_w, (n_words,): the probability of each word that it comes out as it went in (Feyisetan et al. 2020)."""
        same = self.rows == self.indices
        summed = np.bincount(self.rows[same], self.probabilities[same], len(self.words) + 1)
        return read_only_view(np.asarray(summed[: len(self.words)], dtype=np.float64))

    @cached_property
    def in_degree(self) -> Ints:
        """(n_words,) how many rows each output can come from; |R(y)| of the whole channel."""
        return read_only_view(np.bincount(self.indices, minlength=len(self.words)).astype(np.int64))

    @property
    def row_scopes(self) -> NDArray[np.uint8]:
        """(n_words + 1,) the scope of each row. Raises ValueError for memo "rare" where `scopes` is not there."""
        if self.scopes is not None:
            return self.scopes
        if self.policy.scope not in SCOPES:
            raise ValueError(f"memo {self.policy.scope!r} needs the scope of each row: see `scopes.scoped`")
        return np.full(len(self.words) + 1, SCOPES.index(self.policy.scope), dtype=np.uint8)

    @property
    def maps_to_itself(self) -> bool:
        """Whether some word that was not asked to be kept can come out unchanged."""
        return any(self.words[i] not in self.kept for i in np.flatnonzero(self.unchanged).tolist())

    @cached_property
    def written(self) -> Mask:
        """(n_words,) the words that known words can come out as; those of the pool only with background draws."""
        found = np.zeros(len(self.words), dtype=np.bool_)
        found[self.indices if self.policy.background else self.indices[self.rows < self.unknown]] = True
        return read_only_view(found)

    @cached_property
    def outputs_are_words(self) -> bool:
        """Whether every output is a single word in lookup form; checked once per channel, as it reads all outputs."""
        return bool(usable([self.words[i] for i in np.unique(self.indices).tolist()]).all())

    @cached_property
    def settled(self) -> bool:
        """Whether many draws of a word tell no more than one: known words that share an output have the same row."""
        known = self.rows < self.unknown
        rows, outputs = self.rows[known], self.indices[known]
        marks = np.random.default_rng(0).random(len(self.words))
        sums = np.bincount(rows, self.probabilities[known] * marks[outputs], len(self.words))[rows]
        least, most = np.full(len(self.words), np.inf), np.full(len(self.words), -np.inf)
        np.minimum.at(least, outputs, sums)
        np.maximum.at(most, outputs, sums)
        return bool((most - least < SUM_TOLERANCE).all())  # of an output that none has: -inf

    def outputs(self, prior: NDArray[Any]) -> Doubles:
        """How often each output comes, (n_words,): the prior (n_words,) or (n_words + 1,) through the channel.

        In the units of the prior: tokens of a count, shares of a distribution.
        """
        mass, share = self._over_rows(prior), self.policy.background
        own = np.asarray(self.matrix().T @ mass, dtype=np.float64)
        return (1.0 - share) * own + share * (mass @ self.speaks) * self.pool if share else own

    def _over_rows(self, prior: NDArray[Any]) -> Doubles:
        return np.pad(prior.astype(np.float64), (0, len(self.words) + 1 - len(prior)))

    def posterior(self, prior: NDArray[Any]) -> Posterior:
        """What an attacker who holds the channel infers from one output, by a prior (n_words,) or (n_words + 1,)."""
        likeliest = np.argsort(-prior, kind="stable")[:LIKELIEST]
        return Posterior(self.mixed(likeliest), self._over_rows(prior))

    def noise_bits(self, prior: NDArray[Any]) -> float:
        """H(output | input) in bits, by a prior (n_words,) or (n_words + 1,)."""
        mass, share = self._over_rows(prior), self.policy.background
        if not share:
            bits = _bits(self.probabilities)
            return float((bits * mass[self.rows]).sum() / prior.sum())
        beside = share * self.pool
        own = _bits((1.0 - share) * self.probabilities + beside[self.indices]) - _bits(beside[self.indices])
        pool_bits = _bits(beside).sum() * float(mass @ self.speaks)
        return float(((own * mass[self.rows]).sum() + pool_bits) / prior.sum())

    def bits_left(self, prior: NDArray[Any], types: NDArray[Any] | None = None) -> float:
        """H(input | output) in bits = H(X) + H(Y|X) - H(Y); 2 to this power are the effective candidates.

        Args:
            prior: (n_words,) or (n_words + 1,).
            types: the same tokens by word type, where the last row stands for several; None: by row.

        Source: Shannon 1948.
        """
        before = entropy(prior if types is None else types)
        return max(0.0, before + self.noise_bits(prior) - entropy(self.outputs(prior)))

    def mutual_information(self, prior: NDArray[Any]) -> float:
        """I(input; output) in bits over the words that come out, by a prior (n_words,) or (n_words + 1,).

        Source: Shannon 1948.
        """
        spoken = self._over_rows(prior) * self.speaks
        return max(0.0, entropy(self.outputs(spoken)) - self.noise_bits(spoken)) if spoken.any() else 0.0

    def capacity(self, rows: Mask | None = None) -> float:
        """The most that min-entropy leakage can be for any prior over these rows, log2 sum_y max_x C(y|x), in bits.

        Args:
            rows: (n_words + 1,) the inputs that occur; None: all.

        Source: Braun, Chatzikokolakis, Palamidessi 2009.
        """
        matrix = self.matrix() if rows is None else self.matrix()[rows]
        share = self.policy.background
        return float(np.log2((1.0 - share) * matrix.max(axis=0).sum() + share)) if matrix.nnz else 0.0

    def deltas(self, one: Ints, other: Ints, epsilons: Doubles) -> Doubles:
        """delta(epsilon) of pairs of rows, (n_pairs, n_epsilons): see `figures.deltas`."""
        from clinveil.channel import figures  # compiles

        return figures.deltas(self.matrix(), one, other, epsilons)

    def total_variation(self, one: Ints, other: Ints) -> Doubles:
        """How differently two words come out, (n_pairs,): half the sum of |C(y|x) - C(y|x')|; 1 where no output is of
        both."""
        return self.deltas(one, other, np.zeros(1))[:, 0]

    def epsilons(self, one: Ints, other: Ints) -> Doubles:
        """The epsilon of pairs of rows with delta 0, (n_pairs,); infinity where an output is of one alone."""
        from clinveil.channel import figures

        return figures.epsilons(self.matrix(), one, other)

    def spread(self, eta: float = 0.0) -> Ints:
        """S_w, (n_words + 1,): the least number of outputs that carry 1 - eta of each row; Feyisetan et al. 2020."""
        from clinveil.channel import figures

        return figures.spread(self.matrix(), eta)

    def row(self, word: int) -> tuple[SmallInts, Doubles]:
        """Outputs and probabilities of one row."""
        place = slice(self.indptr[word], self.indptr[word + 1])
        return self.indices[place], self.probabilities[place]

    def matrix(self) -> csr_matrix:
        """The channel as a SciPy CSR matrix, shape (n_words + 1, n_words): sorted, and read-only arrays of its own."""
        matrix = csr_matrix(self._sorted, shape=(len(self.words) + 1, len(self.words)))
        matrix.has_canonical_format = True  # else SciPy would look, and sort in place
        return matrix

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Probabilities, outputs and places of the rows, with the outputs of each row in order."""
        shape = (len(self.words) + 1, len(self.words))
        matrix = csr_matrix((self.probabilities, self.indices, self.indptr), shape=shape, copy=True)
        matrix.sum_duplicates()
        parts = matrix.data, matrix.indices, matrix.indptr
        for part in parts:
            part.setflags(write=False)
        return parts

    @property
    def pool(self) -> Doubles:
        """(n_words,) the distribution of background draws: the row of unknown words; zeros where it is empty."""
        return np.asarray(self.matrix()[self.unknown].toarray().ravel(), dtype=np.float64)

    def mixed(self, among: Ints) -> csr_matrix:
        """Return P(output | input) with the policy's background draws, (n_words + 1, n_words).

        The result stays sparse: rows in `among` (the likeliest inputs) get the whole background distribution, other
        rows get it on the outputs that they have anyway. Without background draws it is `matrix()`.
        """
        matrix, share = self.matrix(), self.policy.background
        if not share:
            return matrix
        background = csr_matrix(share * self.pool)
        chosen = np.zeros(len(self.words) + 1)
        chosen[among] = 1.0
        own = matrix.sign()
        everywhere = csr_matrix(chosen[:, None]) @ background
        wanted = matrix * (1.0 - share) + own.multiply(share * self.pool) + everywhere - own.multiply(everywhere)
        made = csr_matrix(wanted)
        made.eliminate_zeros()
        made.sort_indices()
        return made

    def under(self, **policy: Any) -> Channel:
        """The same channel with another policy; what is not given (fields of `Policy`) stays as it is.

        With a memo the scopes of single rows go: `scopes.scoped` gives them anew.
        """
        scopes = None if "scope" in policy else self.scopes
        return replace(self, policy=replace(self.policy, **policy), scopes=scopes)

    def keeping(self, words: Iterable[str]) -> Channel:
        """The same channel, but for these words (lookup forms), which it leaves as they are."""
        kept = frozenset(words) & self.ids.keys()
        if not kept:
            return self
        # An empty row gets one new entry.
        bare = self.dropping(kept)
        rows = np.sort([self.ids[word] for word in kept])
        places = bare.indptr[rows]
        indptr = bare.indptr.copy()
        indptr[1:] += np.cumsum(np.isin(np.arange(len(self.words) + 1), rows))
        return replace(
            bare,
            indptr=indptr,
            indices=np.insert(bare.indices, places, rows.astype(np.int32)),
            probabilities=np.insert(bare.probabilities, places, 1.0),
            kept=self.kept | kept,
        )

    def dropping(self, words: Iterable[str]) -> Channel:
        """The same channel, but for these words (lookup forms), which it drops: their rows are empty."""
        dropped = frozenset(words) & self.ids.keys()
        empty = np.zeros(len(self.words) + 1, dtype=np.bool_)
        empty[[self.ids[word] for word in dropped]] = True
        stays, lengths = ~empty[self.rows], np.where(empty, 0, np.diff(self.indptr))
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        indices, probabilities = self.indices[stays], self.probabilities[stays]
        return replace(self, indptr=indptr, indices=indices, probabilities=probabilities, kept=self.kept - dropped)


def _bits(chances: Doubles) -> Doubles:
    """-p log2 p of each probability, 0 where p is 0."""
    return np.where(chances > 0, -chances * np.log2(np.where(chances > 0, chances, 1.0)), 0.0)
