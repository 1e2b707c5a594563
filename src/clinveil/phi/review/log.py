"""The file of a reviewer's decisions while it grows: each step is on disk before it counts."""

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
from clinveil.phi.decisions import SCHEMA, Change, NoteDecisions, read_file


class DecisionLog:
    """Steps are added at the end, each one line, written and synced at once; steps can be taken back one by one.

    Attributes:
        notes: what was decided so far, by note.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.notes: dict[str, NoteDecisions] = {}
        self._file, self._size = descriptor, size
        self._back: dict[str, list[Change]] = {}

    def of(self, note_id: str, text: str) -> NoteDecisions:
        """What was decided on a note whose text has this hash."""
        return self.notes.setdefault(note_id, NoteDecisions(text))

    def add(self, note_id: str, change: Change) -> None:
        """Write a step on a note that `of` knows, then let it count. Raises OSError where the disk takes it not."""
        self._write(note_id, change)
        self._take(note_id, change)

    def can_undo(self, note_id: str) -> bool:
        """Whether a step on this note can be taken back."""
        return bool(self._back.get(note_id))

    def undo(self, note_id: str) -> Change | None:
        """Take the last step on a note back, of an earlier session too; None where there is none."""
        if not self.can_undo(note_id):
            return None
        change = self._back[note_id][-1]
        self._write(note_id, change, undo=True)
        self._undone(note_id, change)
        return change

    def replay(self, note_id: str, text: str, change: Change, *, undo: bool) -> None:
        """Let a step count that stands in the file already."""
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
            os.ftruncate(self._file, self._size)  # no half line before the next one
            raise


@contextmanager
def decision_log(path: Path, key: str, reviewer: str) -> Iterator[DecisionLog]:
    """Open a reviewer's file, new or gone on with, against a second page on the same one.

    Raises:
        InputError: a file that is none, or is of another run. UsageError: somebody is at work on it.
    """
    private_folder(path.parent)
    with locked(path.with_suffix(".lock"), of=path.parent):
        if not path.exists() or not path.stat().st_size:
            _begin(path, key, reviewer)
        said = read_file(path)
        if said.key != key:
            hint = "move it away, or review the run that it is of"
            raise InputError("holds the decisions on another run", where=path.name, hint=hint)
        if said.reviewer != reviewer:
            raise UsageError("holds the decisions of another reviewer", where=path.name, hint="move it away")
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.ftruncate(descriptor, said.size)  # what a killed run had half written was never said to be saved
            log = DecisionLog(descriptor, said.size)
            for note_id, text, change, undo in said.steps:
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
        os.fsync(folder)  # or a crash could lose the name of the new file
    finally:
        os.close(folder)


def append(descriptor: int, line: dict[str, Any]) -> int:
    """Write a JSON line and wait until the disk has it; how many bytes it took."""
    data = (json.dumps(line, ensure_ascii=True) + "\n").encode()
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])
    os.fsync(descriptor)
    return written
