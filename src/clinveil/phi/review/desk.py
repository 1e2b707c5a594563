"""`Desk`: the notes in a reviewer's queue, with the decisions on their spans and the resulting
text.

The queue has the notes of a run, most doubtful first or in file order. Notes with residues come
first. Doubt of a note:
the number of undetected words that may be names, plus 1 minus the score of each detected span. A
run without stored spans has a queue of the notes with residues. Offsets are in code points of the
note; the page converts them to UTF-16 units.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import groupby, islice
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import default_vault, read_json
from clinveil.core.keys import Key
from clinveil.core.locations import Location, place
from clinveil.core.runfolder import KEY
from clinveil.core.spans import LABELS, Span
from clinveil.corpus.corpus import Corpus, Note, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import read_patients
from clinveil.phi.detection.note import NoteView
from clinveil.phi.residue import FoundResidue
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
    hash_key,
    revised,
    text_hash,
)
from clinveil.phi.settings import DeidentifySettings
from clinveil.phi.treatment.deidentifier import NoteDeidentifier
from clinveil.phi.treatment.records import RECORD, RESIDUES, SPANS

FOLDER = "review"
RESIDUE = "residue"
"""Detector name of a residue on the page."""
_MAX_HITS = 2000
Json = dict[str, Any]
Order = Literal["worst", "given"]
AGAIN = "run clinveil deidentify again with stored spans (--spans)"
_CHANGED = "the notes are not those of the run: its spans do not match their text"
_NOTES = f"pass the notes of the run with --notes, or {AGAIN}"
_SHORT = 4  # letters; shorter upper-case words are mostly abbreviations


@dataclass(frozen=True)
class ReviewEntry:
    """A note of the queue.

    Attributes:
        spans: spans that the run detected.
        suspects: ranges of undetected words that may be names.
        residues: unchanged text that looks like an identifier; treated only if the reviewer accepts
            it.
        number: its row among the notes of the run, from 0.
    """

    note: Note
    spans: tuple[Span, ...] = field(repr=False)
    suspects: tuple[tuple[int, int], ...] = field(repr=False)
    number: int
    residues: tuple[Span, ...] = field(default=(), repr=False)

    @property
    def shown(self) -> tuple[Span, ...]:
        """Return the spans and the residues, in order."""
        return tuple(sorted((*self.spans, *self.residues)))

    @property
    def doubt(self) -> float:
        """Return the number of suspects plus 1 minus the score of each span."""
        return len(self.suspects) + sum(1 - span.score for span in self.spans)


@dataclass(frozen=True)
class PastRun:
    """A completed `clinveil deidentify` run with stored spans or residues, as described by its
    vault.
    """

    vault: Path
    notes: Location
    settings: DeidentifySettings

    @property
    def corpus(self) -> Corpus:
        """The notes of the run."""
        return open_corpus(self.notes, self.settings.notes)

    @property
    def key(self) -> Key:
        """The key of the run."""
        if self.settings.seed is not None:
            return Key.from_seed(self.settings.seed)
        return Key.load(self.vault / KEY)

    def deidentifier(self) -> NoteDeidentifier:
        """Return a deidentifier with the settings of the run."""
        settings = self.settings.identifiers
        patients = read_patients(settings.patients) if settings.patients else None
        return NoteDeidentifier.of(settings, self.key, patients=patients)

    def entries(self) -> Iterator[ReviewEntry]:
        """Yield all notes with their spans, in order, or those with residues if the run stored no
        others.

        Raises InputError if the notes have changed.
        """
        groups = groupby(_lines(self.vault / SPANS), key=lambda found: found[0])
        left = groupby(_residues(self.vault / RESIDUES), key=lambda residue: residue.note_id)
        waiting = next(groups, None)
        residues_waiting = next(left, None)
        for number, note in enumerate(rows(self.corpus)):
            spans: tuple[Span, ...] = ()
            if waiting is not None and waiting[0] == note.note_id:
                found = list(waiting[1])
                if any(note.text[span.start : span.end] != expected for _, span, expected in found):
                    raise InputError(_CHANGED, hint=_NOTES)
                spans = tuple(span for _, span, _ in found)
                waiting = next(groups, None)
            residues: tuple[Span, ...] = ()
            if residues_waiting is not None and residues_waiting[0] == note.note_id:
                residues = _as_spans(note.text, residues_waiting[1], spans)
                residues_waiting = next(left, None)
            if residues or self.settings.spans:
                yield ReviewEntry(note, spans, tuple(suspects(note.text, spans)), number, residues)
        if waiting is not None or residues_waiting is not None:
            raise InputError(_CHANGED, hint=_NOTES)


class Reviewable(Protocol):
    """A run whose entries are reviewed; its vault gets the files of decisions."""

    @property
    def vault(self) -> Path:
        """Private folder of the run."""
        ...

    @property
    def key(self) -> Key:
        """Key from which that of the text hashes is derived."""
        ...

    def deidentifier(self) -> NoteDeidentifier | None:
        """Return what treats the notes; None if reviewers must not see detections."""
        ...

    def entries(self) -> Iterator[ReviewEntry]:
        """Yield the notes or excerpts to review, in order."""
        ...


def past_run(out: Path, *, vault: Path | None = None, notes: Path | None = None) -> PastRun:
    """Return the run that wrote OUT.

    Args:
        notes: current path of the notes, if they were moved.

    Raises:
        UsageError: not a run, or a run without stored spans.
        InputError: damaged record.
    """
    folder_of_run = vault or (out if (out / RECORD).is_file() else default_vault(out))
    record = read_json(folder_of_run / RECORD)
    if not isinstance(record, dict) or not (folder_of_run / SPANS).is_file():
        hint = "clinveil deidentify NOTES -o OUT --spans"
        raise UsageError("not a clinveil deidentify run", where=out.name, hint=hint)
    try:
        settings = DeidentifySettings.model_validate(record["settings"])
        folder = Path(record["folder"])
        read = notes or place(record["notes"])
    except (KeyError, TypeError, ValueError):
        message = "the record of the run is damaged or of another version"
        raise InputError(message, where=folder_of_run.name, hint=AGAIN) from None
    residues = folder_of_run / RESIDUES
    if not settings.spans and not (residues.is_file() and residues.stat().st_size):
        raise UsageError(
            "the run found no residues and stored no spans", where=out.name, hint=AGAIN
        )
    if not read.exists():
        raise InputError("notes not found", where=read.name, hint="pass their path with --notes")
    files = {
        name: folder / value
        for name, value in dict(settings.identifiers).items()
        if isinstance(value, Path)
    }
    return PastRun(folder_of_run, read, settings.but(**files, decisions=()))


def review_queue(entries: Iterable[ReviewEntry], most: int, order: Order) -> list[ReviewEntry]:
    """Return the notes to review, at most `most`; only these are kept in memory."""
    if order == "given":
        return list(islice(entries, most))
    return nlargest(
        most, entries, key=lambda entry: (len(entry.residues), entry.doubt, -entry.number)
    )


def suspects(text: str, spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of words outside all spans that may be names: capitalised and not ordinary
    words.
    """
    view = NoteView(text)
    covered = sorted((span.start, span.end) for span in spans)
    at = 0
    for word in view.words:
        if not word.capital or word.ordinary or len(word.text) < 2:
            continue
        if word.shouted and not word.listed and len(word.text) <= _SHORT:
            continue
        start, end = view.aligned.source_offsets(word.start, word.end)
        while at < len(covered) and covered[at][1] <= start:
            at += 1
        if at == len(covered) or covered[at][0] >= end:
            yield start, end


def _lines(path: Path) -> Iterator[tuple[str, Span, str]]:
    """Yield note, span and text of each line of a run's spans."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                span = Span(
                    row["start"],
                    row["end"],
                    row["label"],
                    row["detector"],
                    row["score"],
                    row.get("why", ""),
                )
                yield row["note_id"], span, row["text"]
            except (ValueError, KeyError, TypeError, InputError):
                raise InputError(
                    f"line {number}: invalid span", where=path.name, hint=AGAIN
                ) from None


def _residues(path: Path) -> Iterator[FoundResidue]:
    """Yield the residues of a run."""
    with path.open(encoding="utf-8") if path.is_file() else nullcontext(()) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
                yield FoundResidue(
                    note_id=row["note_id"],
                    start=row["start"],
                    end=row["end"],
                    label=row["label"],
                    text=row["text"],
                    context=row["context"],
                )
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"line {number}: invalid residue", where=path.name, hint=AGAIN
                ) from None


def _as_spans(
    text: str, residues: Iterable[FoundResidue], spans: Sequence[Span]
) -> tuple[Span, ...]:
    """Return residues as spans. Raises InputError if the text has changed."""
    found = list[Span]()
    for residue in residues:
        if text[residue.start : residue.end][: len(residue.text)] != residue.text:
            raise InputError(_CHANGED, hint=_NOTES)
        span = Span(residue.start, residue.end, residue.label, RESIDUE, 0.5, "unchanged shape")
        if not any(span.overlaps(other) for other in spans):
            found.append(span)
    return tuple(found)


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


def decisions_of(vault: Path, reviewer: str) -> Path:
    """Return the path of a reviewer's decisions."""
    return vault / FOLDER / f"{reviewer}.jsonl"
