"""Subword vectors of fastText: vectors of unknown words from their character n-grams.

fastText hashes n-grams into buckets. Only the buckets of training words are kept; the others still have their random
initial values and would add noise to the vector of an unknown word.

Source: Bojanowski et al. 2017, Enriching word vectors with subword information, section 3.2; paper A uses it for terms
of the word-pair lists that have no vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError

_OFFSET, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF


@dataclass(frozen=True)
class Subwords:
    """The n-gram vectors of a fastText model.

    Attributes:
        buckets: (n_kept,) int64 ascending, the buckets that training updated.
        matrix: (n_kept, dim) float32, finite. n_buckets: number of buckets of the hash.
        shortest, longest: characters of an n-gram, with `<` and `>` at the ends of the word.

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
            raise InputError(f"{self.buckets.shape} subword buckets, but a matrix of {self.matrix.shape}")
        inside = not self.buckets.size or (self.buckets[0] >= 0 and self.buckets[-1] < self.n_buckets)
        if not inside or (np.diff(self.buckets) <= 0).any():
            raise InputError("subword buckets are not in ascending order, or out of range")
        if not np.isfinite(self.matrix).all():
            raise InputError("a subword vector contains NaN or infinity")

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """Return the mean vector of the word's n-grams that occurred in training, (dim,); None if there are none."""
        wanted = np.array([hashed(gram) % self.n_buckets for gram in n_grams(word, self.shortest, self.longest)])
        rows = np.searchsorted(self.buckets, wanted)
        known = [row for row, bucket in zip(rows.tolist(), wanted.tolist(), strict=True) if self._is(row, bucket)]
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
