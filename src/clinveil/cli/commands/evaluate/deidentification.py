"""`clinveil evaluate deidentification`: Measure recall of identifiers on gold spans or invented notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.utility.deidentification.settings import EvaluateDeidentificationSettings as How

Notes = Annotated[Path | None, typer.Argument(help="Original notes with identifiers (not with --grid).")]
_GOLD = "Gold spans: .jsonl, or a folder of BRAT or of i2b2/n2c2 .xml."
Gold = Annotated[Path | None, typer.Option("--gold", help=_GOLD)]
_FOUND = "Score the spans of another tool, in one of these formats."
Found = Annotated[Path | None, typer.Option("--found", help=_FOUND)]
_OUTPUT = "Score the identifiers left in these de-identified notes."
Output = Annotated[Path | None, typer.Option("--output", help=_OUTPUT)]
_ERRORS = "Write missed and false detections to a file (SECRET: note text)."
Errors = Annotated[Path | None, typer.Option("--errors", help=_ERRORS)]
_LABELS = 'TOML file that maps labels: THEIRS = "OURS" ("" for none).'
Labels = Annotated[Path | None, typer.Option("--labels", help=_LABELS)]


@command("evaluate deidentification", How, flags="grid engine seed", findings=True)
def deidentification(
    run: Run[How],
    notes: Notes = None,
    gold: Gold = None,
    found: Found = None,
    output: Output = None,
    errors: Errors = None,
    labels: Labels = None,
) -> None:
    """Measure recall of identifiers, on notes with gold spans or on a grid of invented notes."""
    from clinveil.corpus.gold import Scheme, read_labels, read_spans
    from clinveil.corpus.open import open_corpus
    from clinveil.utility.deidentification import run as scoring
    from clinveil.utility.deidentification.errors import ErrorList

    how, listed = run.settings, ErrorList() if errors is not None else None
    scoring.refuse_together(how, {"NOTES": notes, "--gold": gold}, found, output, errors)
    if how.grid:
        findings, size = scoring.on_grid(how, run.rng(), listed)
        title = f"{size:,} notes of the grid (seed {run.seed})"
    else:
        assert notes is not None and gold is not None
        scheme = Scheme(how.offsets, read_labels(labels) if labels else {})
        truth, corpus = read_spans(gold, scheme), open_corpus(notes, how.notes)
        title = f"{notes.name}, gold spans of {gold.name}"
        if output is not None:
            findings = scoring.in_output(how, corpus, truth, open_corpus(output, how.notes))
            title += f", left in {output.name}"
        else:
            theirs = read_spans(found, scheme) if found else None
            findings = scoring.on_gold(how, corpus, truth, found=theirs, errors=listed)
            title += f", detected by {found.name}" if found else ""
    if errors is not None and listed is not None:
        say(f"SECRET: {listed.write(errors):,} errors with text of the notes in {errors.name}")
    if how.all_names:
        say("clinveil: includes names that are not held out: do not report these figures")
    run.show(findings, title, seed=None if how.grid else 0)
