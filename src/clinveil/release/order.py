"""Rows in another order, in bounded memory: dealt into files by rank, then sorted file by file.

A release stands in the order of its new ids. They are a keyed function of the old ones, so the order tells nothing of
the source's order, keeps no patient's notes together, and is the same for any batch, worker count or source order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clinveil.core.files import remove
from clinveil.corpus.corpus import NOTE_ID

Ranks = NDArray[np.uint64]
_SHIFT = np.uint64(64 - 6)  # 64 files
_ROWS = 1024


def by_new_id(batch: pa.RecordBatch) -> Ranks:
    """The first 64 bits of each new note id."""
    return np.array([int(note_id[:16], 16) for note_id in batch.column(NOTE_ID).to_pylist()], dtype=np.uint64)


def by_place(places: dict[str, int]) -> Callable[[pa.RecordBatch], Ranks]:
    """Ranks that put notes at the places of their ids; ids without a place come last."""
    step = 2**64 // (len(places) + 1)

    def ranks(batch: pa.RecordBatch) -> Ranks:
        ids = batch.column(NOTE_ID).to_pylist()
        return np.array([places.get(note_id, len(places)) * step for note_id in ids], dtype=np.uint64)

    return ranks


def reordered(
    batches: Iterable[pa.RecordBatch], rank: Callable[[pa.RecordBatch], Ranks], scratch: Path
) -> Iterator[pa.RecordBatch]:
    """All rows by their rank, those of one rank as they came; a 64th of them is held at a time.

    Args:
        batches: of one schema.
        rank: of the rows of a batch; evenly spread, so that the files are of one size.
        scratch: a new folder for the files, in the vault; it is gone at the end.
    """
    remove(scratch)
    scratch.mkdir(parents=True, mode=0o700)
    try:
        ranks = _deal(batches, rank, scratch)
        for name in sorted(ranks):
            with pa.ipc.open_stream(scratch / str(name)) as file:
                table = file.read_all()
            order = np.argsort(np.concatenate(ranks[name]), kind="stable")
            for start in range(0, len(order), _ROWS):
                yield from table.take(order[start : start + _ROWS]).combine_chunks().to_batches()
    finally:
        remove(scratch)


def _deal(
    batches: Iterable[pa.RecordBatch], rank: Callable[[pa.RecordBatch], Ranks], scratch: Path
) -> dict[int, list[Ranks]]:
    """Write each row into the file of its rank's first bits; the ranks, file by file."""
    ranks: dict[int, list[Ranks]] = {}
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    try:
        for batch in batches:
            found = rank(batch)
            files = found >> _SHIFT
            for name in np.unique(files).tolist():
                rows = np.flatnonzero(files == name)
                if name not in writers:
                    writers[name] = pa.ipc.new_stream(scratch / str(name), batch.schema, options=packed)
                writers[name].write_batch(batch.take(pa.array(rows)))
                ranks.setdefault(name, []).append(found[rows])
    finally:
        for writer in writers.values():
            writer.close()
    return ranks
