"""Find duplicates in a stream of any length, by hashes in buckets that are moved to disk above some size.

Only hashes are stored, salted by this process's random hash seed; on disk they are in unnamed temporary files. At the
end one bucket at a time is in memory, a 32nd of all: 50 MB for 10^8 notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from tempfile import SpooledTemporaryFile

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError

Hashes = NDArray[np.uint64]
IN_MEMORY = 16 << 20
BUCKETS = 32  # each an open file once it is on disk
_SHIFT = np.uint64(64 - BUCKETS.bit_length() + 1)


def hashes(values: Iterable[object]) -> Hashes:
    """Return 64-bit hashes, shape (n,); they differ between processes."""
    return np.fromiter((hash(value) for value in values), dtype=np.int64).view(np.uint64)


class HashLog:
    """Pairs (key, tag) of 64-bit numbers, returned sorted and grouped by key.

    Args:
        in_memory: approximate bytes in memory before buckets are moved to disk.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        most = max(1, in_memory // BUCKETS)
        self._buckets = [SpooledTemporaryFile(most) for _ in range(BUCKETS)]  # noqa: SIM115  live until close()

    def add(self, keys: Hashes, tags: Hashes | None = None) -> None:
        """Add pairs; shapes (n,) and (n,). Without tags they are all 0."""
        pairs = np.stack([keys, np.zeros_like(keys) if tags is None else tags], axis=1)
        buckets = (keys >> _SHIFT).astype(np.int64)
        pairs = pairs[np.argsort(buckets, kind="stable")]
        ends = np.cumsum(np.bincount(buckets, minlength=BUCKETS))
        for file, part in zip(self._buckets, np.split(pairs, ends[:-1]), strict=True):
            file.write(part.tobytes())

    def groups(self) -> Iterator[tuple[Hashes, Hashes]]:
        """Yield sorted (keys, tags), both (n,); all pairs of one key are in the same group."""
        for file in self._buckets:
            file.seek(0)
            pairs = np.frombuffer(file.read(), dtype=np.uint64).reshape(-1, 2)
            if len(pairs):
                pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
                yield pairs[:, 0], pairs[:, 1]

    def close(self) -> None:
        """Release memory and disk space."""
        for file in self._buckets:
            file.close()


def count_repeats(log: HashLog) -> int:
    """Return the number of pairs minus the number of distinct keys."""
    return sum(int((keys[1:] == keys[:-1]).sum()) for keys, _ in log.groups())


def count_conflicts(log: HashLog) -> int:
    """Return the number of keys that have two or more tags."""
    total = 0
    for keys, tags in log.groups():
        differ = (keys[1:] == keys[:-1]) & (tags[1:] != tags[:-1])
        total += len(np.unique(keys[1:][differ]))
    return total


def refuse_repeats(log: HashLog, again: Callable[[], Iterator[list[str]]], where: str) -> None:
    """Raise InputError, with both rows, if an id occurs twice.

    Args:
        log: the hashes of all ids.
        again: returns the ids again, one list per batch, in order; called only if two hashes are equal.
        where: base name of the file.
    """
    if rows := repeated(log, again):
        hint = "ids must be unique; choose another column with --id"
        raise InputError(f"duplicate id, already used in row {rows[0]}", where=f"{where}, row {rows[1]}", hint=hint)


def repeated(log: HashLog, again: Callable[[], Iterator[list[str]]]) -> tuple[int, int] | None:
    """Return the first two rows with the same id, counted from 1; None if all ids are unique.

    `log`, `again`: as in `refuse_repeats`.
    """
    suspects = {key for keys, _ in log.groups() for key in keys[1:][keys[1:] == keys[:-1]].tolist()}
    seen: dict[str, int] = {}
    row = 0
    for batch in again() if suspects else ():
        for key, note_id in zip(hashes(batch).tolist(), batch, strict=True):
            row += 1
            if key in suspects and seen.setdefault(note_id, row) != row:
                return seen[note_id], row
    return None
