"""Subword vectors of fastText: a vector for a word that no note held, from its character n-grams.

fastText hashes n-grams into buckets. Only buckets that some training word reached are kept: the others hold nothing but
their random start, and would lend an unknown word noise.

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
        buckets: (n_kept,) int64 ascending, the buckets that training reached.
        matrix: (n_kept, dim) float32, finite. n_buckets: how many the hash has.
        shortest, longest: characters of an n-gram, `<` and `>` at the word's ends among them.

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
            raise InputError("subword buckets are not ascending, or out of range")
        if not np.isfinite(self.matrix).all():
            raise InputError("a subword vector holds NaN or infinity")

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """(dim,) the mean vector of the word's n-grams that training saw; None where it saw none."""
        wanted = np.array([hashed(gram) % self.n_buckets for gram in n_grams(word, self.shortest, self.longest)])
        places = np.searchsorted(self.buckets, wanted)
        known = [p for p, b in zip(places.tolist(), wanted.tolist(), strict=True) if self._is(p, b)]
        return np.asarray(self.matrix[known].mean(axis=0), dtype=np.float32) if known else None

    def _is(self, place: int, bucket: int) -> bool:
        return place < self.buckets.size and int(self.buckets[place]) == bucket


def n_grams(word: str, shortest: int, longest: int) -> Iterator[str]:
    """The character n-grams of a word between `<` and `>`, the whole of it among them where it is short."""
    marked = f"<{word}>"
    for size in range(shortest, longest + 1):
        for start in range(len(marked) - size + 1):
            yield marked[start : start + size]


def hashed(gram: str) -> int:
    """fastText's hash: FNV-1a over UTF-8 bytes taken as signed, 32 bits."""
    value = _OFFSET
    for byte in gram.encode("utf-8", "surrogatepass"):
        signed = byte if byte < 128 else byte | 0xFFFFFF00
        value = ((value ^ signed) * _PRIME) & _MASK
    return value
