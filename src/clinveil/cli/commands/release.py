"""`clinveil release`: Make a release of notes and check it before it may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, OutOrPlan, VectorsGiven
from clinveil.releases import ReleaseSettings, ReusedRun, dry_run
from clinveil.releases import release as run_release

_REUSE = "Reuse key, vectors, channel and model of an earlier run (its OUT/vault)."


@command("release", ReleaseSettings, flags=ReleaseSettings.FLAGS)
def release(
    run: Run[ReleaseSettings],
    notes: NotesOrQuery,
    out: OutOrPlan = None,
    vectors: VectorsGiven = None,
    reuse: Annotated[Path | None, typer.Option("--reuse", metavar="VAULT", help=_REUSE)] = None,
) -> None:
    """Release notes as obfuscated text, de-identified notes or synthetic notes.

    Writes the release, a vault of secrets and a report. Without -o, prints the plan and writes
    nothing.
    """
    reused = ReusedRun.read(reuse) if reuse else None
    if out is None:
        for line in dry_run(notes, run.settings, vectors=vectors, reused=reused):
            typer.echo(line)
        return
    outcome = run_release(notes, out, run.settings, vectors=vectors, reused=reused, say=run.say)
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)
