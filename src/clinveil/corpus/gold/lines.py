"""Gold spans as JSON lines: `{"note_id": …, "start": …, "end": …, "label": …}`; other keys are ignored.

A line with only a note_id records a note that was annotated and has no spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.files import private_text
from clinveil.core.spans import Span
from clinveil.corpus.gold.marks import Mark, Offsets, offset_map
from clinveil.corpus.streams import ByteReader

_SHAPE = 'write one {"note_id": …, "start": …, "end": …, "label": …} per line'


def read_lines(path: Path) -> Iterator[tuple[str, Mark | None]]:
    """Yield (note id, mark) for each line; gzip and zstd by name. Raises InputError with the line number."""
    with ByteReader(path) as stream:
        data = b""
        while part := stream.read():
            data += part
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield _mark(line, f"{path.name}, line {number}")


def _mark(line: bytes, where: str) -> tuple[str, Mark | None]:
    try:
        record: Any = json.loads(line)
        note_id = record["note_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("not a JSON object with a note_id", where=where, hint=_SHAPE) from None
    note_id = str(note_id) if isinstance(note_id, int) and not isinstance(note_id, bool) else note_id
    if isinstance(note_id, str) and not {"start", "end", "label"} & record.keys():
        return note_id, None
    start, end, label, text = (record.get(key) for key in ("start", "end", "label", "text"))
    numbers = all(isinstance(offset, int) and not isinstance(offset, bool) for offset in (start, end))
    if not (numbers and isinstance(label, str) and isinstance(note_id, str)):
        raise InputError("a span needs a note_id, two whole numbers and a label", where=where, hint=_SHAPE)
    return note_id, Mark(start, end, label, where, text if isinstance(text, str) else None)


def write_lines(path: Path, notes: Iterable[tuple[str, str, Sequence[Span]]], offsets: Offsets) -> None:
    """Write (note id, text, spans) without any text of the notes; a note without spans gets one line."""
    private_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(notes, offsets)))


def _lines(notes: Iterable[tuple[str, str, Sequence[Span]]], offsets: Offsets) -> Iterator[Mapping[str, Any]]:
    for note_id, text, spans in notes:
        positions = offset_map(text, offsets)
        if not spans:
            yield {"note_id": note_id}
        for span in spans:
            start, end = positions[span.start], positions[span.end]
            yield {"note_id": note_id, "start": start, "end": end, "label": span.label}
