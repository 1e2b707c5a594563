"""`clinveil study jmir-2020`: Paper B: what word vectors trained on notes give away; its Tables 1 to 4 on yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.commands.study._print import show
from clinveil.cli.options import Out
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.study import run_study

Patients = Annotated[Path, typer.Option("--patients", help="Known patients: patients.parquet, with names and codes.")]
Codes = Annotated[Path, typer.Option("--codes", help="codes.csv: code, description.")]


@command("study jmir-2020", StudySettings, flags="size workers seed force", findings=True)
def jmir_2020(
    run: Run[StudySettings],
    notes: Annotated[Path, typer.Argument(help="Notes with their names in place: a file or a folder.")],
    patients: Patients,
    codes: Codes,
    out: Out,
) -> None:
    """Train the grid on notes whose names were removed imperfectly, attack every model, print the paper's tables.

    The same command goes on where an earlier run stopped. All of DIR is secret.
    """
    results = run_study(notes, patients, codes, out, run.settings, run.say)
    show(run, results, out)
