"""Reviewers' decisions on the spans of notes, in the append-only files of `clinveil review`.

A file contains one JSON line per step. The first line contains the reviewer and the key of the text
hashes; every other line contains the note id, a keyed hash of its text and verdicts on spans. The
last verdict on a span applies. A step counts only after it is on disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from clinveil.core import (
    LABELS,
    InputError,
    InputWarning,
    Key,
    Span,
    UsageError,
    locked,
    private_folder,
)
from clinveil.corpus import Corpus, rows
from clinveil.phi.detection.finder import united

SCHEMA = "clinveil.decisions/1"
REVIEW = "review"
"""Detector name of a span added by a reviewer."""
AGAIN = "pass the reviewed notes, or review these notes with clinveil review"
_HINT = "pass a file written by clinveil review"
_MOST = 1 << 40
OPEN = "open"

FOLDER = "review"
"""Folder of the decisions in a vault, or in the folder of `clinveil validate`."""

Offsets = tuple[int, int]


class Kept(NamedTuple):
    """Identifier confirmed by a reviewer; offsets and label may differ from the detected span."""

    start: int
    end: int
    label: str


Verdict = Kept | None
"""Verdict on a span: the confirmed identifier, or None for a false positive. A span without a
verdict is unchanged.
"""


class Change(NamedTuple):
    """One step of a review: verdicts on spans (`OPEN` removes one), and whether the note is now
    complete.
    """

    verdicts: Mapping[Offsets, Verdict | str]
    done: bool | None = None

    def as_line(self) -> dict[str, Any]:
        """Return its fields in the file."""
        line: dict[str, Any] = {"set": []}
        for offsets, verdict in self.verdicts.items():
            kept = {"span": list(verdict)} if isinstance(verdict, Kept) else {}
            choice = "keep" if kept else "drop" if verdict is None else OPEN
            line["set"].append({"place": list(offsets), "verdict": choice, **kept})
        return line if self.done is None else line | {"done": self.done}

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Change:
        """Return the change of a line. Raises ValueError, TypeError or KeyError for an invalid
        one.
        """
        done = line.get("done")
        if done is not None and not isinstance(done, bool):
            raise ValueError
        return cls(dict(_read_verdict(item) for item in line["set"]), done)


@dataclass
class NoteDecisions:
    """Decisions on one note.

    Attributes:
        text: keyed hash of the reviewed text.
        verdicts: by the offsets of the detected span, or of a span as first marked by the reviewer.
        done: whether the review of the note is complete.
        steps: the steps that led here; the last one can be reverted.
    """

    text: str
    verdicts: dict[Offsets, Verdict] = field(default_factory=dict, repr=False)
    done: bool = False
    steps: list[Change] = field(default_factory=list, repr=False)

    def apply(self, change: Change) -> None:
        """Take a step."""
        self.steps.append(change)
        for offsets, verdict in change.verdicts.items():
            if isinstance(verdict, str):
                self.verdicts.pop(offsets, None)
            else:
                self.verdicts[offsets] = verdict
        self.done = self.done if change.done is None else change.done

    def undo(self) -> None:
        """Revert the last step, if there is one."""
        steps = self.steps[:-1]
        self.verdicts = {}
        self.done = False
        self.steps = []
        for step in steps:
            self.apply(step)


def _read_verdict(item: Mapping[str, Any]) -> tuple[Offsets, Verdict | str]:
    start, end = item["place"]
    verdict: Verdict | str = {"drop": None, OPEN: OPEN, "keep": OPEN}[item["verdict"]]
    if item["verdict"] == "keep":
        first, last, label = item["span"]
        verdict = Kept(first, last, label)
        _check(verdict.start, verdict.end)
        if verdict.label not in LABELS:
            raise ValueError
    _check(start, end)
    return (start, end), verdict


def _check(start: Any, end: Any) -> None:
    if type(start) is not int or type(end) is not int or not 0 <= start < end < _MOST:
        raise ValueError


def hash_key(key: Key) -> str:
    """Return the key of the text hashes in hex; it is the same for all reviewers of a run."""
    return key.subkey("decisions").hex()


def text_hash(key: str, text: str) -> str:
    """Return the keyed hash of a note's text in hex."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16, key=bytes.fromhex(key)).hexdigest()


def decisions_of(vault: Path, reviewer: str) -> Path:
    """Return the path of a reviewer's decisions."""
    return vault / FOLDER / f"{reviewer}.jsonl"


class DecisionFile(NamedTuple):
    """Contents of a file of decisions: its head, the decisions by note id, and the size of its
    complete lines.
    """

    key: str
    reviewer: str
    notes: dict[str, NoteDecisions]
    size: int


def read_file(path: Path) -> DecisionFile:
    """Read a file of decisions; an incomplete last line is ignored.

    Raises InputError, with the line number, if the file is invalid.
    """
    try:
        data = path.read_bytes()
    except OSError:
        raise InputError(
            "cannot be read", where=path.name, hint="pass a file of OUT.vault/review"
        ) from None
    *lines, rest = data.split(b"\n")
    notes: dict[str, NoteDecisions] = {}
    for number, line in enumerate(lines, 1):
        try:
            fields = json.loads(line)
            if number > 1:
                note = notes.setdefault(_string(fields["note"]), NoteDecisions(""))
                note.text = _string(fields["text"])
                if fields.get("undo"):
                    note.undo()
                else:
                    note.apply(Change.of_line(fields))
                continue
            key = fields["key"]
            reviewer = _string(fields["reviewer"])
            if fields["schema"] != SCHEMA or len(bytes.fromhex(key)) != 32:
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            message = (
                "is not a file of decisions" if number == 1 else f"line {number} is not a decision"
            )
            raise InputError(message, where=path.name, hint=_HINT) from None
    if not lines:
        raise InputError("is not a file of decisions", where=path.name, hint=_HINT)
    return DecisionFile(key, reviewer, notes, len(data) - len(rest))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


class ReviewedNote(Protocol):
    """Corrections of one note by one reviewer."""

    @property
    def decided(self) -> Mapping[Offsets, Verdict]:
        """The verdicts as the reviewer gave them."""
        ...

    def matches(self, text: str) -> bool:
        """Return whether a note has the reviewed text."""
        ...

    def verdicts(self, text: str, spans: Sequence[Span]) -> Mapping[Offsets, Verdict]:
        """Return the verdicts to apply to the detected spans of the note."""
        ...


@dataclass(frozen=True)
class DecidedNote:
    """Decisions of one reviewer on a note of a `clinveil deidentify` run.

    Attributes:
        key: of the text hash.
    """

    key: str
    decisions: NoteDecisions

    @property
    def decided(self) -> Mapping[Offsets, Verdict]:
        """The verdicts as the reviewer gave them."""
        return self.decisions.verdicts

    def matches(self, text: str) -> bool:
        """Return whether a note has the reviewed text."""
        ends = [verdict.end for verdict in self.decided.values() if verdict is not None]
        return (
            max(ends, default=0) <= len(text) and text_hash(self.key, text) == self.decisions.text
        )

    def verdicts(self, text: str, spans: Sequence[Span]) -> Mapping[Offsets, Verdict]:
        """Return the verdicts as the reviewer gave them."""
        return self.decided


class Decisions:
    """Decisions of one or several reviewers, by note id; a callable for `Finder.revise`.

    A span that any reviewer confirms is treated as an identifier, whatever the others decided.
    """

    def __init__(self, notes: Mapping[str, Sequence[ReviewedNote]]) -> None:
        self._by_note = notes

    @classmethod
    def read(cls, *paths: Path) -> Decisions:
        """Read decisions on notes from files. Raises InputError for an invalid file."""
        return cls(cls.of_files(read_file(path) for path in paths))

    @staticmethod
    def of_files(files: Iterable[DecisionFile]) -> dict[str, list[ReviewedNote]]:
        """Return the decisions in files, by note id."""
        by_note: dict[str, list[ReviewedNote]] = {}
        for file in files:
            for note_id, note in file.notes.items():
                by_note.setdefault(note_id, []).append(DecidedNote(file.key, note))
        return by_note

    def __len__(self) -> int:
        return len(self._by_note)

    def __call__(self, note_id: str, text: str, spans: list[Span]) -> list[Span]:
        """Return the spans of a note after the decisions. Raises UsageError if its text has changed
        since.
        """
        reviewed = self._by_note.get(note_id)
        if reviewed is None:
            return spans
        if not all(one.matches(text) for one in reviewed):
            raise UsageError("the note has changed since the review", hint=AGAIN)
        return revised(spans, *(one.verdicts(text, spans) for one in reviewed))

    def rejected(self, note_id: str) -> list[Offsets]:
        """Return the ranges of a note that a reviewer rejected and none confirmed."""
        decided = [one.decided for one in self._by_note.get(note_id, ())]
        confirmed = {
            (verdict.start, verdict.end)
            for verdicts in decided
            for verdict in verdicts.values()
            if verdict
        }
        dropped = {
            offsets
            for verdicts in decided
            for offsets, verdict in verdicts.items()
            if verdict is None
        }
        return sorted(dropped - confirmed)

    def check_corpus(self, corpus: Corpus) -> None:
        """Check that a corpus contains the reviewed notes.

        Raises UsageError, with counts, if some have changed or none is present. Warns with
        InputWarning if only some of them are present.
        """
        unchanged = [
            all(one.matches(note.text) for one in self._by_note[note.note_id])
            for note in rows(corpus)
            if note.note_id in self._by_note
        ]
        missing = len(self) - len(unchanged)
        changed = unchanged.count(False)
        if changed:
            message = (
                f"{changed} of {len(self)} notes with decisions have another text than the"
                " reviewed one"
            )
            raise UsageError(message, where="--reviewed", hint=AGAIN)
        if missing and not unchanged:
            raise UsageError(
                f"none of the {len(self)} notes with decisions is here",
                where="--reviewed",
                hint=AGAIN,
            )
        if missing:
            message = f"--reviewed: {missing} of {len(self)} notes with decisions are not here"
            warnings.warn(message, InputWarning, stacklevel=2)


def refuse_overlaps(file: DecisionFile, path: Path) -> None:
    """Raise UsageError if confirmed identifiers of a note overlap in a file of decisions."""
    overlapping = 0
    for note in file.notes.values():
        kept = sorted(verdict for verdict in note.verdicts.values() if verdict is not None)
        overlapping += any(second.start < first.end for first, second in pairwise(kept))
    if overlapping:
        raise UsageError(
            f"decisions overlap in {overlapping} of {len(file.notes)} notes",
            where=path.name,
            hint="correct them: clinveil review OUT",
        )


def revised(spans: Iterable[Span], *decided: Mapping[Offsets, Verdict]) -> list[Span]:
    """Return the spans after the verdicts of one or several reviewers, sorted, without overlaps.

    A detected span is dropped only if verdicts cover every character of it: rejected, or part of a
    confirmed or corrected identifier.
    """
    kept = {verdict for verdicts in decided for verdict in verdicts.values() if verdict is not None}
    reviewed = _merged(
        [
            *(offsets for verdicts in decided for offsets in verdicts),
            *((k.start, k.end) for k in kept),
        ]
    )
    detected = {Kept(span.start, span.end, span.label): span for span in spans}
    unreviewed = (
        s for s in detected.values() if not any(a <= s.start and s.end <= b for a, b in reviewed)
    )
    confirmed = (
        detected.get(keep) or Span(keep.start, keep.end, keep.label, REVIEW) for keep in kept
    )
    return united([*confirmed, *unreviewed])


def _merged(intervals: Iterable[Offsets]) -> list[Offsets]:
    """Return the union of half-open intervals as sorted, disjoint intervals."""
    merged: list[Offsets] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            start = merged[-1][0]
            end = max(merged.pop()[1], end)
        merged.append((start, end))
    return merged


class DecisionLog:
    """Append steps, one line each, written and synced immediately. Steps can be reverted one by
    one.

    Attributes:
        notes: decisions so far, by note, including those of earlier sessions.
    """

    def __init__(self, descriptor: int, stored: DecisionFile) -> None:
        self.notes = stored.notes
        self._size = stored.size
        self._file = descriptor

    def of(self, note_id: str, text: str) -> NoteDecisions:
        """Return the decisions on a note with this hash of its text."""
        return self.notes.setdefault(note_id, NoteDecisions(text))

    def add(self, note_id: str, change: Change) -> None:
        """Write a step on a note known to `of`, then apply it. Raises OSError if the write
        fails.
        """
        self._write(note_id, change.as_line())
        self.notes[note_id].apply(change)

    def undo(self, note_id: str) -> None:
        """Revert the last step on a note known to `of`, if there is one. Raises OSError if the
        write fails.
        """
        if self.notes[note_id].steps:
            self._write(note_id, {"undo": True})
            self.notes[note_id].undo()

    def _write(self, note_id: str, fields: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            self._size += append(
                self._file, {"note": note_id, "text": self.notes[note_id].text, **fields, "at": now}
            )
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
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if not os.fstat(descriptor).st_size:
                append(descriptor, {"schema": SCHEMA, "key": key, "reviewer": reviewer})
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)  # makes the name of the new file durable
                finally:
                    os.close(folder)
            stored = read_file(path)
            if stored.key != key:
                hint = "move the file away, or review the run that it belongs to"
                raise InputError("contains decisions on another run", where=path.name, hint=hint)
            if stored.reviewer != reviewer:
                raise UsageError(
                    "contains decisions of another reviewer",
                    where=path.name,
                    hint="move the file away",
                )
            os.ftruncate(descriptor, stored.size)  # drop a partial line of a killed session
            yield DecisionLog(descriptor, stored)
        finally:
            os.close(descriptor)


def append(descriptor: int, line: dict[str, Any]) -> int:
    """Write a JSON line, sync it to disk, and return its length in bytes."""
    data = (json.dumps(line, ensure_ascii=True) + "\n").encode()
    written = 0
    while written < len(data):
        written += os.write(descriptor, data[written:])
    os.fsync(descriptor)
    return written
