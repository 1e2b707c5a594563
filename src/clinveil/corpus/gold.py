"""Gold spans of notes: `spans.jsonl`, as `clinveil generate` and `clinveil deidentify --spans` write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.spans import Span


def read_spans(path: Path) -> dict[str, list[Span]]:
    """The spans of each note, sorted: a line is a JSON object of note_id, start, end and label; offsets in code points.

    Raises InputError with the number of the first line that is no such object, or for an unreadable file.
    """
    found: dict[str, list[Span]] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    note_id, span = _span(line, f"{path.name}, line {number}")
                    found.setdefault(note_id, []).append(span)
    except (OSError, UnicodeDecodeError):
        raise InputError("cannot be read as UTF-8 text", where=path.name) from None
    return {note_id: sorted(spans) for note_id, spans in found.items()}


def _span(line: str, where: str) -> tuple[str, Span]:
    remedy = "a line is a JSON object of note_id, start, end, label"
    try:
        said: Any = json.loads(line)
        place = (said["start"], said["end"])
        if not all(type(offset) is int for offset in place) or not isinstance(said["note_id"], str):
            raise TypeError
        return said["note_id"], Span(*place, str(said["label"]))
    except InputError:
        raise InputError("holds a span that is empty, negative or of an unknown label", where=where) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError("is no span", where=where, remedy=remedy) from None
