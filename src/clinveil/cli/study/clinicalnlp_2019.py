"""`clinveil study clinicalnlp-2019`: paper C's study on notes of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, Out, settings_command
from clinveil.cli.progress import say_unless
from clinveil.study.clinicalnlp_2019.settings import StudySettings

app = typer.Typer(add_completion=False)


@settings_command(app, StudySettings, name="clinicalnlp-2019")
def clinicalnlp_2019(
    settings: StudySettings,
    notes: Annotated[Path, typer.Argument(help="Real notes: a file or a folder.")],
    out: Out,
    json_out: JsonOut = None,
) -> None:
    """Train models by dropout, write synthetic notes, and measure privacy with its floors, audits and utility.

    The same command goes on where an earlier run stopped. All of DIR is secret.
    """
    from clinveil.core.finding import write_findings
    from clinveil.study.clinicalnlp_2019.study import run_study
    from clinveil.study.tables import terminal

    results = run_study(notes, out, settings, say_unless(settings.quiet))
    if json_out:
        write_findings(json_out, "study clinicalnlp-2019", results.findings, seed=settings.seed)
    if json_out != "-":
        typer.echo(terminal(results.tables))
    typer.echo(f"SECRET: all of {out.name}; begin with {out.name}/study.html", err=True)
