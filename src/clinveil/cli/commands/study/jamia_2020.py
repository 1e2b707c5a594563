"""`clinveil study jamia-2020`: Measure what obfuscation costs on similarity and classification
(paper A).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.findings import show_study
from clinveil.cli.options import Out
from clinveil.study.jamia_2020.study import StudySettings, run_study

Pairs = Annotated[
    list[Path] | None, typer.Option("--pairs", help="Word pairs with human scores; repeatable.")
]


@command("study jamia-2020", StudySettings, flags="label size workers seed force", findings=True)
def jamia_2020(
    run: Run[StudySettings],
    notes: Annotated[Path, typer.Argument(help="Notes: a file or a folder.")],
    out: Out,
    pairs: Pairs = None,
) -> None:
    """Obfuscate with each N, retrain vectors and classifiers, and print the tables of paper A.

    Run the same command again to resume. All of OUT is secret.
    """
    results = run_study(notes, out, run.settings, pairs=tuple(pairs or ()), say=run.say)
    show_study(run, results, out)
