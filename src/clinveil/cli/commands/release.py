"""`clinveil release`: Make a release of notes and check it before it may leave."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, OutOrPlan, VectorsGiven
from clinveil.cli.progress import say
from clinveil.core import UsageError
from clinveil.releases import DESCRIPTIONS, ReleaseSettings, ReusedRun, dry_run
from clinveil.releases import release as run_release

_REUSE = "Reuse key, vectors, channel and model of an earlier run (its OUT/vault)."


@command("release", ReleaseSettings, flags=ReleaseSettings.FLAGS, resumes=True)
def release(
    run: Run[ReleaseSettings],
    notes: NotesOrQuery,
    out: OutOrPlan = None,
    vectors: VectorsGiven = None,
    reuse: Annotated[Path | None, typer.Option("--reuse", metavar="VAULT", help=_REUSE)] = None,
) -> None:
    """Release notes as obfuscated text, de-identified notes or synthetic notes.

    Writes the release, a vault of secrets and a report. Without -o, prints the plan and writes
    nothing. Without --as, asks for the kind.
    """
    reused = ReusedRun.read(reuse) if reuse else None
    settings = run.settings
    if reused is None and not settings.kind:
        settings = settings.with_kind(_asked_kind(quiet=settings.quiet))
    if out is None:
        for line in dry_run(notes, settings, vectors=vectors, reused=reused):
            typer.echo(line)
        return
    outcome = run_release(notes, out, settings, vectors=vectors, reused=reused, say=run.say)
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)


def _asked_kind(*, quiet: bool) -> str:
    """Print the kinds, and ask for one in a terminal. Raises UsageError elsewhere."""
    width = max(map(len, DESCRIPTIONS))
    say("A release has no default kind:")
    for name, text in DESCRIPTIONS.items():
        say(f"  {name:<{width}}  {text}")
    if quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("no kind of release", hint="pass --as KIND")
    while True:
        answer = str(typer.prompt("Kind", err=True)).strip().lower()
        chosen = [name for name in DESCRIPTIONS if answer and name.startswith(answer)]
        if len(chosen) == 1:
            return chosen[0]
        say(f"type one of {', '.join(DESCRIPTIONS)}")
