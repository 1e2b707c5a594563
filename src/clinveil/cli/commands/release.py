"""`clinveil release`: The main job: notes in; protected notes, checks and a report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, Out, VectorsGiven
from clinveil.core.remote import place
from clinveil.releases.pipeline import dry_run as plan_only
from clinveil.releases.pipeline import release as run_release
from clinveil.releases.send import check_target, publish_release
from clinveil.releases.settings import ReleaseSettings

_HELP = "Where the release goes too, if all gates pass: s3://…; the vault stays here."
_PUBLISH = typer.Option("--publish", parser=place, metavar="URL", help=_HELP)


@command("release", ReleaseSettings)
def release(
    run: Run[ReleaseSettings],
    notes: NotesOrQuery,
    out: Out,
    vectors: VectorsGiven = None,
    publish: Annotated[Path | None, _PUBLISH] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and make nothing.")] = False,
) -> None:
    """Protect notes, check the result, and write a release, a vault and a report."""
    if dry_run:
        for line in plan_only(notes, run.settings, vectors=vectors):
            typer.echo(line)
        return
    to = check_target(publish, force=run.settings.force) if publish else None
    outcome = run_release(notes, out, run.settings, vectors=vectors, say=run.say)
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)
    if to is not None:
        publish_release(out, to, force=run.settings.force)
        typer.echo(f"published {to}")
