"""`clinveil report`: the report of a finished run, once more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer()


@app.command("report")
def report(
    run: Annotated[Path, typer.Argument(metavar="OUT", help="The folder of a release run.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="HTML file (default: OUT/vault/report.html).")] = None,
    edition: Annotated[
        Literal["internal", "external"], typer.Option(help="Internal quotes source text; external does not.")
    ] = "internal",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the report of a finished run again, from the record in its vault."""
    from clinveil.releases.publish import rerender_report

    typer.echo(rerender_report(run, out, edition=edition, force=force))
