"""Cutting and joining batches, so that each holds about 2,000 notes and not too many bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clinveil.corpus.corpus import BATCH_ROWS, TEXT

BATCH_BYTES = 32 << 20


class Rebatcher:
    """Takes batches of any size, gives batches of `rows` rows, or fewer where their text reaches `max_bytes`.

    A single note longer than `max_bytes` makes a batch of its own.
    """

    def __init__(self, rows: int = BATCH_ROWS, max_bytes: int = BATCH_BYTES) -> None:
        self._limit, self._max_bytes = rows, max_bytes
        self._pieces: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch; yield those that are full now."""
        ends = np.cumsum(text_bytes(batch))
        start = 0
        while start < batch.num_rows:
            before = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, before + self._max_bytes - self._bytes, side="right")) - start
            take = min(fitting, self._limit - self._rows, batch.num_rows - start)
            if take <= 0 and self._rows:
                yield from self.flush()
                continue
            take = max(take, 1)
            self._pieces.append(batch.slice(start, take))
            start += take
            self._rows += take
            self._bytes += int(ends[start - 1]) - before
            if self._rows >= self._limit or self._bytes >= self._max_bytes:
                yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield what is left, if anything."""
        pieces, self._pieces, self._rows, self._bytes = self._pieces, [], 0, 0
        if len(pieces) == 1:
            yield pieces[0]
        elif pieces:
            yield from pa.Table.from_batches(pieces).combine_chunks().to_batches()


def rebatch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `BATCH_ROWS` rows and at most about `BATCH_BYTES` of text."""
    rebatcher = Rebatcher()
    for batch in batches:
        yield from rebatcher.push(batch)
    yield from rebatcher.flush()


def text_bytes(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Bytes of each row's text, shape (n_rows,); 0 where it is null."""
    lengths = pc.fill_null(pc.binary_length(batch.column(TEXT)), 0)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)
