"""Split batches into pieces for workers, and join their results.

A worker processes one piece at a time. Spans and records take several times the memory of a batch, and a small number
of batches would leave some workers without work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from clinveil.phi.treatment.deidentifier import Deidentified

ROWS = 500


class Pieces:
    """Splits batches and joins the results, both in the order of the batches."""

    def __init__(self) -> None:
        self._sizes: deque[int] = deque()

    def of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the pieces of the next batch as copies: pickling a slice would send the entire batch."""
        starts = range(0, max(1, batch.num_rows), ROWS)
        self._sizes.append(len(starts))
        for start in starts if len(starts) > 1 else ():
            yield batch.take(pa.array(range(start, min(start + ROWS, batch.num_rows))))
        if len(starts) == 1:
            yield batch

    def joined(self, results: Iterator[Deidentified]) -> Iterator[Deidentified]:
        """Yield one result per batch."""
        for first in results:
            yield _joined([first, *(next(results) for _ in range(self._sizes.popleft() - 1))])


def _joined(parts: Sequence[Deidentified]) -> Deidentified:
    if len(parts) == 1:
        return parts[0]
    batches = pa.Table.from_batches([part.batch for part in parts]).combine_chunks().to_batches()
    joined = Deidentified(batches[0] if batches else parts[0].batch, spans=None)
    for part in parts:
        for name in ("counts", "by_detector", "skipped", "tagged"):
            getattr(joined, name).update(getattr(part, name))
        joined.audit += part.audit
        joined.crosswalk += part.crosswalk
        if part.spans is not None:
            joined.spans = [*(joined.spans or ()), *part.spans]
    return joined
