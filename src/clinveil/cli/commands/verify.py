"""`clinveil verify`: Check a release's hashes, schema and manifest; needs no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core.settings import Settings
from clinveil.releases.manifest import verify as checks


@command("verify")
def verify(_: Run[Settings], folder: Annotated[Path, typer.Argument(help="The release folder.")]) -> None:
    """Check a release's hashes, schema and manifest; needs no secret."""
    results = checks(folder)
    for check in results:
        said = f" ({check.said})" if check.said else ""
        typer.echo(f"{'ok     ' if check.passed else 'FAILED '} {check.what}{said}")
    if not all(check.passed for check in results):
        raise typer.Exit(4)
