"""Measure recall of identifiers on gold spans or invented notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from numpy.random import default_rng

from clinveil.core import (
    SEED,
    WORKERS,
    Finding,
    InputError,
    Key,
    LabelledNotesSettings,
    Say,
    Span,
    UsageError,
    group,
    setting,
)
from clinveil.corpus import (
    Corpus,
    GoldSpans,
    Note,
    Scheme,
    read_labels,
    read_patients,
    read_spans,
    rows,
)
from clinveil.phi import Finder, NoteDeidentifier, PhiSettings, found_spans
from clinveil.scale import processes
from clinveil.utility.deidentification.grid import grid_notes, sample
from clinveil.utility.deidentification.grid_findings import grid_findings, scored
from clinveil.utility.deidentification.on_gold import (
    ErrorList,
    GoldNote,
    Survival,
    gold_findings,
    tally_notes,
)
from clinveil.utility.evaluations import (
    Evaluated,
    Evaluation,
    EvaluationInput,
    as_corpus,
    name_of,
)

Detections = Iterator[tuple[Note, list[Span]]]  # a note, and the spans detected in it


def on_gold(
    settings: Deidentification,
    corpus: Corpus,
    truth: GoldSpans,
    *,
    detected: GoldSpans | None = None,
    errors: ErrorList | None = None,
) -> list[Finding]:
    """Compare clinveil's detections, or those of another tool (`detected`), with gold spans.

    Args:
        errors: list for missed identifiers and false positives.

    Raises InputError for notes and spans that do not fit each other.
    """
    ids = []
    # Refuse spans that do not fit the notes before the slow detection starts.
    for note in rows(corpus):
        ids.append(note.note_id)
        truth.of(note.note_id, note.text)
    truth.refuse_unknown(ids)
    if detected is None:  # the same passes as `deidentify`
        patients = (
            read_patients(settings.identifiers.patients) if settings.identifiers.patients else None
        )
        deidentifier = NoteDeidentifier.of(
            settings.identifiers, Key.generate(), patients=patients, keep_spans=True
        )
        detections: Detections = found_spans(corpus, deidentifier, processes(settings.workers))
    else:
        detections = _detected_in(corpus, detected)
    selected = (
        GoldNote(*note, truth.of(note.note_id, note.text), spans)
        for note, spans in detections
        if _selected(settings, truth, note)
    )
    read = errors.add if errors is not None else None
    tally = tally_notes(selected, complete=not settings.incomplete, read=read)
    if not tally.labels:
        raise InputError(
            "no gold span is in these notes", where=truth.name, hint="use the note ids of the notes"
        )
    return gold_findings(tally, _clusters(corpus))


def in_output(
    settings: Deidentification, corpus: Corpus, truth: GoldSpans, output: Corpus
) -> list[Finding]:
    """Return the identifiers that remain in released notes. Raises InputError as `on_gold` does."""
    written = {note.note_id: note for note in rows(output)}
    survival = Survival()
    before = None
    ids = list[str]()
    for note in rows(corpus):
        ids.append(note.note_id)
        released = written.get(note.note_id)
        spans = truth.of(note.note_id, note.text)
        if released is not None and _selected(settings, truth, note):
            other = None if before is None or before.patient_id == note.patient_id else before.text
            survival.add(GoldNote(*note, spans, ()), released.text, other)
            before = released
    truth.refuse_unknown(ids)
    if not survival.counts:
        hint = "use the original note ids in the released notes"
        raise InputError("no released note has a gold span", where=truth.name, hint=hint)
    return list(survival.findings(_clusters(corpus)))


def _clusters(corpus: Corpus) -> str:
    return "patients" if corpus.columns.has_patients else "notes"


def _selected(settings: Deidentification, truth: GoldSpans, note: Note) -> bool:
    return not settings.listed or note.note_id in truth.marks


def _detected_in(corpus: Corpus, detected: GoldSpans) -> Detections:
    """Yield the detections of a file."""
    ids = []
    for note in rows(corpus):
        ids.append(note.note_id)
        yield note, detected.of(note.note_id, note.text)
    detected.refuse_unknown(ids)


_SPANS = ".jsonl, or a folder of BRAT or of i2b2/n2c2 .xml"


class Deidentification(Evaluation):
    """Measure recall of identifiers, on notes with gold spans or on a grid of invented notes."""

    inputs: ClassVar[Mapping[str, EvaluationInput]] = {
        "notes": EvaluationInput("Original notes with identifiers (not with --grid)."),
        "gold": EvaluationInput(f"Gold spans: {_SPANS}.", "--gold"),
        "found": EvaluationInput(
            "Score the spans of another tool, in one of these formats.", "--found"
        ),
        "output": EvaluationInput(
            "Score the identifiers left in these de-identified notes.", "--output"
        ),
        "errors": EvaluationInput(
            "Write missed and false detections to a file (SECRET: note text).", "--errors"
        ),
        "labels": EvaluationInput(
            'TOML file that maps labels: THEIRS = "OURS" ("" for none).', "--labels"
        ),
    }
    shown = "grid identifiers.engine seed"
    identifiers: PhiSettings = group(PhiSettings)
    notes: LabelledNotesSettings = group(LabelledNotesSettings)
    offsets: Literal["codepoints", "bytes", "utf16"] = setting(
        "codepoints",
        "Unit of span offsets: code points, UTF-8 bytes, or UTF-16 units (Java, browsers).",
    )
    listed: bool = setting(False, "Use only notes that SPANS lists (an annotated sample).")
    incomplete: bool = setting(
        False, "SPANS lacks some identifiers of its notes, so precision is not measured."
    )
    grid: bool = setting(False, "Measure on a grid of invented notes instead.")
    size: int | None = setting(None, "Number of notes of the grid to sample.", ge=1)
    workers: int = WORKERS
    seed: int | None = SEED

    def __call__(
        self, arguments: Mapping[str, Any], seed: int = 1, say: Say = lambda line: None
    ) -> Evaluated:
        """Return recall and precision, or the identifiers that remain in `output`, or the findings
        of the grid.
        """
        held: dict[str, Any] = {name: arguments.get(name) for name in self.inputs}
        self._refuse_together(held)
        errors = ErrorList() if held["errors"] is not None else None
        if self.grid:
            find = Finder.of(self.identifiers).find
            rng = default_rng(seed)
            notes = sample(rng, self.size) if self.size else list(grid_notes(rng))
            if errors is not None:
                tally_notes(
                    (GoldNote(n.note_id, "", n.text, n.gold, find(n.text)) for n in notes),
                    read=errors.add,
                )
            findings = grid_findings(list(scored(notes, find)))
            title = f"{len(notes):,} notes of the grid (seed {seed})"
        else:
            findings, title = self._on_gold(held, errors)
        remarks = []
        if errors is not None:
            path = Path(held["errors"])
            remarks.append(
                f"SECRET: {errors.write(path):,} errors with text of the notes in {path.name}"
            )
        return Evaluated(findings, title, None if self.grid else 0, remarks=remarks)

    def _on_gold(
        self, held: Mapping[str, Any], errors: ErrorList | None
    ) -> tuple[list[Finding], str]:
        scheme = Scheme(self.offsets, read_labels(held["labels"]) if held["labels"] else {})
        gold = held["gold"]
        corpus = as_corpus(held["notes"], self.notes)
        truth, found = (
            read_spans(spans, scheme) if isinstance(spans, Path) else spans
            for spans in (gold, held["found"])
        )
        title = f"{name_of(held['notes'], 'notes')}, gold spans of {name_of(gold, 'the gold')}"
        if held["output"] is not None:
            output = as_corpus(held["output"], self.notes)
            return in_output(
                self, corpus, truth, output
            ), f"{title}, left in {name_of(held['output'], 'the output')}"
        title += f", detected by {name_of(found, 'another tool')}" if found is not None else ""
        return on_gold(self, corpus, truth, detected=found, errors=errors), title

    def _refuse_together(self, held: Mapping[str, Any]) -> None:
        """Raise UsageError for inputs that cannot be combined."""
        flags = {"notes": "NOTES", "gold": "--gold", "found": "--found", "output": "--output"}
        present = [flag for name, flag in flags.items() if held[name] is not None]
        errors = held["errors"]
        if self.grid and present:
            raise UsageError(
                f"--grid cannot be combined with {', '.join(present)}", hint="pass one of the two"
            )
        if not self.grid and (held["notes"] is None or held["gold"] is None):
            raise UsageError(
                "no notes to measure on", hint="pass NOTES and --gold SPANS, or --grid"
            )
        if {"--found", "--output"} <= {*present} or (
            held["output"] is not None and errors is not None
        ):
            raise UsageError(
                "--output cannot be combined with --found or --errors", hint="run the command twice"
            )
        if errors is not None and (errors.exists() or not errors.absolute().parent.is_dir()):
            where = f"--errors {errors.name}"
            raise UsageError(
                "the file exists, or its folder does not", where=where, hint="pass a new file"
            )
