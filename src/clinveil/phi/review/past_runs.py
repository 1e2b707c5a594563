"""Notes to review: those of a completed run of `clinveil deidentify`, and the queue of a reviewer.

The queue is in file order, or the most doubtful notes come first. Notes with residues come before
all others. The doubt of a note is the number of undetected words that may be names, plus 1 minus
the score of each detected span. A run without stored spans has a queue of the notes with residues.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import groupby, islice
from pathlib import Path
from typing import Literal, Protocol

from clinveil.core import (
    KEY,
    InputError,
    Key,
    Location,
    Span,
    UsageError,
    as_location,
    default_vault,
    read_json,
)
from clinveil.corpus import Corpus, Note, open_corpus, read_patients, rows
from clinveil.phi.detection.note import NoteView
from clinveil.phi.residue import FoundResidue
from clinveil.phi.settings import DeidentifySettings
from clinveil.phi.treatment.deidentifier import NoteDeidentifier
from clinveil.phi.treatment.records import RECORD, RESIDUES, SPANS

RESIDUE = "residue"
"""Detector name of a residue on the page."""
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
        groups = groupby(_lines(self.vault / SPANS), key=lambda line: line[0])
        left = groupby(_residues(self.vault / RESIDUES), key=lambda residue: residue.note_id)
        waiting = next(groups, None)
        residues_waiting = next(left, None)
        for number, note in enumerate(rows(self.corpus)):
            spans: tuple[Span, ...] = ()
            if waiting is not None and waiting[0] == note.note_id:
                stored = list(waiting[1])
                if any(note.text[span.start : span.end] != text for _, span, text in stored):
                    raise InputError(_CHANGED, hint=_NOTES)
                spans = tuple(span for _, span, _ in stored)
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
        read = notes or as_location(record["notes"])
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
    now = settings.but(identifiers={**files, "reviewed": ()})
    return PastRun(folder_of_run, read, now)


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
    row_index = 0
    for word in view.words:
        if not word.capital or word.ordinary or len(word.text) < 2:
            continue
        if word.shouted and not word.listed and len(word.text) <= _SHORT:
            continue
        start, end = view.aligned.source_offsets(word.start, word.end)
        while row_index < len(covered) and covered[row_index][1] <= start:
            row_index += 1
        if row_index == len(covered) or covered[row_index][0] >= end:
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
    apart = list[Span]()
    for residue in residues:
        if text[residue.start : residue.end][: len(residue.text)] != residue.text:
            raise InputError(_CHANGED, hint=_NOTES)
        span = Span(residue.start, residue.end, residue.label, RESIDUE, 0.5, "unchanged shape")
        if not any(span.overlaps(other) for other in spans):
            apart.append(span)
    return tuple(apart)
