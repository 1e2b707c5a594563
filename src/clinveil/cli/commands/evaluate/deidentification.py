"""`clinveil evaluate deidentification`: Recall of identifiers, on gold spans or on a grid of invented names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.utility.deidentification.settings import EvaluateDeidentificationSettings as How

Notes = Annotated[Path | None, typer.Argument(help="Notes as they were, with their identifiers; none for --grid.")]
_GOLD = "Gold spans: .jsonl, a folder of BRAT (.txt and .ann), or of i2b2/n2c2 .xml."
Gold = Annotated[Path | None, typer.Option("--gold", help=_GOLD)]
_FOUND = "Spans that another tool found, in one of these forms, in place of our detectors'."
Found = Annotated[Path | None, typer.Option("--found", help=_FOUND)]
_OUTPUT = "The notes that were written, with the same ids: which identifiers still stand in them?"
Output = Annotated[Path | None, typer.Option("--output", help=_OUTPUT)]
_ERRORS = "A new file for what was missed and what was covered without need; SECRET, it holds text of the notes."
Errors = Annotated[Path | None, typer.Option("--errors", help=_ERRORS)]
_LABELS = 'A TOML file of THEIRS = "OURS", for labels that clinveil does not know; "" for no identifier.'
Labels = Annotated[Path | None, typer.Option("--labels", help=_LABELS)]


@command("evaluate deidentification", How, flags="grid seed", findings=True)
def deidentification(
    run: Run[How],
    notes: Notes = None,
    gold: Gold = None,
    found: Found = None,
    output: Output = None,
    errors: Errors = None,
    labels: Labels = None,
) -> None:
    """Measure how much of the identifiers is found, on notes with gold spans or on a grid of invented notes."""
    from clinveil.corpus.gold import Scheme, read_labels, read_spans
    from clinveil.corpus.open import open_corpus
    from clinveil.utility.deidentification import run as job
    from clinveil.utility.deidentification.errors import ErrorList

    how, listed = run.settings, ErrorList() if errors is not None else None
    job.refuse_together(how, {"NOTES": notes, "--gold": gold}, found, output, errors)
    if how.grid:
        findings, size = job.on_grid(how, run.rng(), listed)
        title = f"{size:,} notes of the grid (seed {run.seed})"
    else:
        assert notes is not None and gold is not None
        scheme = Scheme(how.offsets, read_labels(labels) if labels else {})
        truth, corpus = read_spans(gold, scheme), open_corpus(notes, how.notes)
        title = f"{notes.name}, gold spans of {gold.name}"
        if output is not None:
            findings = job.in_output(how, corpus, truth, open_corpus(output, how.notes))
            title += f", what is left in {output.name}"
        else:
            told = read_spans(found, scheme) if found else None
            findings = job.on_gold(how, corpus, truth, found=told, errors=listed)
            title += f", found by {found.name}" if found else ""
    if errors is not None and listed is not None:
        say(f"SECRET: {listed.write(errors):,} errors with text of the notes in {errors.name}")
    if how.all_names:
        say("clinveil: with names that are not held out: for looking, not for claims")
    run.show(findings, title, seed=None if how.grid else 0)
