"""`clinveil report`: Write the report of a finished release again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core import Settings
from clinveil.releases import rerender_report, withdrawal_of_run


@command("report")
def report(
    _: Run[Settings],
    run: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of a release.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="File to write (default: OUT/vault/report.html)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    dpia: Annotated[
        bool,
        typer.Option("--dpia", help="Write a data protection impact assessment (Markdown)."),
    ] = False,
) -> None:
    """Write the report of a finished release again, from the record in its vault."""
    withdrawal = withdrawal_of_run(run)
    withdrawn = withdrawal.description if withdrawal else ""
    written = rerender_report(run, out, force=force, as_assessment=dpia, withdrawn=withdrawn)
    typer.echo(written)
    if withdrawal:
        say(f"this release was {withdrawal.description}")
