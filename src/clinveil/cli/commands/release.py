"""`clinveil release`: Make a release of notes and check it before it may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, OutOrPlan, VectorsGiven
from clinveil.core.errors import UsageError
from clinveil.releases.earlier.parent import ParentRelease
from clinveil.releases.pipeline import dry_run
from clinveil.releases.pipeline import release as run_release
from clinveil.releases.settings import ReleaseSettings

_ADD = "Add NOTES to the release of --vault, with its key and settings."
_VAULT = "Vault of the release to add to (OUT/vault); read only."
_FLAGS = {
    "Input": "text id patient label patients staff from_sql uri",
    "What leaves": "out kind keep shift add vault",
    "Protection": "min_patients vectors more_text again",
    "Running": "config set on workers seed force quiet",
}


@command("release", ReleaseSettings, flags=_FLAGS)
def release(
    run: Run[ReleaseSettings],
    notes: NotesOrQuery,
    out: OutOrPlan = None,
    vectors: VectorsGiven = None,
    add: Annotated[bool, typer.Option("--add", help=_ADD)] = False,
    vault: Annotated[Path | None, typer.Option("--vault", help=_VAULT)] = None,
) -> None:
    """Release notes as obfuscated text, codes, de-identified notes or synthetic notes.

    Writes the release, a vault of secrets and a report. Without -o, prints the plan and writes
    nothing.
    """
    if add != (vault is not None):
        hint = (
            "pass --vault OUT/vault of the release to add to"
            if add
            else "pass --add, or leave --vault out"
        )
        given = ("--add", "the vault of the release to add to") if add else ("--vault", "--add")
        raise UsageError(f"{given[0]} requires {given[1]}", hint=hint)
    base = ParentRelease.read(vault) if vault else None
    if out is None:
        for line in dry_run(notes, run.settings, vectors=vectors, base=base):
            typer.echo(line)
        return
    outcome = run_release(notes, out, run.settings, vectors=vectors, base=base, say=run.say)
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)
