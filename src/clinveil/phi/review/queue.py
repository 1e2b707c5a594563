"""Select the notes of a run for review, and order them: most doubtful first, or in file order.

Doubt of a note: the number of undetected words that may be names, plus 1 minus the score of each detected span.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

from clinveil.core.errors import InputError, UsageError
from clinveil.core.files import default_vault, read_json
from clinveil.core.keys import Key
from clinveil.core.locations import place
from clinveil.core.runfolder import KEY
from clinveil.core.spans import Span
from clinveil.corpus.corpus import Corpus, Note, rows
from clinveil.corpus.open import open_corpus
from clinveil.corpus.people import read_patients
from clinveil.phi.detection.note import NoteView
from clinveil.phi.settings import DeidentifySettings
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.records import RECORD, SPANS

Order = Literal["worst", "given"]
AGAIN = "run clinveil deidentify again with stored spans (--spans)"
_CHANGED = "the notes are not those of the run: its spans do not match their text"
_NOTES = f"pass the notes of the run with --notes, or {AGAIN}"
_SHORT = 4  # letters; shorter upper-case words are mostly abbreviations


@dataclass(frozen=True)
class Entry:
    """A note of the queue.

    Attributes:
        spans: spans that the run detected.
        suspects: ranges of undetected words that may be names.
        number: its row among the notes of the run, from 0.
    """

    note: Note
    spans: tuple[Span, ...] = field(repr=False)
    suspects: tuple[tuple[int, int], ...] = field(repr=False)
    number: int

    @property
    def doubt(self) -> float:
        """Return the number of suspects plus 1 minus the score of each span."""
        return len(self.suspects) + sum(1 - span.score for span in self.spans)


@dataclass(frozen=True)
class PastRun:
    """A completed `clinveil deidentify` run with stored spans, as described by its vault."""

    vault: Path
    notes: Path
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

    def deidentifier(self) -> Deidentifier:
        """Return a deidentifier with the settings of the run."""
        settings = self.settings.identifiers
        patients = read_patients(settings.patients) if settings.patients else None
        return Deidentifier.of(settings, self.key, patients=patients)

    def entries(self) -> Iterator[Entry]:
        """Yield all notes with their spans, in order. Raises InputError if the notes have changed."""
        groups = groupby(_lines(self.vault / SPANS), key=lambda found: found[0])
        waiting = next(groups, None)
        for number, note in enumerate(rows(self.corpus)):
            spans: tuple[Span, ...] = ()
            if waiting is not None and waiting[0] == note.note_id:
                found = list(waiting[1])
                if any(note.text[span.start : span.end] != expected for _, span, expected in found):
                    raise InputError(_CHANGED, hint=_NOTES)
                spans, waiting = tuple(span for _, span, _ in found), next(groups, None)
            yield Entry(note, spans, tuple(suspects(note.text, spans)), number)
        if waiting is not None:
            raise InputError(_CHANGED, hint=_NOTES)


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
        raise UsageError("not a clinveil deidentify run with stored spans", where=out.name, hint=hint)
    try:
        settings, folder = DeidentifySettings.model_validate(record["settings"]), Path(record["folder"])
        read = notes or place(record["notes"])
    except (KeyError, TypeError, ValueError):
        message = "the record of the run is damaged or of another version"
        raise InputError(message, where=folder_of_run.name, hint=AGAIN) from None
    if not settings.spans:
        raise UsageError("the run stored no spans of the detectors", where=out.name, hint=AGAIN)
    if not read.exists():
        raise InputError("notes not found", where=read.name, hint="pass their path with --notes")
    files = {name: folder / value for name, value in dict(settings.identifiers).items() if isinstance(value, Path)}
    return PastRun(folder_of_run, read, settings.but(**files))


def review_queue(entries: Iterable[Entry], most: int, order: Order) -> list[Entry]:
    """Return the notes to review, at most `most`; only these are kept in memory."""
    if order == "given":
        return list(islice(entries, most))
    return nlargest(most, entries, key=lambda entry: (entry.doubt, -entry.number))


def suspects(text: str, spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of words outside all spans that may be names: capitalised and not ordinary words."""
    view, covered, at = NoteView(text), sorted((span.start, span.end) for span in spans), 0
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
                source = row["detector"], row["score"], row.get("why", "")
                yield row["note_id"], Span(row["start"], row["end"], row["label"], *source), row["text"]
            except (ValueError, KeyError, TypeError, InputError):
                raise InputError(f"line {number}: invalid span", where=path.name, hint=AGAIN) from None
