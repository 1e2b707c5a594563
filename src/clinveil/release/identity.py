"""New ids for released notes and patients, and the crosswalk that leads back; the crosswalk stays in the vault."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

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
