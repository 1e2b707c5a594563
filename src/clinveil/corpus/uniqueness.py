"""Find duplicates in a stream by 64-bit hashes, with 8 bytes of memory per value; the same in every
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def hashes(values: Iterable[object]) -> Hashes:
    """Return 64-bit hashes of texts, or of other values as texts: shape (n,)."""
    raw = b"".join(
        blake2b(str(v).encode("utf-8", "surrogatepass"), digest_size=8).digest() for v in values
    )
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def joined(batches: Sequence[Hashes]) -> Hashes:
    """Return the hashes of all batches in one array."""
    return np.concatenate([np.zeros(0, dtype=np.uint64), *batches])


def n_distinct(batches: Sequence[Hashes]) -> int:
    """Return the number of distinct hashes in all batches."""
    return len(np.unique(joined(batches)))


def positions_of(keys: Hashes, wanted: Hashes) -> NDArray[np.int64]:
    """Return the index of each hash among ascending keys, -1 where it is missing."""
    index = np.searchsorted(keys, wanted)
    return np.where(
        (index < keys.size) & (np.append(keys, np.uint64(0))[index] == wanted), index, -1
    )


def repeated(
    batches: Sequence[Hashes], again: Callable[[], Iterator[list[str]]]
) -> tuple[int, int] | None:
    """Return the first two rows with the same id, counted from 1; None if all ids are unique.

    Args:
        batches: the hashes of all ids.
        again: returns the ids again, one list per batch, in order; called only if two hashes are
            equal.
    """
    keys = np.sort(joined(batches))
    suspects = keys[1:][keys[1:] == keys[:-1]]
    seen: dict[str, int] = {}
    row = 0
    for batch in again() if suspects.size else ():
        for index in np.flatnonzero(np.isin(hashes(batch), suspects)).tolist():
            if batch[index] in seen:
                return seen[batch[index]], row + index + 1
            seen[batch[index]] = row + index + 1
        row += len(batch)
    return None
