"""A reviewer's decisions on the spans of notes: read from a file of `clinveil review`, and given to `Finder.revise`.

The file grows by one JSON line for each decision. Its first line names the reviewer and the key of the hashes; every
other one the note, a keyed hash of its text, and what became of places in it. The last word on a place counts.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from clinveil.core.errors import InputError, InputWarning
from clinveil.core.keys import Key
from clinveil.core.spans import LABELS, Span
from clinveil.corpus.corpus import Corpus, rows
from clinveil.phi.policy import united

SCHEMA = "clinveil.decisions/1"
REVIEW = "review"
"""The detector of a span that a reviewer made."""
AGAIN = "name the notes that were reviewed, or review these: clinveil review"
_MOST = 1 << 40

Place = tuple[int, int]


class Kept(NamedTuple):
    """What a reviewer takes for an identifier: its place, which may be another than was found, and its label."""

    start: int
    end: int
    label: str


Verdict = Kept | None
"""Of a place: an identifier, or (None) nothing of the kind. A place without one is open, and stays as it was found."""


@dataclass
class NoteDecisions:
    """What was decided on one note.

    Attributes:
        text: the keyed hash of the text that the reviewer saw.
        verdicts: by the place that was found, or that the reviewer marked first.
        done: whether the reviewer is through with the note.
    """

    text: str
    verdicts: dict[Place, Verdict] = field(default_factory=dict, repr=False)
    done: bool = False

    def take(self, change: Change) -> Change:
        """Let a change count; what it returns takes it back."""
        back: dict[Place, Verdict | str] = {place: self.verdicts.get(place, OPEN) for place in change.verdicts}
        undone = Change(back, None if change.done is None else self.done)
        for place, verdict in change.verdicts.items():
            if isinstance(verdict, str):
                self.verdicts.pop(place, None)
            else:
                self.verdicts[place] = verdict
        self.done = self.done if change.done is None else change.done
        return undone


OPEN = "open"


class Change(NamedTuple):
    """One step of a reviewer: verdicts on places (`OPEN` takes one back), and whether the note is done now."""

    verdicts: Mapping[Place, Verdict | str]
    done: bool | None = None

    def as_line(self) -> dict[str, Any]:
        """The fields that stand for it in the file."""
        line: dict[str, Any] = {"set": [_written(place, verdict) for place, verdict in self.verdicts.items()]}
        return line if self.done is None else line | {"done": self.done}

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Change:
        """The change of a line. Raises ValueError, TypeError or KeyError for what is none."""
        done = line.get("done")
        if done is not None and not isinstance(done, bool):
            raise ValueError
        return cls(dict(_read_verdict(item) for item in line["set"]), done)


def _written(place: Place, verdict: Verdict | str) -> dict[str, Any]:
    if isinstance(verdict, Kept):
        return {"place": list(place), "verdict": "keep", "span": list(verdict)}
    return {"place": list(place), "verdict": "drop" if verdict is None else OPEN}


def _read_verdict(item: Mapping[str, Any]) -> tuple[Place, Verdict | str]:
    start, end = item["place"]
    verdict: Verdict | str = {"drop": None, OPEN: OPEN, "keep": OPEN}[item["verdict"]]
    if item["verdict"] == "keep":
        verdict = Kept(*item["span"])
        _check(verdict.start, verdict.end)
        if verdict.label not in LABELS:
            raise ValueError
    _check(start, end)
    return (start, end), verdict


def _check(start: Any, end: Any) -> None:
    if type(start) is not int or type(end) is not int or not 0 <= start < end < _MOST:
        raise ValueError


def hash_key(key: Key) -> str:
    """The key of the hashes of decisions, in hex: all reviewers of one run have the same."""
    return key.subkey("decisions").hex()


def text_hash(key: str, text: str) -> str:
    """The keyed hash of a note's text, in hex."""
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16, key=bytes.fromhex(key)).hexdigest()


class DecisionFile(NamedTuple):
    """What a file of decisions holds: its head, its steps in order, and how many bytes of it are whole lines."""

    key: str
    reviewer: str
    steps: list[tuple[str, str, Change, bool]]
    size: int

    def notes(self) -> dict[str, NoteDecisions]:
        """What holds after all steps, by note."""
        notes: dict[str, NoteDecisions] = {}
        for note_id, text, change, _ in self.steps:
            notes.setdefault(note_id, NoteDecisions(text)).take(change)
            notes[note_id].text = text
        return notes


def read_file(path: Path) -> DecisionFile:
    """Read a file of decisions; a last line that was cut off while it was written counts for nothing.

    Raises InputError for what is no such file, with the line.
    """
    try:
        data = path.read_bytes()
    except OSError:
        raise InputError("cannot be read", where=path.name, hint="name a file of OUT.vault/review") from None
    *lines, rest = data.split(b"\n")
    steps: list[tuple[str, str, Change, bool]] = []
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
            if number == 1:
                key, reviewer = _head(said)
            else:
                steps.append((_word(said["note"]), _word(said["text"]), Change.of_line(said), bool(said.get("undo"))))
        except (ValueError, TypeError, KeyError, RecursionError):
            what = "is no file of decisions" if number == 1 else f"line {number} is no decision"
            raise InputError(what, where=path.name, hint="clinveil review makes them") from None
    if not lines:
        raise InputError("is no file of decisions", where=path.name, hint="clinveil review makes them")
    return DecisionFile(key, reviewer, steps, len(data) - len(rest))


def _head(said: Mapping[str, Any]) -> tuple[str, str]:
    if said["schema"] != SCHEMA or len(bytes.fromhex(said["key"])) != 32:
        raise ValueError
    return said["key"], _word(said["reviewer"])


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


class Decisions:
    """The decisions of one or several reviewers: `Finder.revise` of a run over the notes that they saw.

    What one keeps is kept, whatever another says: in doubt an identifier is hidden.
    """

    def __init__(self, files: Iterable[DecisionFile]) -> None:
        self._told: dict[str, list[tuple[str, NoteDecisions]]] = {}
        for file in files:
            for note_id, decided in file.notes().items():
                self._told.setdefault(note_id, []).append((file.key, decided))

    @classmethod
    def read(cls, *paths: Path) -> Decisions:
        """The decisions of files. Raises InputError for what is no such file."""
        return cls(read_file(path) for path in paths)

    def __len__(self) -> int:
        return len(self._told)

    def __call__(self, note_id: str, text: str, spans: list[Span]) -> list[Span]:
        """The spans of a note after the decisions on it. Raises InputError where its text has changed since."""
        told = self._told.get(note_id)
        if told is None:
            return spans
        if not self._fits(told, text):
            raise InputError("a note has changed since it was reviewed", hint=AGAIN)
        return revised(spans, *(decided.verdicts for _, decided in told))

    def check_corpus(self, corpus: Corpus) -> None:
        """Look through notes for those that were reviewed.

        Raises InputError, with the numbers, where some have changed or none is there. Warns with InputWarning where
        only a part of them is there.
        """
        seen = [self._fits(self._told[note.note_id], note.text) for note in rows(corpus) if note.note_id in self._told]
        missing, changed = len(self) - len(seen), seen.count(False)
        if changed:
            what = f"{changed} of {len(self)} notes with decisions have another text than the reviewer saw"
            raise InputError(what, where="--decisions", hint=AGAIN)
        if missing and not seen:
            raise InputError(f"none of the {len(self)} notes with decisions is here", where="--decisions", hint=AGAIN)
        if missing:
            what = f"--decisions: {missing} of {len(self)} notes with decisions are not here"
            warnings.warn(what, InputWarning, stacklevel=2)

    @staticmethod
    def _fits(told: Iterable[tuple[str, NoteDecisions]], text: str) -> bool:
        kept = [v.end for _, decided in told for v in decided.verdicts.values() if v is not None]
        return max(kept, default=0) <= len(text) and all(text_hash(key, text) == d.text for key, d in told)


def revised(spans: Iterable[Span], *decided: Mapping[Place, Verdict]) -> list[Span]:
    """Spans after the verdicts of one or several reviewers, sorted, without overlaps.

    A found span goes only if every character of it was looked at: rejected, or part of what is kept or was corrected.
    """
    kept = {verdict for verdicts in decided for verdict in verdicts.values() if verdict is not None}
    looked_at = _Covered([*(place for verdicts in decided for place in verdicts), *((k.start, k.end) for k in kept)])
    found = {Kept(span.start, span.end, span.label): span for span in spans}
    left = [span for span in found.values() if not looked_at.holds(span.start, span.end)]
    return united([*(found.get(keep) or Span(*keep, REVIEW) for keep in kept), *left])


class _Covered:
    """Places run together."""

    def __init__(self, places: Iterable[Place]) -> None:
        runs = list(_run_together(sorted(places)))
        self._starts, self._ends = [start for start, _ in runs], [end for _, end in runs]

    def holds(self, start: int, end: int) -> bool:
        """Whether all of a place is covered."""
        at = bisect_right(self._starts, start) - 1
        return at >= 0 and end <= self._ends[at]


def _run_together(places: Iterable[Place]) -> Iterator[Place]:
    reach: Place | None = None
    for start, end in places:
        if reach is not None and start <= reach[1]:
            reach = (reach[0], max(reach[1], end))
            continue
        if reach is not None:
            yield reach
        reach = (start, end)
    if reach is not None:
        yield reach
