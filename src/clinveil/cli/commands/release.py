"""`clinveil release`: Make a release of notes, of one of four kinds, and check it before it may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import NotesOrQuery, Out, VectorsGiven
from clinveil.core.errors import UsageError
from clinveil.core.remote import place
from clinveil.releases.parent import ParentRelease
from clinveil.releases.pipeline import dry_run as plan_only
from clinveil.releases.pipeline import release as run_release
from clinveil.releases.send import check_target, publish_release
from clinveil.releases.settings import ReleaseSettings

_HELP = "Upload the release here too if all gates pass: s3://…; the vault stays."
_PUBLISH = typer.Option("--publish", parser=place, metavar="URL", help=_HELP)
_ADD = "Add NOTES to the release that --vault names, under its key and settings."
_VAULT = "Vault of the release to add to (OUT/vault); read only. Requires --add."
_WITH = "Notes of that release, to measure both together; repeatable. Requires --add."


@command("release", ReleaseSettings, sets=True)
def release(
    run: Run[ReleaseSettings],
    notes: NotesOrQuery,
    out: Out,
    vectors: VectorsGiven = None,
    publish: Annotated[Path | None, _PUBLISH] = None,
    add: Annotated[bool, typer.Option("--add", help=_ADD)] = False,
    vault: Annotated[Path | None, typer.Option("--vault", help=_VAULT)] = None,
    before: Annotated[list[Path] | None, typer.Option("--with", help=_WITH)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and write nothing.")] = False,
) -> None:
    """Release notes as obfuscated text, codes, de-identified or synthetic notes; write a vault and a report."""
    base = _base(vault, vectors, add=add, before=bool(before))
    if dry_run:
        for line in plan_only(notes, run.settings, vectors=vectors, base=base):
            typer.echo(line)
        return
    how = {"vectors": vectors, "base": base, "before": tuple(before or ())}
    to = check_target(publish, force=run.settings.force) if publish else None
    outcome = run_release(notes, out, run.settings, say=run.say, **how)  # type: ignore[arg-type]
    for line in outcome.summary():
        typer.echo(line)
    if outcome.refused:
        raise typer.Exit(4)
    if to is not None:
        publish_release(out, to, force=run.settings.force)
        typer.echo(f"published {to}")


def _base(vault: Path | None, vectors: Path | None, *, add: bool, before: bool) -> ParentRelease | None:
    """The release that is added to; raises UsageError where flags do not belong together."""
    if add and vault is None:
        raise UsageError("--add requires the vault of the release to add to", hint="pass --vault OUT/vault")
    if vault is not None and not add:
        raise UsageError("--vault requires --add", hint="pass --add, or leave --vault out")
    return ParentRelease.of_flags(vault, vectors, before=before)
