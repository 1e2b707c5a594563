"""Finding what stands twice in a stream of any length, in bounded memory: hashes, sorted, on disk beyond a few million.

Only hashes are held, made with this process's random hash seed, and those that reach the disk lie in an unnamed
temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError

Hashes = NDArray[np.uint64]
IN_MEMORY = 1 << 22
BUCKETS = 256
_EDGES = np.arange(BUCKETS, dtype=np.uint64) << np.uint64(56)
_PAIR = 16  # bytes of one (key, tag)


def hashes(values: Iterable[object]) -> Hashes:
    """64-bit hashes, shape (n,); the same within one process only."""
    return np.fromiter((hash(value) for value in values), dtype=np.int64).view(np.uint64)


@dataclass
class HashLog:
    """Pairs (key, tag) of 64-bit numbers, given back sorted and grouped by key.

    Attributes:
        in_memory: pairs held before they are written to disk as one sorted run (64 MB by default).
    """

    in_memory: int = IN_MEMORY
    _held: list[Hashes] = field(default_factory=list, repr=False)
    _n_held: int = 0
    _runs: list[tuple[int, NDArray[np.int64]]] = field(default_factory=list, repr=False)
    _disk: IO[bytes] | None = field(default=None, repr=False)

    def add(self, keys: Hashes, tags: Hashes | None = None) -> None:
        """Add pairs; shapes (n,) and (n,). Without tags they are all 0."""
        self._held.append(np.stack([keys, np.zeros_like(keys) if tags is None else tags], axis=1))
        self._n_held += len(keys)
        if self._n_held >= self.in_memory:
            self._spill()

    def groups(self) -> Iterator[tuple[Hashes, Hashes]]:
        """Sorted (keys, tags), both (n,); all pairs of one key are in the same group."""
        if self._disk is None:
            self._held = [self._take()]
            self._n_held = len(self._held[0])
            yield from _columns(self._held[0])
            return
        self._spill()
        for bucket in range(BUCKETS):
            parts = [self._read(start, bounds[bucket], bounds[bucket + 1]) for start, bounds in self._runs]
            yield from _columns(_ordered(np.concatenate(parts)))

    def close(self) -> None:
        """Give back memory and disk."""
        self._held, self._runs = [], []
        if self._disk is not None:
            self._disk.close()

    def _take(self) -> Hashes:
        pairs = np.concatenate([np.empty((0, 2), dtype=np.uint64), *self._held])
        self._held, self._n_held = [], 0
        return _ordered(pairs)

    def _spill(self) -> None:
        pairs = self._take()
        if self._disk is None:
            self._disk = tempfile.TemporaryFile()  # noqa: SIM115  lives until close()
        start = self._disk.seek(0, 2)
        self._disk.write(pairs.tobytes())
        self._runs.append((start, np.append(np.searchsorted(pairs[:, 0], _EDGES), len(pairs))))

    def _read(self, start: int, first: int, last: int) -> Hashes:
        assert self._disk is not None
        self._disk.seek(start + int(first) * _PAIR)
        data = self._disk.read(int(last - first) * _PAIR)
        return np.frombuffer(data, dtype=np.uint64).reshape(-1, 2)


def _ordered(pairs: Hashes) -> Hashes:
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _columns(pairs: Hashes) -> Iterator[tuple[Hashes, Hashes]]:
    if len(pairs):
        yield pairs[:, 0], pairs[:, 1]


def count_repeats(log: HashLog) -> int:
    """How many pairs have a key that an earlier pair has: rows minus distinct keys."""
    return sum(int((keys[1:] == keys[:-1]).sum()) for keys, _ in log.groups())


def count_conflicts(log: HashLog) -> int:
    """How many keys stand with two tags or more."""
    total = 0
    for keys, tags in log.groups():
        differ = (keys[1:] == keys[:-1]) & (tags[1:] != tags[:-1])
        total += len(np.unique(keys[1:][differ]))
    return total


def refuse_repeats(log: HashLog, again: Callable[[], Iterator[list[str]]], where: str) -> None:
    """Raise InputError with the row of the second if an id stands twice.

    Args:
        log: the hashes of all ids.
        again: the ids once more, a list a batch, in order; read only where two hashes are equal.
        where: base name of the file.
    """
    found = [keys[1:][keys[1:] == keys[:-1]] for keys, _ in log.groups()]
    suspects = set(np.concatenate(found).tolist()) if found else set()
    if not suspects:
        return
    seen: dict[str, int] = {}
    row = 0
    for batch in again():
        for key, note_id in zip(hashes(batch).tolist(), batch, strict=True):
            row += 1
            if key in suspects and seen.setdefault(note_id, row) != row:
                what = f"its id stands at row {seen[note_id]} already"
                raise InputError(what, where=f"{where}, row {row}", remedy="ids must be unique; name another --id")
