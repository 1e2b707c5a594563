"""Kept columns: how many notes are the only ones with their combination of kept values."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.core.finding import Finding


def kept_columns(released: Iterable[pa.RecordBatch], keep: Sequence[str]) -> list[Finding]:
    """The share of notes whose kept values, taken together, no other note has; nothing where no column is kept.

    Streams; 8 bytes a note are kept. Counted over the whole release, so there is no sampling interval.
    Source: k-anonymity with k = 1, Sweeney 2002.
    """
    if not keep:
        return []
    keys = array("Q")
    for batch in released:
        columns = [batch.column(name).to_pylist() for name in keep]
        for values in zip(*columns, strict=True):
            digest = hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8).digest()
            keys.append(int.from_bytes(digest, "little"))
    return [_finding(np.array(keys, dtype=np.uint64), len(keep))]


def _finding(keys: NDArray[np.uint64], columns: int) -> Finding:
    if not keys.size:
        why: dict[str, int | str] = {"columns": columns, "why": "no released notes"}
        return Finding("attack.kept_columns_unique", None, 0, "lower", unit="notes", detail=why)
    counts = np.unique(keys, return_counts=True)[1]
    alone = int((counts == 1).sum())
    return Finding(
        "attack.kept_columns_unique",
        alone / keys.size,
        int(keys.size),
        "lower",
        source="k-anonymity: Sweeney 2002",
        detail={"columns": columns, "combinations": int(counts.size), "smallest": int(counts.min())},
        unit="notes",
        count=alone,
        method="none: counted over the whole release",
    )
