"""`clinveil study jmir-2020`: paper B's study on notes of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, Out, settings_command
from clinveil.cli.progress import say_unless
from clinveil.study.jmir_2020.settings import StudySettings

app = typer.Typer(add_completion=False)
Patients = Annotated[Path, typer.Option("--patients", help="Known patients: patients.parquet, with names and codes.")]
Codes = Annotated[Path, typer.Option("--codes", help="codes.csv: code, description.")]


@settings_command(app, StudySettings, name="jmir-2020")
def jmir_2020(
    settings: StudySettings,
    notes: Annotated[Path, typer.Argument(help="Notes with their names in place: a file or a folder.")],
    patients: Patients,
    codes: Codes,
    out: Out,
    json_out: JsonOut = None,
) -> None:
    """Train the grid on notes whose names were removed imperfectly, attack every model, print the paper's tables.

    The same command goes on where an earlier run stopped. All of DIR is secret.
    """
    from clinveil.core.finding import write_findings
    from clinveil.study.jmir_2020.study import run_study
    from clinveil.study.tables import terminal

    results = run_study(notes, patients, codes, out, settings, say_unless(settings.quiet))
    if json_out:
        write_findings(json_out, "study jmir-2020", results.findings, seed=settings.seed)
    if json_out != "-":
        typer.echo(terminal(results.tables))
    typer.echo(f"SECRET: all of {out.name}; begin with {out.name}/study.html", err=True)
