"""New ids for released notes and patients, the crosswalk that leads back, and rows in the order of the new ids.

The crosswalk stays in the vault. A release stands in the order of its new ids: they are a keyed function of the old
ones, so the order tells nothing of the source's, keeps no patient's notes together, and is the same for any batch,
worker count or source order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clinveil.core.errors import InputError
from clinveil.core.files import remove
from clinveil.core.keys import Key
from clinveil.corpus.corpus import NOTE_ID, PATIENT_ID

CROSSWALK = pa.schema(
    [
        ("source_note_id", pa.string()),
        ("source_patient_id", pa.string()),
        ("note_id", pa.string()),
        ("patient_id", pa.string()),
    ]
)


class Renamer:
    """Gives each note and each patient an id that is random to everyone without the key.

    An id is 80 bits of a keyed pseudo-random function, so it does not depend on row order, and two ids collide with
    probability n²/2^81. The key is new for each release, so two releases of the same notes share no id.
    """

    def __init__(self, key: Key, *, patients: bool) -> None:
        """`patients`: whether the source has patient ids of its own; otherwise a note's id serves for both."""
        self._note = _namer(key, "note id")
        self._patient = _namer(key, "patient id") if patients else self._note

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The batch under its new ids, and its rows of the crosswalk."""
        old = [batch.column(NOTE_ID), batch.column(PATIENT_ID)]
        new = [
            pa.array([name(i) for i in ids.to_pylist()], pa.string())
            for name, ids in zip((self._note, self._patient), old, strict=True)
        ]
        renamed = pa.record_batch([*new, *batch.columns[2:]], schema=batch.schema)
        return renamed, pa.record_batch([*old, *new], schema=CROSSWALK)


def _namer(key: Key, purpose: str) -> Callable[[str], str]:
    @lru_cache(maxsize=1 << 16)
    def name(source: str) -> str:
        stream = key.stream(purpose, source)
        return f"{stream.uint64():016x}{stream.below(1 << 16):04x}"

    return name


def source_notes(vault: Path) -> dict[str, str]:
    """Released note id -> source note id. Raises InputError where the vault holds no crosswalk."""
    file = vault / "crosswalk.parquet"
    try:
        table = pq.read_table(file, columns=["note_id", "source_note_id"])
    except (OSError, pa.ArrowException):
        raise InputError(
            "holds no crosswalk", where=vault.name, remedy="name the vault folder of this release, OUT/vault"
        ) from None
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def id_maps(crosswalk: Iterator[pa.RecordBatch]) -> tuple[dict[str, str], dict[str, str]]:
    """Released note id -> source note id, and the same for patients."""
    notes: dict[str, str] = {}
    patients: dict[str, str] = {}
    for batch in crosswalk:
        source_note, source_patient, note, patient = (column.to_pylist() for column in batch.columns)
        notes.update(zip(note, source_note, strict=True))
        patients.update(zip(patient, source_patient, strict=True))
    return notes, patients


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
