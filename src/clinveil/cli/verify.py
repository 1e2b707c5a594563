"""`clinveil verify`: for whoever receives a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command("verify")
def verify(folder: Annotated[Path, typer.Argument(help="The release folder.")]) -> None:
    """Check a release's hashes, schema and manifest; needs no secret."""
    from clinveil.releases.verify import verify as checks

    results = checks(folder)
    for check in results:
        said = f" ({check.said})" if check.said else ""
        typer.echo(f"{'ok     ' if check.passed else 'FAILED '} {check.what}{said}")
    if not all(check.passed for check in results):
        raise typer.Exit(4)
