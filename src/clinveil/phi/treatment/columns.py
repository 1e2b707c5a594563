"""Columns of dates next to the notes: move them by the days of their patient, or refuse to keep
them unchanged.

A true date next to shifted notes discloses the offset of the patient.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from clinveil.core import InputError, UsageError
from clinveil.corpus import NOTE_ID, PATIENT_ID, TEXT, Corpus
from clinveil.phi.treatment.dates import parse, shifted_by
from clinveil.phi.treatment.policy import Policy, Treatment, tag

_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_FEW = 0.02  # share of values that are full dates by chance, such as codes
_ROLES = (NOTE_ID, PATIENT_ID, TEXT)


def moved(
    values: pa.Array, offsets: Sequence[timedelta], day_first: Sequence[bool | None]
) -> pa.Array:
    """Return a column of dates moved by the offset of each row. Text that is not a full date
    becomes a tag.

    Args:
        day_first: of each row, whether its numeric dates are read day first; None if unknown.

    Raises InputError for a column that is neither dates nor text.
    """
    kind = values.type
    days = [by.days for by in offsets]
    if pa.types.is_date32(kind):
        return pc.add(values.cast(pa.int32()), pa.array(days, pa.int32())).cast(kind)
    if pa.types.is_date64(kind) or pa.types.is_timestamp(kind):
        unit = "ms" if pa.types.is_date64(kind) else kind.unit
        steps = pa.array([day * _DAY[unit] for day in days], pa.int64())
        return pc.add(values.cast(pa.int64()), steps).cast(kind)
    if pa.types.is_integer(kind):
        texts = moved(values.cast(pa.string()), offsets, day_first).to_pylist()
        return pa.array(
            [None if text is None or not text.isdigit() else int(text) for text in texts], kind
        )
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"is {kind}, not dates", where="--shift", hint="pass a column of dates, times or text"
        )
    texts = [
        text and (shifted_by(by, text, day_first=order) or tag("DATE"))
        for text, by, order in zip(values.to_pylist(), offsets, day_first, strict=True)
    ]
    return pa.array(texts, kind)


def check_date_columns(corpus: Corpus, policy: Policy, shift: Collection[str]) -> None:
    """Check the kept columns of notes with shifted dates, on the first batch.

    Raises:
        UsageError: `--shift` under a policy that does not shift dates, or for a column without
            dates; a kept column of dates that is not moved.
    """
    if policy["DATE"] is not Treatment.SHIFT:
        if shift:
            hint = (
                "use a policy that shifts dates (identifiers.phi_profile=research), or omit --shift"
            )
            raise UsageError(f"shift: the policy ({policy.name}) does not shift dates", hint=hint)
        return
    columns = [name for name in corpus.columns.keep if name not in _ROLES]
    batch = next(iter(corpus.batches()), None) if columns else None
    if batch is None:
        return
    for name in columns:
        has_dates = _has_dates(batch.column(name))
        if name in shift and not has_dates and batch.column(name).null_count < batch.num_rows:
            raise UsageError(
                f"shift: column {name!r} has no full dates",
                hint=f"keep it unchanged (--keep {name})",
            )
        if name not in shift and has_dates:
            hint = f"move it with the notes (--shift {name}), or do not keep it"
            raise UsageError(
                f"column {name!r} has dates and would be kept next to shifted ones", hint=hint
            )


def _has_dates(values: pa.Array) -> bool:
    """Return whether a column has a type of dates, or text of which some are full dates.

    Few dates next to shifted notes disclose the offset as well as many. Numbers are dates only
    together.
    """
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    ):
        return False
    written = [
        str(value).strip()
        for value in values.to_pylist()
        if value is not None and str(value).strip()
    ]
    dates = sum(map(_is_date, written))
    if pa.types.is_integer(kind):
        return bool(dates) and dates == len(written)
    return dates > _FEW * len(written)


def _is_date(text: str) -> bool:
    day = text.split("T")[0].split(" ")[0] if text[:4].isdigit() and len(text) > 8 else text
    return parse(day) is not None


def of_rows(batch: pa.RecordBatch) -> Iterable[str]:
    """Yield the patient of each row; a note without one is a patient of its own."""
    pairs = zip(
        batch.column(NOTE_ID).to_pylist(), batch.column(PATIENT_ID).to_pylist(), strict=True
    )
    return (note if patient is None else patient for note, patient in pairs)
