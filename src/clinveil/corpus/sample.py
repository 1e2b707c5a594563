"""Samples of the keys of a stream (notes or patients), in one pass, whatever the order of the stream."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from numpy.random import Generator

V = TypeVar("V")


@dataclass(frozen=True)
class KeyedShare:
    """So large a share of all keys, drawn by a salt: `key in share` is the same whatever other keys there are."""

    share: float
    salt: bytes = field(repr=False)

    def draw(self, key: str) -> float:
        """Between 0 and 1, uniform to who does not know the salt."""
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=self.salt).digest()
        return int.from_bytes(digest, "little") / 2.0**64

    def __contains__(self, key: str) -> bool:
        return self.draw(key) < self.share


class KeySample(Generic[V]):
    """At most `limit` keys (notes or patients), those with the smallest salted hashes, each with what it gathered.

    A key that is left out once never comes back, so what a kept key gathered is complete.

    Attributes:
        values: what each kept key gathered.
        left_out: whether any key was left out.
    Source: bottom-k sampling, Cohen & Kaplan 2007, PODC.
    """

    def __init__(self, limit: int, rng: Generator) -> None:
        self._limit, self._salt = limit, rng.bytes(16)
        self._heap: list[tuple[int, str]] = []
        self.values: dict[str, V] = {}
        self.left_out = False

    def offer(self, key: str, make: Callable[[], V]) -> V | None:
        """What the key has gathered so far, made when it is new; None if the sample has no room for it."""
        if key in self.values:
            return self.values[key]
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, key=self._salt).digest()
        rank = -int.from_bytes(digest, "little")
        if len(self._heap) < self._limit:
            heapq.heappush(self._heap, (rank, key))
        else:
            self.left_out = True
            if not self._heap or rank <= self._heap[0][0]:
                return None
            _, evicted = heapq.heapreplace(self._heap, (rank, key))
            del self.values[evicted]
        self.values[key] = made = make()
        return made
