"""The append-only file of a reviewer's decisions. A step counts only after it is on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import locked, private_folder
from clinveil.phi.review.decisions import SCHEMA, Change, NoteDecisions, read_file


class DecisionLog:
    """Append steps, one line each, written and synced immediately. Steps can be reverted one by one.

    Attributes:
        notes: decisions so far, by note.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.notes: dict[str, NoteDecisions] = {}
        self._file, self._size = descriptor, size
        self._back: dict[str, list[Change]] = {}

    def of(self, note_id: str, text: str) -> NoteDecisions:
        """Return the decisions on a note whose text has this hash."""
        return self.notes.setdefault(note_id, NoteDecisions(text))

    def add(self, note_id: str, change: Change) -> None:
        """Write a step on a note known to `of`, then apply it. Raises OSError if the write fails."""
        self._write(note_id, change)
        self._take(note_id, change)

    def can_undo(self, note_id: str) -> bool:
        """Return whether a step on this note can be reverted."""
        return bool(self._back.get(note_id))

    def undo(self, note_id: str) -> Change | None:
        """Revert the last step on a note, including those of earlier sessions; return None if there is none."""
        if not self.can_undo(note_id):
            return None
        change = self._back[note_id][-1]
        self._write(note_id, change, undo=True)
        self._undone(note_id, change)
        return change

    def replay(self, note_id: str, text: str, change: Change, *, undo: bool) -> None:
        """Apply a step that is already in the file."""
        self.of(note_id, text)
        if undo and self.can_undo(note_id):
            self._undone(note_id, change)
        else:
            self._take(note_id, change)

    def _take(self, note_id: str, change: Change) -> None:
        self._back.setdefault(note_id, []).append(self.notes[note_id].apply(change))

    def _undone(self, note_id: str, change: Change) -> None:
        self._back[note_id].pop()
        self.notes[note_id].apply(change)

    def _write(self, note_id: str, change: Change, *, undo: bool = False) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"note": note_id, "text": self.notes[note_id].text, **change.as_line(), "at": now}
        try:
            self._size += append(self._file, line | {"undo": True} if undo else line)
        except OSError:
            os.ftruncate(self._file, self._size)  # remove a partial line
            raise


@contextmanager
def decision_log(path: Path, key: str, reviewer: str) -> Iterator[DecisionLog]:
    """Open a reviewer's file, new or existing, with a lock against a second session.

    Raises:
        InputError: not a decisions file, or a file of another run.
        UsageError: another session is open, or the file belongs to another reviewer.
    """
    private_folder(path.parent)
    with locked(path.with_suffix(".lock"), of=path.parent):
        if not path.exists() or not path.stat().st_size:
            _begin(path, key, reviewer)
        stored = read_file(path)
        if stored.key != key:
            hint = "move the file away, or review the run that it belongs to"
            raise InputError("contains decisions on another run", where=path.name, hint=hint)
        if stored.reviewer != reviewer:
            raise UsageError("contains decisions of another reviewer", where=path.name, hint="move the file away")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.ftruncate(descriptor, stored.size)  # drop a partial line of a killed session
            log = DecisionLog(descriptor, stored.size)
            for note_id, text, change, undo in stored.steps:
                log.replay(note_id, text, change, undo=undo)
            yield log
        finally:
            os.close(descriptor)


def _begin(path: Path, key: str, reviewer: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        append(descriptor, {"schema": SCHEMA, "key": key, "reviewer": reviewer})
    finally:
        os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # makes the new file name durable
    finally:
        os.close(folder)


def append(descriptor: int, line: dict[str, Any]) -> int:
    """Write a JSON line, sync it to disk, and return its length in bytes."""
    data = (json.dumps(line, ensure_ascii=True) + "\n").encode()
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])
    os.fsync(descriptor)
    return written
