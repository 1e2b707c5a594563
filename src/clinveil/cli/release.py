"""`clinveil release`: the main job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import Out, settings_command
from clinveil.releases.settings import ReleaseSettings

app = typer.Typer()


@settings_command(app, ReleaseSettings, name="release")
def release(
    settings: ReleaseSettings,
    notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")],
    out: Out,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan, and make nothing.")] = False,
) -> None:
    """Protect notes, check the result, and write a release, a vault and a report."""
    from clinveil.releases.pipeline import dry_run as plan_only
    from clinveil.releases.pipeline import release as run

    if dry_run:
        for line in plan_only(notes, settings):
            typer.echo(line)
        return
    outcome = run(notes, out, settings, say=printer(settings.quiet))
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)


def printer(quiet: bool) -> Callable[[str], None]:
    """What says a line on stderr, unless quiet."""

    def say(line: str) -> None:
        if not quiet:
            typer.echo(line, err=True)

    return say
