"""`Vectors`, their `Subwords`, and `Neighbours`: the tables that channels and attacks use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clinveil.core import InputError, hold_read_only

Meta = Mapping[str, Any]
_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Subwords:
    """The n-gram vectors of a fastText model, for vectors of unknown words.

    fastText hashes n-grams into buckets. Only the buckets of training words are kept; the others
    still have their random initial values and would add noise to the vector of an unknown word.

    Attributes:
        buckets: (n_kept,) int64 ascending, the buckets that training updated.
        matrix: (n_kept, dim) float32, finite. n_buckets: number of buckets of the hash.
        shortest, longest: characters of an n-gram, with `<` and `>` at the ends of the word.

    Source: Bojanowski et al. 2017, Enriching word vectors with subword information, section 3.2;
    paper A uses it for terms of the word-pair lists that have no vector.

    Raises:
        InputError: shapes that do not agree, buckets out of order or range, NaN or infinity.
    """

    buckets: NDArray[np.int64] = field(repr=False)
    matrix: NDArray[np.float32] = field(repr=False)
    n_buckets: int
    shortest: int = 3
    longest: int = 6

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.buckets.shape != self.matrix.shape[:1]:
            raise InputError(
                f"{self.buckets.shape} subword buckets, but a matrix of {self.matrix.shape}"
            )
        inside = not self.buckets.size or (
            self.buckets[0] >= 0 and self.buckets[-1] < self.n_buckets
        )
        if not inside or (np.diff(self.buckets) <= 0).any():
            raise InputError("subword buckets are not in ascending order, or out of range")
        if not np.isfinite(self.matrix).all():
            raise InputError("a subword vector contains NaN or infinity")

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """Return the mean vector of the word's n-grams that occurred in training, (dim,); None if
        there are none.
        """
        wanted = np.array(
            [hashed(gram) % self.n_buckets for gram in n_grams(word, self.shortest, self.longest)]
        )
        rows = np.searchsorted(self.buckets, wanted)
        known = [
            row
            for row, bucket in zip(rows.tolist(), wanted.tolist(), strict=True)
            if self._is(row, bucket)
        ]
        return np.asarray(self.matrix[known].mean(axis=0), dtype=np.float32) if known else None

    def _is(self, row: int, bucket: int) -> bool:
        return row < self.buckets.size and int(self.buckets[row]) == bucket


def n_grams(word: str, shortest: int, longest: int) -> Iterator[str]:
    """Yield the character n-grams of a word between `<` and `>`."""
    marked = f"<{word}>"
    for size in range(shortest, longest + 1):
        for start in range(len(marked) - size + 1):
            yield marked[start : start + size]


def hashed(gram: str) -> int:
    """Return fastText's hash: FNV-1a over UTF-8 bytes read as signed, 32 bits."""
    value = _OFFSET
    for byte in gram.encode("utf-8", "surrogatepass"):
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * _PRIME) & _MASK
    return value


@dataclass(frozen=True)
class Vectors:
    """Words with counts, patients and a float32 matrix; most frequent first, ties by the word
    itself.

    The arrays are read-only.

    Attributes:
        words: lookup forms, distinct.
        matrix: (n_words, dim) float32, finite.
        counts: (n_words,) int64 occurrences in the training notes, or None for imported vectors.
        patients: (n_words,) int64 patients in whose training notes the word occurs, or None.
        n_patients: patients of the training notes, or None.
        meta: algorithm, settings, and `determinism` ("bitwise" or "statistical").
        subwords: n-gram vectors of fastText for unknown words, or None.

    Raises:
        InputError: shapes that do not agree, a repeated word, NaN or infinity in the matrix.
    """

    words: Sequence[str] = field(repr=False)
    matrix: NDArray[np.float32] = field(repr=False)
    counts: NDArray[np.int64] | None = field(default=None, repr=False)
    patients: NDArray[np.int64] | None = field(default=None, repr=False)
    n_patients: int | None = None
    meta: Meta = field(default_factory=dict)
    subwords: Subwords | None = None

    def __post_init__(self) -> None:
        n_words = len(self.words)
        if self.matrix.ndim != 2 or self.matrix.shape[0] != n_words:
            raise InputError(f"{n_words} words, but a matrix of shape {self.matrix.shape}")
        for column in (self.counts, self.patients):
            if column is not None and column.shape != (n_words,):
                raise InputError(f"{n_words} words, but {column.shape} counts")
        if self.subwords is not None and self.subwords.matrix.shape[1] != self.matrix.shape[1]:
            raise InputError("vectors of words and of subwords differ in their dimensions")
        if len(self.ids) != n_words:
            raise InputError(f"{n_words - len(self.ids)} words occur twice in the vectors")
        if not np.isfinite(self.matrix).all():
            bad = int((~np.isfinite(self.matrix).all(axis=1)).sum())
            raise InputError(f"{bad} vectors contain NaN or infinity")
        hold_read_only(self, "matrix", "counts", "patients")

    @cached_property
    def ids(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class Neighbours:
    """The nearest eligible words of every word by cosine, nearest first, without the word itself.

    The arrays are read-only.

    Attributes:
        ids: (n_words, k) int32 rows of the vectors.
        similarities: (n_words, k) float32 cosines, descending.
        eligible: (n_words,) bool, words that may be a neighbour (the rare-word floor).
        meta: method and settings.
    """

    ids: NDArray[np.int32] = field(repr=False)
    similarities: NDArray[np.float32] = field(repr=False)
    eligible: NDArray[np.bool_] = field(repr=False)
    meta: Meta = field(default_factory=dict)

    def __post_init__(self) -> None:
        n_words = self.eligible.shape[0]
        if self.ids.shape != self.similarities.shape or self.ids.shape[0] != n_words:
            raise InputError(
                f"the neighbour table has shape {self.ids.shape}, but there are {n_words} words"
            )
        if self.ids.size and (self.ids.min() < 0 or self.ids.max() >= n_words):
            raise InputError("a neighbour is out of range")
        if (self.ids == np.arange(n_words, dtype=np.int32)[:, None]).any():
            raise InputError("a word is its own neighbour")
        hold_read_only(self, "ids", "similarities", "eligible")

    @property
    def k(self) -> int:
        """Neighbours per word."""
        return int(self.ids.shape[1])

    def __len__(self) -> int:
        return int(self.ids.shape[0])
