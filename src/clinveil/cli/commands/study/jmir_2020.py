"""`clinveil study jmir-2020`: Measure what word vectors trained on notes disclose (paper B)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.findings import show_study
from clinveil.cli.options import Out
from clinveil.study.jmir_2020.settings import StudySettings
from clinveil.study.jmir_2020.study import run_study

Patients = Annotated[
    Path,
    typer.Option("--patients", help="Known patients (patients.parquet), with names and codes."),
]
Codes = Annotated[
    Path, typer.Option("--codes", help="Table of codes and descriptions (codes.csv).")
]


@command("study jmir-2020", StudySettings, flags="size workers seed force", findings=True)
def jmir_2020(
    run: Run[StudySettings],
    notes: Annotated[Path, typer.Argument(help="Notes with names: a file or a folder.")],
    patients: Patients,
    codes: Codes,
    out: Out,
) -> None:
    """Train vectors on imperfectly de-identified notes, attack each model, and print the tables of
    paper B.

    Run the same command again to resume. All of OUT is secret.
    """
    results = run_study(notes, patients, codes, out, run.settings, run.say)
    show_study(run, results, out)
