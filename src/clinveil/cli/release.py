"""`clinveil release`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import Out, settings_command
from clinveil.settings import ReleaseSettings

app = typer.Typer()


@settings_command(app, ReleaseSettings, name="release")
def release(
    settings: ReleaseSettings, notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")], out: Out
) -> None:
    """Protect notes, check the result, and write a release, a vault and a report."""
    typer.echo(repr(settings))
