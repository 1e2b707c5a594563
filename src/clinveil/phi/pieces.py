"""The batches of a corpus in pieces, and what was made of the pieces as one again.

What a worker holds at a time, and what waits for it, is a piece: a batch with all that is found and noted of it takes
several times the memory, and of few batches some workers get none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from clinveil.phi.deidentifier import Deidentified

ROWS = 500


class Pieces:
    """Takes batches apart, and puts what comes back together; both go in the order of the batches."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()

    def of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The pieces of the next batch, each a copy: a slice is sent with all that it is a part of."""
        starts = range(0, max(1, batch.num_rows), ROWS)
        self._sizes.append(len(starts))
        for start in starts if len(starts) > 1 else ():
            yield batch.take(pa.array(range(start, min(start + ROWS, batch.num_rows))))
        if len(starts) == 1:
            yield batch

    def joined(self, results: Iterator[Deidentified]) -> Iterator[Deidentified]:
        """One result a batch."""
        for first in results:
            yield _one([first, *(next(results) for _ in range(self._sizes.popleft() - 1))])


def _one(parts: Sequence[Deidentified]) -> Deidentified:
    if len(parts) == 1:
        return parts[0]
    made = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches()
    whole = Deidentified(made[0] if made else parts[0].batch, spans=None)
    for part in parts:
        for name in ("counts", "by_detector", "skipped", "tagged"):
            getattr(whole, name).update(getattr(part, name))
        whole.audit += part.audit
        whole.crosswalk += part.crosswalk
        if part.spans is not None:
            whole.spans = [*(whole.spans or ()), *part.spans]
    return whole
