"""New ids for released notes and patients, the crosswalk back to source ids, and sorting by new id.

The crosswalk stays in the vault. A release is sorted by its new ids. These are a keyed function of
the source ids, so the order discloses nothing about the source order, does not group a patient's
notes, and does not depend on batches, workers or source order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from clinveil.core import InputError, Key, remove
from clinveil.corpus import NOTE_ID, PATIENT_ID, HeldOutPatients, SourceIds, positions_of
from clinveil.phi import NewIds

IDS = ("source_note_id", "source_patient_id", "note_id", "patient_id")
CROSSWALK = pa.schema([(name, pa.string()) for name in IDS])


class Renamer:
    """Assigns new ids, and returns the crosswalk rows of each batch."""

    def __init__(self, key: Key, *, patients: bool) -> None:
        """`patients`: whether the source has patient ids; otherwise the note id is used for
        both.
        """
        self._new_ids = NewIds(key, patients=patients)

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the batch with new ids, and its crosswalk rows."""
        renamed = self._new_ids(batch)
        sides = [one.column(name) for one in (batch, renamed) for name in (NOTE_ID, PATIENT_ID)]
        return renamed, pa.record_batch(sides, schema=CROSSWALK)


class TableWriter:
    """A private Parquet file, created with its first batch. Use it in a `with` statement."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if self._file is None:
            self._file = pq.ParquetWriter(self.path, batch.schema, compression="zstd")
        self._file.write_batch(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
            self.path.chmod(0o600)


@dataclass(frozen=True)
class VaultTable:
    """The crosswalk in a vault: a file, or a folder with one file per part; in source order."""

    path: Path

    @property
    def parts(self) -> tuple[VaultTable, ...]:
        """The tables of the parts; empty for a single file."""
        return tuple(map(VaultTable, sorted(self.path.iterdir()))) if self.path.is_dir() else ()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows; none if the table is missing."""
        for part in self.parts or ([self] if self.path.exists() else []):
            with pq.ParquetFile(part.path) as file:
                yield from file.iter_batches()


def source_notes(vault: Path) -> dict[str, str]:
    """Return the source note id by released note id. Raises InputError if the vault has no
    crosswalk.
    """
    try:
        notes, _ = id_maps(VaultTable(vault / "crosswalk.parquet").batches())
    except (OSError, ValueError, pa.ArrowException):
        notes = {}
    if not notes:
        hint = "pass the vault folder of this release, OUT/vault"
        raise InputError("contains no crosswalk", where=vault.name, hint=hint)
    return notes


def source_ids(vault: Path) -> SourceIds:
    """Return the source note ids with the test patients of the run; synthetic notes have test
    patients only.

    Raises InputError if the vault has neither.
    """
    split = HeldOutPatients.read(vault)
    written = split is not None and not (vault / "crosswalk.parquet").exists()
    ids = SourceIds() if written else SourceIds(source_notes(vault))
    ids.split = split
    return ids


def id_maps(crosswalk: Iterator[pa.RecordBatch]) -> tuple[dict[str, str], dict[str, str]]:
    """Return source ids by released ids, for notes and for patients."""
    notes: dict[str, str] = {}
    patients: dict[str, str] = {}
    for batch in crosswalk:
        source_note, source_patient, note, patient = (
            column.to_pylist() for column in batch.columns
        )
        notes.update(zip(note, source_note, strict=True))
        patients.update(zip(patient, source_patient, strict=True))
    return notes, patients


Ranks = NDArray[np.uint64]
# bits of a rank used per level (64 files), and bits of a rank
_BITS = 6
_TOP = 64
_ROWS = 1024
_RANK = pa.field(" rank", pa.uint64())  # cannot clash with a column name
MOST = 16 << 20  # compressed bytes of a file that is sorted in memory


def by_new_id(batch: pa.RecordBatch) -> Ranks:
    """Return the first 64 bits of each new note id; ids of another form come last."""

    def first_bits(note_id: str) -> int:
        try:
            return int(note_id[:16], 16)
        except ValueError:
            return 2**64 - 1

    return np.array(
        [first_bits(note_id) for note_id in batch.column(NOTE_ID).to_pylist()], dtype=np.uint64
    )


def by_source(crosswalk: Iterable[pa.RecordBatch]) -> Callable[[pa.RecordBatch], Ranks]:
    """Return a rank function that sorts released notes as the crosswalk; unknown ids come last. 16
    bytes per note.
    """
    ids = np.concatenate([np.zeros(0, dtype=np.uint64), *map(by_new_id, crosswalk)])
    order = np.argsort(ids, kind="stable")
    ids, step = np.sort(ids), np.uint64((2**64 - 1) // (ids.size + 1))

    def ranks(batch: pa.RecordBatch) -> Ranks:
        return (
            np.append(order, ids.size)[positions_of(ids, by_new_id(batch))].astype(np.uint64) * step
        )

    return ranks


def reordered(
    batches: Iterable[pa.RecordBatch], rank: Callable[[pa.RecordBatch], Ranks], scratch: Path
) -> Generator[pa.RecordBatch, None, None]:
    """Sort all rows by rank, stably, with about `MOST` bytes in memory.

    Args:
        batches: of one schema.
        rank: returns the ranks of a batch; uniformly distributed, so that files have similar sizes.
        scratch: new folder for the files, in the vault; removed at the end.
    """
    remove(scratch)
    scratch.mkdir(parents=True, mode=0o700)
    try:
        ranked = (batch.append_column(_RANK, pa.array(rank(batch))) for batch in batches)
        yield from _sorted(ranked, scratch, _TOP - _BITS)
    finally:
        remove(scratch)


def _sorted(ranked: Iterable[pa.RecordBatch], folder: Path, shift: int) -> Iterator[pa.RecordBatch]:
    """Yield rows sorted by rank, given equal bits above `shift`; split again what exceeds the
    memory limit.
    """
    for name in _partition(ranked, folder, shift):
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


def _partition(ranked: Iterable[pa.RecordBatch], folder: Path, shift: int) -> list[int]:
    """Write each row into the file of its rank bits; return the file names, sorted."""
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    try:
        for batch in ranked:
            ranks = batch.column(_RANK.name).to_numpy()
            files = (ranks >> np.uint64(shift)) & np.uint64((1 << _BITS) - 1)
            for name in np.unique(files).tolist():
                if name not in writers:
                    writers[name] = pa.ipc.new_stream(
                        folder / str(name), batch.schema, options=packed
                    )
                writers[name].write_batch(batch.take(pa.array(np.flatnonzero(files == name))))
    finally:
        for writer in writers.values():
            writer.close()
    return sorted(writers)
