"""Run `clinveil evaluate deidentification`: combine notes, gold spans and detections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from numpy.random import Generator

from clinveil.core.errors import InputError, UsageError
from clinveil.core.finding import Finding
from clinveil.core.keys import Key
from clinveil.core.spans import Span
from clinveil.corpus.corpus import Corpus, Note, rows
from clinveil.corpus.gold import GoldSpans
from clinveil.corpus.people import read_patients
from clinveil.phi.detection.finder import Finder
from clinveil.phi.treatment.deidentifier import Deidentifier
from clinveil.phi.treatment.passes import deidentify_corpus
from clinveil.scale import processes
from clinveil.utility.deidentification.errors import ErrorList
from clinveil.utility.deidentification.grid import grid_notes, sample
from clinveil.utility.deidentification.grid_findings import grid_findings, scored
from clinveil.utility.deidentification.on_gold import GoldNote, Survival, gold_findings, tally_notes
from clinveil.utility.deidentification.settings import EvaluateDeidentificationSettings as How

Detections = Iterator[tuple[Note, list[Span]]]  # a note, and the spans detected in it


def on_grid(how: How, rng: Generator, errors: ErrorList | None = None) -> tuple[list[Finding], int]:
    """Return the findings of the grid and the number of its notes. errors: list for missed identifiers."""
    find = Finder.of(how.identifiers).find
    notes = sample(rng, how.size, every=how.all_names) if how.size else list(grid_notes(rng, every=how.all_names))
    if errors is not None:
        tally_notes((GoldNote(n.note_id, "", n.text, n.gold, find(n.text)) for n in notes), read=errors.add)
    return grid_findings(list(scored(notes, find))), len(notes)


def on_gold(
    how: How, corpus: Corpus, truth: GoldSpans, *, found: GoldSpans | None = None, errors: ErrorList | None = None
) -> list[Finding]:
    """Compare clinveil's detections, or the detections `found` of another tool, with gold spans.

    Args:
        errors: list for missed identifiers and false positives.

    Raises InputError for notes and spans that do not fit each other.
    """
    _refuse_misfits(corpus, truth)
    detections = _found_by(how, corpus) if found is None else _found_in(corpus, found)
    read = errors.add if errors is not None else None
    tally = tally_notes(_with_gold(how, detections, truth), complete=not how.incomplete, read=read)
    if not tally.labels:
        raise InputError("no gold span is in these notes", where=truth.name, hint="use the note ids of the notes")
    return gold_findings(tally, _over(corpus))


def _refuse_misfits(corpus: Corpus, truth: GoldSpans) -> None:
    """Raise InputError for spans that do not fit the notes, before the slow detection starts."""
    ids = []
    for note in rows(corpus):
        ids.append(note.note_id)
        truth.of(note.note_id, note.text)
    truth.refuse_unknown(ids)


def in_output(how: How, corpus: Corpus, truth: GoldSpans, output: Corpus) -> list[Finding]:
    """Return the identifiers that remain in released notes. Raises InputError as `on_gold` does."""
    written = {note.note_id: note for note in rows(output)}
    survival, before, ids = Survival(), None, list[str]()
    for note in rows(corpus):
        ids.append(note.note_id)
        released = written.get(note.note_id)
        spans = truth.of(note.note_id, note.text)
        if released is not None and _selected(how, truth, note):
            other = None if before is None or before.patient_id == note.patient_id else before.text
            survival.add(GoldNote(*note, spans, ()), released.text, other)
            before = released
    truth.refuse_unknown(ids)
    if not survival.counts:
        hint = "use the original note ids in the released notes"
        raise InputError("no released note has a gold span", where=truth.name, hint=hint)
    return list(survival.findings(_over(corpus)))


def _over(corpus: Corpus) -> str:
    return "patients" if corpus.columns.has_patients else "notes"


def _selected(how: How, truth: GoldSpans, note: Note) -> bool:
    return not how.listed or note.note_id in truth.marks


def _with_gold(how: How, detections: Detections, truth: GoldSpans) -> Iterator[GoldNote]:
    for note, spans in detections:
        if _selected(how, truth, note):
            yield GoldNote(*note, truth.of(note.note_id, note.text), spans)


def _found_by(how: How, corpus: Corpus) -> Detections:
    """Yield the detections of clinveil, from the same pass as `deidentify`."""
    patients = read_patients(how.identifiers.patients) if how.identifiers.patients else None
    deidentifier = Deidentifier.of(how.identifiers, Key.generate(), patients=patients, keep_spans=True)
    source = rows(corpus)
    for done in deidentify_corpus(corpus, deidentifier, processes(how.workers)):
        if sum(done.skipped.values()) > done.skipped["null text"]:
            raise InputError("the detectors failed on a note", hint="please report this without the text of the note")
        spans: dict[str, list[Span]] = {}
        for found in done.spans or ():
            spans.setdefault(found.note_id, []).append(found.span)
        for _ in range(done.batch.num_rows):
            note = next(source)
            yield note, spans.get(note.note_id, [])


def _found_in(corpus: Corpus, found: GoldSpans) -> Detections:
    """Yield the detections of a file."""
    ids = []
    for note in rows(corpus):
        ids.append(note.note_id)
        yield note, found.of(note.note_id, note.text)
    found.refuse_unknown(ids)


def refuse_together(
    how: How, given: Mapping[str, Path | None], found: Path | None, output: Path | None, errors: Path | None
) -> None:
    """Raise UsageError for arguments that cannot be combined. given: NOTES and --gold."""
    present = [name for name, path in given.items() if path is not None]
    more = [name for name, path in (("--found", found), ("--output", output)) if path is not None]
    if how.grid and present + more:
        raise UsageError(f"--grid cannot be combined with {', '.join(present + more)}", hint="pass one of the two")
    if not how.grid and len(present) < len(given):
        raise UsageError("no notes to measure on", hint="pass NOTES and --gold SPANS, or --grid")
    if len(more) == 2 or (output is not None and errors is not None):
        raise UsageError("--output cannot be combined with --found or --errors", hint="run the command twice")
    if errors is not None and (errors.exists() or not errors.absolute().parent.is_dir()):
        where = f"--errors {errors.name}"
        raise UsageError("the file exists, or its folder does not", where=where, hint="pass a new file")
