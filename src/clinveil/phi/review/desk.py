"""`Desk`: the notes in a reviewer's queue, with the decisions on their spans and the resulting
text.

Offsets are in code points of the note; the page converts them to UTF-16 units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from clinveil.core import LABELS, InputError, Span
from clinveil.phi.review.decisions import (
    OPEN,
    REVIEW,
    Change,
    DecisionLog,
    Kept,
    NoteDecisions,
    Offsets,
    Verdict,
    decision_log,
    decisions_of,
    hash_key,
    revised,
    text_hash,
)
from clinveil.phi.review.past_runs import Reviewable, ReviewEntry
from clinveil.phi.treatment.deidentifier import NoteDeidentifier

_MAX_HITS = 2000
Json = dict[str, Any]


class Desk:
    """One reviewer's session. The public methods are the API of the page.

    Args:
        treat: replaces spans with the settings of the run. None hides from the page what was
            detected: it shows no treated text and no doubt.
        log: the reviewer's decisions.
        key: key of the text hashes, in hex.

    Raises:
        InputError: the text of a note changed since this reviewer's last session.
    """

    def __init__(
        self,
        entries: Sequence[ReviewEntry],
        treat: NoteDeidentifier | None,
        log: DecisionLog,
        *,
        key: str,
        reviewer: str,
    ) -> None:
        self.entries = entries
        self.reviewer = reviewer
        self._treat = treat
        self._log = log
        self._lock = Lock()
        self._hashes = [text_hash(key, entry.note.text) for entry in entries]
        pairs = [
            (log.notes.get(entry.note.note_id), digest)
            for entry, digest in zip(entries, self._hashes, strict=True)
        ]
        if changed := sum(
            decided is not None and decided.text != digest for decided, digest in pairs
        ):
            message = f"the text of {changed} of {len(log.notes)} notes with decisions has changed"
            hint = "move the decisions file away, or choose another --reviewer"
            raise InputError(message, where=f"reviewer {reviewer}", hint=hint)

    def queue(self) -> Json:
        """Return the list of notes with their progress, and all labels."""
        return {
            "reviewer": self.reviewer,
            "blind": self._treat is None,
            "labels": [{"label": label, "means": meaning} for label, meaning in LABELS.items()],
            "notes": [self._listed(index) for index in range(len(self.entries))],
        }

    def note(self, index: int) -> Json:
        """Return a note: its text, its suspects and the result of `_state`."""
        entry = self._entry(index)
        return {
            "text": entry.note.text,
            "suspects": [list(span) for span in entry.suspects],
            **self._state(index),
        }

    def act(
        self, index: int, verdicts: Sequence[Mapping[str, Any]], done: bool | None = None
    ) -> Json:
        """Apply a step: verdicts on spans, and whether the note is done. Raises InputError for an
        invalid step.
        """
        entry = self._entry(index)
        try:
            change = Change.of_line({"set": verdicts, "done": done})
        except (ValueError, TypeError, KeyError):
            raise InputError("invalid decision") from None
        with self._lock:
            self._refuse(entry, self._decided(index), change)
            if change.verdicts or change.done is not None:
                self._log.add(entry.note.note_id, change)
        return self._state(index)

    def undo(self, index: int) -> Json:
        """Revert the last step on a note."""
        entry = self._entry(index)
        with self._lock:
            self._decided(index)
            self._log.undo(entry.note.note_id)
        return self._state(index)

    def search(self, words: str) -> Json:
        """Search the notes of the queue, ignoring case. Each hit is [note, start, end]."""
        query = words.lower()
        hits = list[list[int]]()
        for index, entry in enumerate(self.entries if query.strip() else ()):
            text = entry.note.text.lower()
            # Some letters become longer in lower case, which would shift offsets.
            if len(text) != len(entry.note.text):
                text = "".join(low if len(low := c.lower()) == 1 else c for c in entry.note.text)
            start = text.find(query)
            while start >= 0 and len(hits) < _MAX_HITS:
                hits.append([index, start, start + len(query)])
                start = text.find(query, start + len(query))
        return {"hits": hits, "all": len(hits) < _MAX_HITS}

    def progress(self) -> tuple[int, int]:
        """Return the number of completed notes and of all notes."""
        return sum(self._decided(index).done for index in range(len(self.entries))), len(
            self.entries
        )

    def _entry(self, index: int) -> ReviewEntry:
        if type(index) is not int or not 0 <= index < len(self.entries):
            raise InputError("no such note in the queue")
        return self.entries[index]

    def _decided(self, index: int) -> NoteDecisions:
        return self._log.of(self.entries[index].note.note_id, self._hashes[index])

    def _listed(self, index: int) -> Json:
        entry = self.entries[index]
        decided = self._decided(index)
        listed: Json = {
            "id": entry.note.note_id,
            "done": decided.done,
            "decided": len(decided.verdicts),
        }
        if self._treat is not None:
            listed["spans"] = len(entry.shown)
            listed["doubt"] = round(entry.doubt, 1)
        return listed

    def _state(self, index: int) -> Json:
        """Return the current spans of a note, its replacements, and its entry in the list of
        notes.
        """
        entry = self.entries[index]
        decided = self._decided(index)
        return {
            "at": index,
            "spans": _shown(entry.shown, decided.verdicts),
            "pieces": self._pieces(entry, decided),
            "undo": bool(decided.steps),
            "listed": self._listed(index),
        }

    def _pieces(self, entry: ReviewEntry, decided: NoteDecisions) -> list[list[int | str]]:
        """Return start, end and replacement of each span that is treated."""
        if self._treat is None:
            return []
        active = revised(entry.spans, decided.verdicts)
        treated = self._treat.treated(entry.note.text, active, entry.note.patient_id)
        return [
            [span.start, span.end, item.text] for span, item in zip(active, treated, strict=True)
        ]

    @staticmethod
    def _refuse(entry: ReviewEntry, decided: NoteDecisions, change: Change) -> None:
        """Raise InputError for spans outside the note, or if two spans would overlap."""
        trial = NoteDecisions(decided.text, dict(decided.verdicts))
        trial.apply(change)
        live = [span for span in _shown(entry.shown, trial.verdicts) if span["state"] != "dropped"]
        ends = [0, *(span["end"] for span in live)]
        if max(ends) > len(entry.note.text) or any(
            end > live[i]["start"] for i, end in enumerate(ends[:-1])
        ):
            raise InputError("spans overlap or exceed the note")


def _shown(spans: Iterable[Span], verdicts: Mapping[Offsets, Verdict]) -> list[Json]:
    """Return all spans of a note in order: detected ones with their decisions, and added ones."""
    detected = {(span.start, span.end): span for span in spans}
    shown = [
        _page_span(offsets, span, verdicts.get(offsets, OPEN)) for offsets, span in detected.items()
    ]
    shown += [
        _page_span(offsets, None, verdict)
        for offsets, verdict in verdicts.items()
        if offsets not in detected and verdict
    ]
    return sorted(shown, key=lambda span: (span["start"], span["end"], span["state"] == "dropped"))


def _page_span(offsets: Offsets, detected: Span | None, verdict: Verdict | str) -> Json:
    """Return a span for the page; `detected` is None for a span that the reviewer added."""
    if isinstance(verdict, Kept):
        current = verdict
        state = "kept"
    else:
        assert detected is not None
        current = Kept(detected.start, detected.end, detected.label)
        state = verdict or "dropped"
    source = detected or Span(current.start, current.end, current.label, REVIEW)
    return {
        "place": list(offsets),
        "start": current.start,
        "end": current.end,
        "label": current.label,
        "state": state,
        "added": detected is None,
        "changed": detected is not None and current != (source.start, source.end, source.label),
        "detector": source.detector,
        "why": source.why,
        "score": source.score,
    }


@contextmanager
def open_desk(run: Reviewable, entries: Sequence[ReviewEntry], reviewer: str) -> Iterator[Desk]:
    """Open the session of one reviewer on the notes of a run. The decisions are in the run's
    vault.
    """
    key = hash_key(run.key)
    with decision_log(decisions_of(run.vault, reviewer), key, reviewer) as log:
        yield Desk(entries, run.deidentifier(), log, key=key, reviewer=reviewer)
