"""New ids of notes and patients, and new names of part files: keyed functions of those of the
source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from clinveil.core import Key
from clinveil.corpus import NOTE_ID, PATIENT_ID


class NewIds:
    """Assigns pseudo-random ids to notes and patients.

    An id is 80 bits of a keyed pseudo-random function: it does not depend on row order, and ids
    collide with probability n²/2^81. Each release has a new key, so two releases of the same notes
    share no id.

    Attributes:
        note, patient: return the new id of a source id.

    Args:
        patients: whether the source has patient ids; otherwise the note id is used for both.
    """

    def __init__(self, key: Key, *, patients: bool) -> None:
        self.note = _namer(key, "note id")
        self.patient = _namer(key, "patient id") if patients else self.note

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with new ids in its first columns, note id and patient id."""
        columns = ((self.note, batch.column(NOTE_ID)), (self.patient, batch.column(PATIENT_ID)))
        new = [
            pa.array([None if old is None else name(old) for old in ids.to_pylist()], pa.string())
            for name, ids in columns
        ]
        return pa.record_batch([*new, *batch.columns[2:]], schema=batch.schema)


def _namer(key: Key, purpose: str) -> Callable[[str], str]:
    @lru_cache(maxsize=1 << 16)
    def name(source: str) -> str:
        stream = key.stream(purpose, source)
        return f"{stream.uint64():016x}{stream.below(1 << 16):04x}"

    return name


def part_name(key: Key, source: str, suffix: str) -> str:
    """Return the new name of a part file; the order of the new names says nothing about the order
    of the parts.
    """
    stream = key.stream("part name", source)
    return f"part-{stream.uint64():016x}{suffix}"
