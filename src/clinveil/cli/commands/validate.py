"""`clinveil validate`: Estimate recall without annotated notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core import UsageError
from clinveil.phi import ValidateSettings

_NOTES = "Notes; with --marked, the folder of the run."
_OUT = "Private folder of the run."
_MARKED = "Decisions of clinveil review on the sample, for recall with an interval."


@command(
    "validate",
    ValidateSettings,
    flags="identifiers.patients workers seed force quiet",
    findings=True,
)
def validate(
    run: Run[ValidateSettings],
    notes: Annotated[Path, typer.Argument(help=_NOTES)],
    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT, show_default=False)] = None,
    marked: Annotated[Path | None, typer.Option("--marked", help=_MARKED)] = None,
) -> None:
    """Estimate recall on your own notes without gold spans, and draw a sample to judge."""
    from clinveil.phi import recall_of_marks, validate_notes

    if marked is not None:
        if out is not None:
            raise UsageError("--marked is evaluated in the folder of its run", hint="omit -o")
        findings, command = recall_of_marks(marked, notes)
        run.show(findings, f"recall from {marked.name}", seed=0)
        say(f"to release with these marks: {command}")
        return
    if out is None:
        raise UsageError("no folder for the result", hint="pass -o FOLDER, a new private folder")
    findings, seed = validate_notes(notes, out, run.settings, say=run.say)
    run.show(
        findings,
        f"{notes.name}, without gold spans (seed {seed}; survival: lower is safer)",
        seed=seed,
    )
    say(f"to judge the sample: clinveil review {out.name}")
