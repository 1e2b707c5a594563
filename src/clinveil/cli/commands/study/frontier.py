"""`clinveil study frontier`: What settings keep and give away, on your notes; from it a default is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.commands.study._print import show
from clinveil.cli.options import Out
from clinveil.study.frontier.settings import StudySettings
from clinveil.study.frontier.study import run_study

Patients = Annotated[Path | None, typer.Option("--patients", help="Known patients, whose names are looked for.")]
Known = Annotated[Path | None, typer.Option("--known", help="What is publicly known of the people, with --match.")]
Pairs = Annotated[list[Path] | None, typer.Option("--pairs", help="Word pairs with people's scores; repeatable.")]


@command("study frontier", StudySettings, findings=True)
def frontier(
    run: Run[StudySettings],
    notes: Annotated[Path, typer.Argument(help="Original notes: a file or a folder.")],
    out: Out,
    patients: Patients = None,
    known: Known = None,
    pairs: Pairs = None,
) -> None:
    """Compare vectors, mechanisms and policies by what the strongest attacker reads, who is linked, and what is kept.

    The same command goes on where an earlier run stopped. All of DIR is secret.
    """
    given = {"patients": patients, "known": known, "pairs": tuple(pairs or ())}
    results = run_study(notes, out, run.settings, **given, say=run.say)  # type: ignore[arg-type]
    show(run, results, out)
