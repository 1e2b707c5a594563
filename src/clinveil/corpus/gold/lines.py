"""Gold spans as JSON lines: `{"note_id": …, "start": …, "end": …, "label": …}`; other keys are passed over.

A line with a note_id alone says that somebody looked at the note and found nothing.
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

_SHAPE = 'one {"note_id": …, "start": …, "end": …, "label": …} a line'


def read_lines(path: Path) -> Iterator[tuple[str, Mark | None]]:
    """(note id, mark) for each line, gzip and zstd by name. Raises InputError with the line."""
    with ByteReader(path) as stream:
        data = b""
        while part := stream.read():
            data += part
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield _mark(line, f"{path.name}, line {number}")


def _mark(line: bytes, where: str) -> tuple[str, Mark | None]:
    try:
        found: Any = json.loads(line)
        note_id = found["note_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("no JSON object with a note_id", where=where, hint=_SHAPE) from None
    note_id = str(note_id) if isinstance(note_id, int) and not isinstance(note_id, bool) else note_id
    if isinstance(note_id, str) and not {"start", "end", "label"} & found.keys():
        return note_id, None
    start, end, label, said = (found.get(key) for key in ("start", "end", "label", "text"))
    numbers = all(isinstance(place, int) and not isinstance(place, bool) for place in (start, end))
    if not (numbers and isinstance(label, str) and isinstance(note_id, str)):
        raise InputError("a span without a note_id, two whole numbers or a label", where=where, hint=_SHAPE)
    return note_id, Mark(start, end, label, where, said if isinstance(said, str) else None)


def write_lines(path: Path, notes: Iterable[tuple[str, str, Sequence[Span]]], offsets: Offsets) -> None:
    """Write (note id, text, spans) without any text of the notes; a note without spans has a line of its own."""
    private_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _written(notes, offsets)))


def _written(notes: Iterable[tuple[str, str, Sequence[Span]]], offsets: Offsets) -> Iterator[Mapping[str, Any]]:
    for note_id, text, spans in notes:
        places = offset_map(text, offsets)
        if not spans:
            yield {"note_id": note_id}
        for span in spans:
            start, end = places[span.start], places[span.end]
            yield {"note_id": note_id, "start": start, "end": end, "label": span.label}
