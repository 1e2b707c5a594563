"""`clinveil study clinicalnlp-2019`: Measure privacy and utility of synthetic notes (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.findings import show_study
from clinveil.cli.options import Out
from clinveil.study.clinicalnlp_2019.settings import StudySettings
from clinveil.study.clinicalnlp_2019.study import run_study


@command("study clinicalnlp-2019", StudySettings, flags="size workers seed force", findings=True)
def clinicalnlp_2019(
    run: Run[StudySettings],
    notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")],
    out: Out,
) -> None:
    """Train language models, write synthetic notes, measure privacy and utility, and print the
    tables of paper C.

    Run the same command again to resume. All of OUT is secret.
    """
    results = run_study(notes, out, run.settings, run.say)
    show_study(run, results, out)
