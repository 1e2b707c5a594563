"""The output of a study: its tables, and its findings as JSON."""

from __future__ import annotations

from pathlib import Path

import typer

from clinveil.cli.command import Run, S
from clinveil.cli.progress import say
from clinveil.core.finding import write_findings
from clinveil.study.engine import Results
from clinveil.study.tables import terminal


def show(run: Run[S], results: Results, out: Path) -> None:
    """Write findings to `--json`, print tables unless the findings go to stdout, and name the secret folder."""
    if run.json:
        write_findings(run.json, run.command, results.findings, seed=results.settings.seed)
    if run.json != "-":
        typer.echo(terminal(results.tables))
    say(f"SECRET: all of {out.name}; read {out.name}/tables.md")
