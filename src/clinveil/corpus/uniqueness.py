"""Find duplicates in a stream by 64-bit hashes, with 8 bytes of memory per value.

The hashes are salted by this process's random hash seed, so they differ between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from clinveil.core.errors import InputError

Hashes = NDArray[np.uint64]
NO_HASHES: Hashes = np.zeros(0, dtype=np.uint64)


def hashes(values: Iterable[object]) -> Hashes:
    """Return 64-bit hashes, shape (n,); they differ between processes."""
    return np.fromiter((hash(value) for value in values), dtype=np.int64).view(np.uint64)


def joined(batches: Sequence[Hashes]) -> Hashes:
    """Return the hashes of all batches in one array."""
    return np.concatenate([NO_HASHES, *batches])


def n_distinct(batches: Sequence[Hashes]) -> int:
    """Return the number of distinct hashes in all batches."""
    return len(np.unique(joined(batches)))


def refuse_repeats(batches: Sequence[Hashes], again: Callable[[], Iterator[list[str]]], where: str) -> None:
    """Raise InputError, with both rows, if an id occurs twice.

    Args:
        batches: the hashes of all ids.
        again: returns the ids again, one list per batch, in order; called only if two hashes are equal.
        where: base name of the file.
    """
    if rows := repeated(batches, again):
        hint = "ids must be unique; choose another column with --id"
        raise InputError(f"duplicate id, already used in row {rows[0]}", where=f"{where}, row {rows[1]}", hint=hint)


def repeated(batches: Sequence[Hashes], again: Callable[[], Iterator[list[str]]]) -> tuple[int, int] | None:
    """Return the first two rows with the same id, counted from 1; None if all ids are unique.

    `batches`, `again`: as in `refuse_repeats`.
    """
    keys = np.sort(joined(batches))
    suspects = set(keys[1:][keys[1:] == keys[:-1]].tolist())
    seen: dict[str, int] = {}
    row = 0
    for batch in again() if suspects else ():
        for key, note_id in zip(hashes(batch).tolist(), batch, strict=True):
            row += 1
            if key in suspects and seen.setdefault(note_id, row) != row:
                return seen[note_id], row
    return None
