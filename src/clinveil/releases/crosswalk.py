"""New ids for released notes and patients, the crosswalk that leads back, and rows in the order of the new ids.

The crosswalk stays in the vault. A release stands in the order of its new ids: they are a keyed function of the old
ones, so the order tells nothing of the source's, keeps no patient's notes together, and is the same for any batch,
worker count or source order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Protocol

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


def ledger_batches(vault: Path, name: str) -> Iterator[pa.RecordBatch]:
    """The rows of `crosswalk` or `alignment` of a vault, in source order; none where no note was written.

    Of a release of part files it is a folder of a file each, in the order of the source's.
    """
    path = vault / f"{name}.parquet"
    for part in sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []:
        with pq.ParquetFile(part) as file:
            yield from file.iter_batches()


def source_notes(vault: Path) -> dict[str, str]:
    """Released note id -> source note id. Raises InputError where the vault holds no crosswalk."""
    try:
        notes, _ = id_maps(ledger_batches(vault, "crosswalk"))
    except (OSError, ValueError, pa.ArrowException):
        notes = {}
    if not notes:
        hint = "name the vault folder of this release, OUT/vault"
        raise InputError("holds no crosswalk", where=vault.name, hint=hint)
    return notes


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
_BITS, _TOP = 6, 64  # of a rank, that tell 64 files apart
_ROWS = 1024
_RANK = pa.field(" rank", pa.uint64())  # a name that no column has: source names are told before
MOST = 16 << 20  # bytes of a file, compressed, that is read as a whole


class Places(Protocol):
    """The place of each note, by its new id."""

    def __len__(self) -> int: ...

    def get(self, note_id: str, default: int, /) -> int:
        """The place, or the default."""
        ...


def by_new_id(batch: pa.RecordBatch) -> Ranks:
    """The first 64 bits of each new note id."""
    return np.array([int(note_id[:16], 16) for note_id in batch.column(NOTE_ID).to_pylist()], dtype=np.uint64)


def by_place(places: Places) -> Callable[[pa.RecordBatch], Ranks]:
    """Ranks that put notes at the places of their ids; ids without a place come last."""
    step = 2**64 // (len(places) + 1)

    def ranks(batch: pa.RecordBatch) -> Ranks:
        ids = batch.column(NOTE_ID).to_pylist()
        return np.array([places.get(note_id, len(places)) * step for note_id in ids], dtype=np.uint64)

    return ranks


class CrosswalkOrder:
    """The places of a crosswalk's notes, for who asks in the order of their new ids: it holds a few at a time.

    Args:
        crosswalk: in source order. scratch: a new folder; it is gone after `close`.
    """

    def __init__(self, crosswalk: Iterable[pa.RecordBatch], scratch: Path) -> None:
        self._count, self._held, self._last = 0, dict[str, int](), ""
        self._sorted = reordered(self._numbered(crosswalk), by_new_id, scratch)
        first = next(self._sorted, None)  # now all are counted
        self._rows = self._pairs(first)

    def _numbered(self, crosswalk: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in crosswalk:
            places = np.arange(self._count, self._count + batch.num_rows)
            self._count += batch.num_rows
            yield pa.record_batch({NOTE_ID: batch.column(NOTE_ID), "place": places})

    def _pairs(self, first: pa.RecordBatch | None) -> Iterator[tuple[str, int]]:
        for batch in chain([first] if first is not None else [], self._sorted):
            yield from zip(batch.column(NOTE_ID).to_pylist(), batch.column("place").to_pylist(), strict=True)

    def __len__(self) -> int:
        return self._count

    def get(self, note_id: str, default: int, /) -> int:
        """The place of a note; the default for one that is not there, or asked for out of order."""
        while self._last[:16] <= note_id[:16] and (row := next(self._rows, None)):
            self._last = row[0]
            self._held[row[0]] = row[1]
        found = self._held.pop(note_id, default)
        if len(self._held) > _ROWS:  # of notes that are missing among those asked for
            self._held = {name: place for name, place in self._held.items() if name[:16] >= note_id[:16]}
        return found

    def close(self) -> None:
        """Remove the scratch."""
        self._sorted.close()


def reordered(
    batches: Iterable[pa.RecordBatch], rank: Callable[[pa.RecordBatch], Ranks], scratch: Path
) -> Generator[pa.RecordBatch, None, None]:
    """All rows by their rank, those of one rank as they came; about `MOST` bytes of them are held at a time.

    Args:
        batches: of one schema.
        rank: of the rows of a batch; evenly spread, so that the files are of one size.
        scratch: a new folder for the files, in the vault; it is gone at the end.
    """
    remove(scratch)
    scratch.mkdir(parents=True, mode=0o700)
    try:
        ranked = (batch.append_column(_RANK, pa.array(rank(batch))) for batch in batches)
        yield from _sorted(ranked, scratch, _TOP - _BITS)
    finally:
        remove(scratch)


def _sorted(ranked: Iterable[pa.RecordBatch], folder: Path, shift: int) -> Iterator[pa.RecordBatch]:
    """Rows by their rank, of which all bits above are alike already; what is too large for memory is dealt again."""
    for name in _deal(ranked, folder, shift):
        path = folder / str(name)
        if path.stat().st_size > MOST and shift >= _BITS:
            again = folder / f"{name} again"
            again.mkdir(mode=0o700)
            yield from _sorted(_stream(path), again, shift - _BITS)
        else:
            table = pa.Table.from_batches(_stream(path))
            order = np.argsort(table.column(_RANK.name).to_numpy(), kind="stable")
            table = table.drop_columns([_RANK.name])
            for start in range(0, len(order), _ROWS):
                yield from table.take(order[start : start + _ROWS]).combine_chunks().to_batches()
        path.unlink()


def _stream(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(path) as file:
        yield from file


def _deal(ranked: Iterable[pa.RecordBatch], folder: Path, shift: int) -> list[int]:
    """Write each row into the file of some bits of its rank; the names of the files, in order."""
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    try:
        for batch in ranked:
            found = batch.column(_RANK.name).to_numpy()
            files = (found >> np.uint64(shift)) & np.uint64((1 << _BITS) - 1)
            for name in np.unique(files).tolist():
                if name not in writers:
                    writers[name] = pa.ipc.new_stream(folder / str(name), batch.schema, options=packed)
                writers[name].write_batch(batch.take(pa.array(np.flatnonzero(files == name))))
    finally:
        for writer in writers.values():
            writer.close()
    return sorted(writers)
