"""`clinveil study clinicalnlp-2019`: Paper C: synthetic notes by dropout, privacy with its floors, audits, utility."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.commands.study._print import show
from clinveil.cli.options import Out
from clinveil.study.clinicalnlp_2019.settings import StudySettings
from clinveil.study.clinicalnlp_2019.study import run_study


@command("study clinicalnlp-2019", StudySettings, flags="size workers seed force", findings=True)
def clinicalnlp_2019(
    run: Run[StudySettings],
    notes: Annotated[Path, typer.Argument(help="Real notes: a file or a folder.")],
    out: Out,
) -> None:
    """Train models by dropout, write synthetic notes, and measure privacy with its floors, audits and utility.

    The same command goes on where an earlier run stopped. All of DIR is secret.
    """
    results = run_study(notes, out, run.settings, run.say)
    show(run, results, out)
