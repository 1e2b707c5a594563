"""`clinveil compare`: Compare all kinds of release on the same notes, by utility and risk."""

from __future__ import annotations

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out
from clinveil.cli.progress import say
from clinveil.comparison import CompareSettings, compare_releases, table_of


@command(
    "compare",
    CompareSettings,
    flags="label patients kind setting public workers seed force quiet",
    resumes=True,
)
def compare(run: Run[CompareSettings], notes: Notes, out: Out) -> None:
    """Compare all kinds of release on the same notes, by utility and risk.

    Run the same command again to resume. All of OUT is secret.
    """
    comparison = compare_releases(notes, out, run.settings, run.say)
    typer.echo(table_of(comparison).terminal())
    say(f"SECRET: all of {out.name}; open {out.name}/compare.html")
