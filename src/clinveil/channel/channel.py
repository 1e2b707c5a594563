"""`Channel`, P(output | input) over a vocabulary: what every token mechanism compiles to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from clinveil.core.errors import InputError
from clinveil.vectors.readonly import hold_read_only

SUM_TOLERANCE = 1e-9


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

    Raises:
        InputError: a row that does not sum to 1, an output that is not eligible and not a kept word.
    """

    words: Sequence[str] = field(repr=False)
    indptr: NDArray[np.int64] = field(repr=False)
    indices: NDArray[np.int32] = field(repr=False)
    probabilities: NDArray[np.float64] = field(repr=False)
    eligible: NDArray[np.bool_] = field(repr=False)
    mechanism: str = "neighbours"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kept: frozenset[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        n_words = len(self.words)
        if self.indptr.shape != (n_words + 2,) or self.indptr[0] != 0 or (np.diff(self.indptr) < 0).any():
            raise InputError(f"a channel of {n_words} words needs {n_words + 1} rows")
        if not self.indptr[-1] == self.indices.size == self.probabilities.size:
            raise InputError("a channel needs one probability for each output")
        if self.probabilities.size and not (self.probabilities > 0).all():
            raise InputError("a channel holds a probability that is not positive")
        filled = np.diff(self.indptr) > 0
        # Summed row by row: differences of one long running sum lose the digits that the tolerance asks for.
        sums = np.add.reduceat(self.probabilities, self.indptr[:-1][filled]) if filled.any() else np.ones(0)
        if not np.allclose(sums, 1.0, atol=SUM_TOLERANCE, rtol=0):
            raise InputError("a channel row does not sum to 1")
        if self.indices.size and not 0 <= self.indices.min() <= self.indices.max() < n_words:
            raise InputError("an output of the channel is no word of it")
        outputs = np.zeros(n_words, dtype=np.bool_)
        outputs[self.indices] = True
        if any(self.words[i] not in self.kept for i in np.flatnonzero(outputs & ~self.eligible).tolist()):
            raise InputError("a word below the rare-word floor is an output of the channel")
        hold_read_only(self, "indptr", "indices", "probabilities", "eligible")

    @cached_property
    def ids(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def unknown(self) -> int:
        """The row of words that the channel does not know."""
        return len(self.words)

    @property
    def maps_to_itself(self) -> bool:
        """Whether some word that was not asked to be kept can come out unchanged."""
        rows = np.repeat(np.arange(len(self.words) + 1), np.diff(self.indptr))
        selves = np.unique(self.indices[rows == self.indices])
        return any(self.words[i] not in self.kept for i in selves)

    def row(self, word: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
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

    def keeping(self, words: Iterable[str]) -> Channel:
        """The same channel, but for these words (lookup forms), which it leaves as they are."""
        kept = frozenset(words) & self.ids.keys()
        if not kept:
            return self
        is_kept = np.zeros(len(self.words) + 1, dtype=np.bool_)
        is_kept[[self.ids[word] for word in kept]] = True
        lengths = np.diff(self.indptr)
        # Every entry of the other rows, and one new entry for each kept word, in the order of the rows.
        rows = np.concatenate([np.repeat(np.arange(lengths.size), lengths), np.flatnonzero(is_kept)])
        stays = np.concatenate([~np.repeat(is_kept, lengths), np.ones(len(kept), dtype=np.bool_)])
        order = np.flatnonzero(stays)[np.argsort(rows[stays], kind="stable")]
        indptr = np.zeros_like(self.indptr)
        np.cumsum(np.where(is_kept, 1, lengths), out=indptr[1:])
        return replace(
            self,
            indptr=indptr,
            indices=np.concatenate([self.indices, np.flatnonzero(is_kept).astype(np.int32)])[order],
            probabilities=np.concatenate([self.probabilities, np.ones(len(kept))])[order],
            kept=self.kept | kept,
        )
