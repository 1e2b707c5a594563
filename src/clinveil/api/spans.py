"""Convert spans between frames, lists of `Span`, mappings and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import pyarrow as pa

from clinveil.api.frames import arrow, native
from clinveil.core import InputError, Span
from clinveil.corpus import GoldSpans, Scheme, read_spans, spans_of

if TYPE_CHECKING:
    from clinveil.phi import DetectedText

Spans = Any
"""A file or folder; a frame of note_id, start, end, label; note id -> spans; or spans for each note
of a list.

Each span is a `Span` or (start, end, label), in code points.
"""
_KEYS = ("note_id", "start", "end", "label")
_FRAME = pa.schema(
    [
        ("note_id", pa.string()),
        *((name, pa.int64()) for name in ("start", "end")),
        *((name, pa.string()) for name in ("label", "detector")),
        ("score", pa.float64()),
        *((name, pa.string()) for name in ("why", "text")),
    ]
)


def triple(span: Any) -> Any:
    """Return (start, end, label) of a span; other values unchanged."""
    return (span.start, span.end, span.label) if isinstance(span, Span) else span


def given_spans(spans: Spans, name: str, scheme: Scheme | None = None) -> GoldSpans:
    """Return spans of any supported type, with a name for messages. Raises InputError for other
    values.
    """
    if isinstance(spans, str | Path):
        return read_spans(spans, scheme)
    if nw.dependencies.is_into_dataframe(spans):
        return spans_of(_by_note(arrow(spans), name), name)
    if isinstance(spans, Sequence):
        spans = {str(index): note_spans for index, note_spans in enumerate(spans)}
    if not isinstance(spans, Mapping) or any(
        isinstance(note_spans, str) for note_spans in spans.values()
    ):
        hint = "pass {note_id: [(start, end, label), …]}"
        raise InputError("spans have the wrong shape", where=name, hint=hint)
    return spans_of(
        {note_id: [triple(span) for span in of_note] for note_id, of_note in spans.items()}, name
    )


def _by_note(table: pa.Table, name: str) -> Mapping[str, list[tuple[int, int, str]]]:
    if missing := [key for key in _KEYS if key not in table.column_names]:
        hint = f"pass a frame with the columns {', '.join(_KEYS)}"
        raise InputError(f"the column {missing[0]} is missing", where=name, hint=hint)
    by_note: dict[str, list[tuple[int, int, str]]] = {}
    for note_id, *span in zip(*(table.column(key).to_pylist() for key in _KEYS), strict=True):
        by_note.setdefault(str(note_id), []).append((span[0], span[1], span[2]))
    return by_note


def spans_like(notes: Any, identifiers: Iterable[DetectedText]) -> Any:
    """Return detected spans in the caller's type: a frame, a table for a path, one list per text
    for a list.
    """
    if (
        isinstance(notes, str | Path)
        or hasattr(notes, "batches")
        or nw.dependencies.is_into_dataframe(notes)
    ):
        names = ("start", "end", "label", "detector", "score", "why")
        lines = [
            {name: getattr(o.span, name) for name in names} | {"note_id": o.note_id, "text": o.text}
            for o in identifiers
        ]
        table = pa.Table.from_pylist(lines, schema=_FRAME)
        return native(table, notes) if nw.dependencies.is_into_dataframe(notes) else table
    by_text: list[list[Span]] = [[] for _ in notes]  # the ids are the positions
    for identifier in identifiers:
        by_text[int(identifier.note_id)].append(identifier.span)
    return by_text
