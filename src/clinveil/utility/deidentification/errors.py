"""A private list of missed identifiers and false positives, with text of the notes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinveil.core.files import private_text
from clinveil.core.spans import Span
from clinveil.utility.deidentification.on_gold import GoldNote
from clinveil.utility.deidentification.score import NoteScore

AROUND = 40


class ErrorList:
    """Errors as lines of JSON: kind of error, note, offsets, label, text and context; the list is secret."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, note: GoldNote, done: NoteScore) -> None:
        """Add the errors of a note."""
        for error, span in _errors(note, done):
            around = (note.text[max(0, span.start - AROUND) : span.start], note.text[span.end : span.end + AROUND])
            line: dict[str, Any] = {"error": error, "note_id": note.note_id, "start": span.start, "end": span.end}
            line |= {"label": span.label, "text": note.text[span.start : span.end]}
            line |= {"before": around[0], "after": around[1], "detector": span.detector, "why": span.why}
            self._lines.append(json.dumps(line, ensure_ascii=False))

    def write(self, path: Path) -> int:
        """Write an owner-only file; return the number of errors."""
        private_text(path, "".join(line + "\n" for line in self._lines))
        return len(self._lines)


def _errors(note: GoldNote, done: NoteScore) -> Iterator[tuple[str, Span]]:
    for span, (_, hits) in zip(note.gold, done.gold, strict=True):
        if not hits.whole:
            yield "found in part" if hits.partly else "missed", span
    for span, detected in zip(note.found, done.found, strict=True):
        if not detected.right:
            yield "no identifier", span
