"""`clinveil evaluate deidentification`, done: notes, gold spans and what was found, brought together."""

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
from clinveil.phi.deidentifier import Deidentifier
from clinveil.phi.finder import Finder
from clinveil.phi.passes import deidentify_corpus
from clinveil.scale import processes
from clinveil.utility.deidentification.errors import ErrorList
from clinveil.utility.deidentification.grid import grid_notes, sample
from clinveil.utility.deidentification.grid_findings import grid_findings, scored
from clinveil.utility.deidentification.on_gold import GoldNote, Survival, gold_findings, tally_notes
from clinveil.utility.deidentification.settings import EvaluateDeidentificationSettings as How

Told = Iterator[tuple[Note, list[Span]]]  # a note, and what was found in it


def on_grid(how: How, rng: Generator, errors: ErrorList | None = None) -> tuple[list[Finding], int]:
    """Findings of the grid, and of how many notes they are. errors: takes what was missed."""
    find = Finder.of(how.identifiers).find
    notes = sample(rng, how.size, every=how.all_names) if how.size else list(grid_notes(rng, every=how.all_names))
    if errors is not None:
        tally_notes((GoldNote(n.note_id, "", n.text, n.gold, find(n.text)) for n in notes), read=errors.add)
    return grid_findings(list(scored(notes, find))), len(notes)


def on_gold(
    how: How, corpus: Corpus, truth: GoldSpans, *, found: GoldSpans | None = None, errors: ErrorList | None = None
) -> list[Finding]:
    """What our detectors find in notes, or what another tool `found`, held against gold spans.

    Args:
        errors: takes what was missed and what was covered without need.

    Raises InputError for notes and spans that do not fit each other.
    """
    _refuse_misfits(corpus, truth)
    told = _found_by(how, corpus) if found is None else _found_in(corpus, found)
    read = errors.add if errors is not None else None
    tally = tally_notes(_with_gold(how, told, truth), complete=not how.incomplete, read=read)
    if not tally.labels:
        raise InputError("no gold span is in these notes", where=truth.name, hint="the ids of both must be the same")
    return gold_findings(tally, _over(corpus))


def _refuse_misfits(corpus: Corpus, truth: GoldSpans) -> None:
    """Raise InputError for spans that do not fit the notes, before the detectors, which take their time, are asked."""
    ids = []
    for note in rows(corpus):
        ids.append(note.note_id)
        truth.of(note.note_id, note.text)
    truth.refuse_unknown(ids)


def in_output(how: How, corpus: Corpus, truth: GoldSpans, output: Corpus) -> list[Finding]:
    """Which identifiers still stand in the notes that were written. Raises InputError as `on_gold` does."""
    written = {note.note_id: note for note in rows(output)}
    survival, before, ids = Survival(), None, list[str]()
    for note in rows(corpus):
        ids.append(note.note_id)
        left = written.get(note.note_id)
        spans = truth.of(note.note_id, note.text)
        if left is not None and _asked(how, truth, note):
            other = None if before is None or before.patient_id == note.patient_id else before.text
            survival.add(GoldNote(*note, spans, ()), left.text, other)
            before = left
    truth.refuse_unknown(ids)
    if not survival.counts:
        what = "no note that was written has a gold span"
        raise InputError(what, where=truth.name, hint="the notes' own ids are wanted, not new ones")
    return list(survival.findings(_over(corpus)))


def _over(corpus: Corpus) -> str:
    return "patients" if corpus.columns.has_patients else "notes"


def _asked(how: How, truth: GoldSpans, note: Note) -> bool:
    return not how.listed or note.note_id in truth.marks


def _with_gold(how: How, told: Told, truth: GoldSpans) -> Iterator[GoldNote]:
    for note, spans in told:
        if _asked(how, truth, note):
            yield GoldNote(*note, truth.of(note.note_id, note.text), spans)


def _found_by(how: How, corpus: Corpus) -> Told:
    """What the detectors find, by the pass that `deidentify` makes."""
    patients = read_patients(how.identifiers.patients) if how.identifiers.patients else None
    deidentifier = Deidentifier.of(how.identifiers, Key.generate(), patients=patients, keep_spans=True)
    source = rows(corpus)
    for done in deidentify_corpus(corpus, deidentifier, processes(how.workers)):
        if sum(done.skipped.values()) > done.skipped["null text"]:
            raise InputError("the detectors failed on a note", hint="report it, without its text")
        spans: dict[str, list[Span]] = {}
        for one in done.spans or ():
            spans.setdefault(one.note_id, []).append(one.span)
        for _ in range(done.batch.num_rows):
            note = next(source)
            yield note, spans.get(note.note_id, [])


def _found_in(corpus: Corpus, found: GoldSpans) -> Told:
    """What a file says was found."""
    ids = []
    for note in rows(corpus):
        ids.append(note.note_id)
        yield note, found.of(note.note_id, note.text)
    found.refuse_unknown(ids)


def refuse_together(
    how: How, given: Mapping[str, Path | None], found: Path | None, output: Path | None, errors: Path | None
) -> None:
    """Raise UsageError for what does not go together. given: NOTES and --gold."""
    there = [name for name, path in given.items() if path is not None]
    more = [name for name, path in (("--found", found), ("--output", output)) if path is not None]
    if how.grid and there + more:
        raise UsageError(f"--grid has notes of its own, without {', '.join(there + more)}", hint="one of both")
    if not how.grid and len(there) < len(given):
        raise UsageError("nothing to measure on", hint="NOTES and --gold SPANS, or --grid")
    if len(more) == 2 or (output is not None and errors is not None):
        raise UsageError("--output takes neither --found nor --errors", hint="two calls")
    if errors is not None and (errors.exists() or not errors.absolute().parent.is_dir()):
        raise UsageError("is there already, or its folder is not", where=f"--errors {errors.name}", hint="a new file")
