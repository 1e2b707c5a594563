"""`Desk`: what a reviewer sees of the notes in the queue, and what becomes of them by what the reviewer does.

Offsets are in code points of the note; the page makes its own of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from clinveil.core.errors import InputError
from clinveil.core.spans import LABELS, Span
from clinveil.phi.decisions import OPEN, REVIEW, Change, Kept, NoteDecisions, Verdict, hash_key, revised, text_hash
from clinveil.phi.deidentifier import Deidentifier
from clinveil.phi.review.log import DecisionLog, decision_log
from clinveil.phi.review.queue import Entry, PastRun

FOLDER = "review"
_MOST_HITS = 2000
Json = dict[str, Any]


class Desk:
    """The notes of a queue before one reviewer. Its methods are what the page can ask for.

    Args:
        treat: what treats spans as the run did. log: the reviewer's decisions. key: of their hashes, in hex.

    Raises:
        InputError: notes whose text has changed since this reviewer saw them.
    """

    def __init__(
        self, entries: Sequence[Entry], treat: Deidentifier, log: DecisionLog, *, key: str, reviewer: str
    ) -> None:
        self.entries, self.reviewer = entries, reviewer
        self._treat, self._log, self._lock = treat, log, Lock()
        self._hashes = [text_hash(key, entry.note.text) for entry in entries]
        there = ((log.notes.get(entry.note.note_id), told) for entry, told in zip(entries, self._hashes, strict=True))
        if changed := sum(decided is not None and decided.text != told for decided, told in there):
            what = f"{changed} of {len(log.notes)} notes with decisions have another text now"
            raise InputError(what, where=f"reviewer {reviewer}", hint="move the file away, or take another --reviewer")

    def queue(self) -> Json:
        """The list of notes with what is done, and all labels."""
        return {
            "reviewer": self.reviewer,
            "labels": [{"label": label, "means": means} for label, means in LABELS.items()],
            "notes": [self._listed(at) for at in range(len(self.entries))],
        }

    def note(self, at: int) -> Json:
        """One note: its text, and what `_state` has."""
        entry = self._entry(at)
        return {"text": entry.note.text, "suspects": [list(place) for place in entry.suspects], **self._state(at)}

    def act(self, at: int, verdicts: Sequence[Mapping[str, Any]], done: bool | None = None) -> Json:
        """Take a step: verdicts on places, and whether the note is done. Raises InputError for what makes no sense."""
        entry = self._entry(at)
        try:
            change = Change.of_line({"set": verdicts, "done": done})
        except (ValueError, TypeError, KeyError):
            raise InputError("this is no decision") from None
        with self._lock:
            self._refuse(entry, self._decided(at), change)
            if change.verdicts or change.done is not None:
                self._log.add(entry.note.note_id, change)
        return self._state(at)

    def undo(self, at: int) -> Json:
        """Take the last step on a note back."""
        entry = self._entry(at)
        with self._lock:
            self._decided(at)
            self._log.undo(entry.note.note_id)
        return self._state(at)

    def search(self, words: str) -> Json:
        """Where words stand in the notes of the queue, whatever their case: [note, start, end] each."""
        wanted, hits = words.lower(), list[list[int]]()
        for at, entry in enumerate(self.entries if wanted.strip() else ()):
            text = entry.note.text.lower()
            if len(text) != len(entry.note.text):  # a few letters get longer in lower case, and places would move
                text = "".join(low if len(low := c.lower()) == 1 else c for c in entry.note.text)
            start = text.find(wanted)
            while start >= 0 and len(hits) < _MOST_HITS:
                hits.append([at, start, start + len(wanted)])
                start = text.find(wanted, start + len(wanted))
        return {"hits": hits, "all": len(hits) < _MOST_HITS}

    def progress(self) -> tuple[int, int]:
        """Notes that are done, and notes."""
        return sum(self._decided(at).done for at in range(len(self.entries))), len(self.entries)

    def _entry(self, at: int) -> Entry:
        if type(at) is not int or not 0 <= at < len(self.entries):
            raise InputError("there is no such note in the queue")
        return self.entries[at]

    def _decided(self, at: int) -> NoteDecisions:
        return self._log.of(self.entries[at].note.note_id, self._hashes[at])

    def _listed(self, at: int) -> Json:
        entry, decided = self.entries[at], self._decided(at)
        counts = {"spans": len(entry.spans), "suspects": len(entry.suspects), "decided": len(decided.verdicts)}
        return {"id": entry.note.note_id, "doubt": round(entry.doubt, 1), "done": decided.done, **counts}

    def _state(self, at: int) -> Json:
        """The spans of a note as they are now, the treated pieces, and what the list says of it."""
        entry, decided = self.entries[at], self._decided(at)
        active = revised(entry.spans, decided.verdicts)
        written, _ = self._treat.replacements(entry.note.text, active, entry.note.patient_id)
        pieces = [[span.start, span.end, new] for span, new in zip(active, written, strict=True)]
        undo = self._log.can_undo(entry.note.note_id)
        shown = _shown(entry.spans, decided.verdicts)
        return {"at": at, "spans": shown, "pieces": pieces, "undo": undo, "listed": self._listed(at)}

    @staticmethod
    def _refuse(entry: Entry, decided: NoteDecisions, change: Change) -> None:
        """Raise InputError for places outside the note, or decisions after which two spans would overlap."""
        trial = replace(decided, verdicts=dict(decided.verdicts))
        trial.apply(change)
        live = [span for span in _shown(entry.spans, trial.verdicts) if span["state"] != "dropped"]
        ends = [0, *(span["end"] for span in live)]
        if max(ends) > len(entry.note.text) or any(end > live[i]["start"] for i, end in enumerate(ends[:-1])):
            raise InputError("two spans would overlap, or one would leave the note")


def _shown(found: Iterable[Span], verdicts: Mapping[tuple[int, int], Verdict]) -> list[Json]:
    """All spans of a note for the page, in order: found ones by what was decided, and those that were added."""
    by_place = {(span.start, span.end): span for span in found}
    spans = [_one(place, span, verdicts.get(place, OPEN)) for place, span in by_place.items()]
    spans += [_one(place, None, verdict) for place, verdict in verdicts.items() if place not in by_place and verdict]
    return sorted(spans, key=lambda span: (span["start"], span["end"], span["state"] == "dropped"))


def _one(place: tuple[int, int], found: Span | None, verdict: Verdict | str) -> Json:
    now = verdict if isinstance(verdict, Kept) else Kept(found.start, found.end, found.label) if found else None
    assert now is not None
    state = verdict if isinstance(verdict, str) else "dropped" if verdict is None else "kept"
    source = (found.detector, found.why, found.score) if found else (REVIEW, "", 1.0)
    told = dict(zip(("detector", "why", "score"), source, strict=True))
    changed = found is not None and now != (found.start, found.end, found.label)
    return {"place": list(place), **now._asdict(), "state": state, "added": found is None, "changed": changed, **told}


@contextmanager
def desk(run: PastRun, entries: Sequence[Entry], reviewer: str) -> Iterator[Desk]:
    """The desk of one reviewer over the notes of a run; the decisions lie in the run's vault."""
    key = hash_key(run.key)
    with decision_log(decisions_of(run.vault, reviewer), key, reviewer) as log:
        yield Desk(entries, run.deidentifier(), log, key=key, reviewer=reviewer)


def decisions_of(vault: Path, reviewer: str) -> Path:
    """The file of a reviewer's decisions."""
    return vault / FOLDER / f"{reviewer}.jsonl"
