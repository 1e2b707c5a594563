"""One-pass samples of the keys of a stream (notes or patients), independent of the stream's
order.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from numpy.random import Generator

V = TypeVar("V")


def _salted(key: str, salt: bytes) -> int:
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=salt).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True)
class KeyedShare:
    """A salted random share of all keys: `key in share` does not depend on the other keys."""

    share: float
    salt: bytes = field(repr=False)

    def draw(self, key: str) -> float:
        """Return a number from 0 to 1, uniform without knowledge of the salt."""
        return _salted(key, self.salt) / 2.0**64

    def __contains__(self, key: str) -> bool:
        return self.draw(key) < self.share


class KeySample(Generic[V]):
    """At most `limit` keys (notes or patients), those with the smallest salted hashes, each with
    collected data.

    A key that is dropped never returns, so the data of a sampled key are complete.

    Attributes:
        values: the data of each sampled key.
        left_out: whether any key was left out.

        Source: bottom-k sampling, Cohen & Kaplan 2007, PODC.
    """

    def __init__(self, limit: int, rng: Generator) -> None:
        self._limit = limit
        self._salt = rng.bytes(16)
        self._heap: list[tuple[int, str]] = []
        self.values: dict[str, V] = {}
        self.left_out = False

    def offer(self, key: str, make: Callable[[], V]) -> V | None:
        """Return the key's data, created by `make` for a new key; None if the key is not in the
        sample.
        """
        if key in self.values:
            return self.values[key]
        rank = -_salted(key, self._salt)
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, (rank, key))
        else:
            self.left_out = True
            if not self._heap or rank <= self._heap[0][0]:
                return None
            _, evicted = heapq.heapreplace(self._heap, (rank, key))
            del self.values[evicted]
        self.values[key] = value = make()
        return value
