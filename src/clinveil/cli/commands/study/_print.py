"""What a study prints: its findings as JSON where they were asked for, and its tables."""

from __future__ import annotations

from pathlib import Path

import typer

from clinveil.cli.command import Run, S
from clinveil.cli.progress import say
from clinveil.core.finding import write_findings
from clinveil.study.engine import Results
from clinveil.study.tables import terminal


def show(run: Run[S], results: Results, out: Path) -> None:
    """Findings to `--json`, tables to stdout unless the findings go there, and what is secret."""
    if run.json:
        write_findings(run.json, run.command, results.findings, seed=results.settings.seed)
    if run.json != "-":
        typer.echo(terminal(results.tables))
    say(f"SECRET: all of {out.name}; begin with {out.name}/study.html")
