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
_WITH = "Notes of that release, to measure both together; repeatable."
_FLAGS = {
    "Input": "text id patient label patients from_sql uri",
    "What leaves": "out kind keep add vault before",
    "Protection": "profile min_patients vectors more_text again",
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
    before: Annotated[list[Path] | None, typer.Option("--with", help=_WITH)] = None,
) -> None:
    """Release notes as obfuscated text, codes, de-identified notes or synthetic notes.

    Writes the release, a vault of secrets and a report. Without -o, prints the plan and writes nothing.
    """
    parent = _parent(vault, vectors, add=add, before=bool(before))
    if out is None:
        for line in dry_run(notes, run.settings, vectors=vectors, base=parent):
            typer.echo(line)
        return
    outcome = run_release(
        notes, out, run.settings, vectors=vectors, base=parent, before=tuple(before or ()), say=run.say
    )
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)


def _parent(vault: Path | None, vectors: Path | None, *, add: bool, before: bool) -> ParentRelease | None:
    """Return the release to add to, if any. Raises UsageError for options that exclude each other."""
    if add and vault is None:
        raise UsageError("--add requires the vault of the release to add to", hint="pass --vault OUT/vault")
    if vault is not None and not add:
        raise UsageError("--vault requires --add", hint="pass --add, or leave --vault out")
    return ParentRelease.of_flags(vault, vectors, before=before)
