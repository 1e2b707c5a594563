"""`clinveil validate`: Estimate recall without annotated notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core.errors import UsageError
from clinveil.phi.settings import ValidateSettings

_NOTES = "Notes; with --marked and without -o, the folder of the run."
_OUT = "Private folder of the run; it will contain note text."
_MARKED = "Annotated samples (locations.csv or marks.csv), for recall with an interval."


@command("validate", ValidateSettings, flags="patients workers seed force quiet", findings=True)
def validate(
    run: Run[ValidateSettings],
    notes: Annotated[Path, typer.Argument(help=_NOTES)],
    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT, show_default=False)] = None,
    marked: Annotated[Path | None, typer.Option("--marked", help=_MARKED)] = None,
) -> None:
    """Estimate recall on your own notes without gold spans, and draw samples to annotate."""
    from clinveil.phi.validation.run import recall_of_marks, validate_notes

    if marked is not None:
        found = recall_of_marks(marked, out or notes, notes if out else None)
        run.show(found, f"recall from {marked.name}", seed=0)
        return
    if out is None:
        raise UsageError("no folder for the result", hint="pass -o FOLDER, a new private folder")
    found, seed = validate_notes(notes, out, run.settings, say=run.say)
    run.show(
        found,
        f"{notes.name}, without gold spans (seed {seed}; survival: lower is safer)",
        seed=seed,
    )
    say(f"SECRET: {out.name}/locations.html and locations.csv contain note text")
    say(f"annotate the samples in one of them, then: clinveil validate --marked MARKS {out.name}")
