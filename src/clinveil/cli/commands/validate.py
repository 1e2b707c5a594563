"""`clinveil validate`: What can be known of recall on notes that nobody has marked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core.errors import UsageError
from clinveil.phi.validation.settings import ValidateSettings

_PLACE = "Notes: a file or a folder. With --marked and without -o: the folder of the run."
_OUT = "The folder of the run: private, since it will hold note text."
_MARKED = "Places that were marked: the run's spots.csv, or the marks.csv of its page. Gives recall with an interval."


@command("validate", ValidateSettings, flags="patients workers seed force quiet", findings=True)
def validate(
    run: Run[ValidateSettings],
    notes: Annotated[Path, typer.Argument(help=_PLACE)],
    out: Annotated[Path | None, typer.Option("-o", "--out", help=_OUT, show_default=False)] = None,
    marked: Annotated[Path | None, typer.Option("--marked", help=_MARKED)] = None,
) -> None:
    """Measure on your own notes, without gold, what the engine leaves; draw the places that tell recall when marked."""
    from clinveil.phi.validation.run import recall_of_marks, validate_notes

    if marked is not None:
        found = recall_of_marks(marked, out or notes, notes if out else None)
        run.show(found, f"recall from {marked.name}", seed=0)
        return
    if out is None:
        raise UsageError("says not where the result goes", where="-o", hint="name a new private folder")
    found, seed = validate_notes(notes, out, run.settings, say=run.say)
    run.show(found, f"{notes.name}, without gold (seed {seed}; survival: lower is safer)", seed=seed)
    say(f"SECRET: {out.name}/spots.html and spots.csv hold note text")
    say(f"mark the places in one of them, then: clinveil validate --marked MARKS {out.name}")
