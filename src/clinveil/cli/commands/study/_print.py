"""What a study prints: its findings as JSON where they were asked for, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from clinveil.cli.command import Run, S
from clinveil.cli.progress import say
from clinveil.core.finding import Finding, write_findings


def show(run: Run[S], findings: Sequence[Finding], out: Path, tables: Callable[[], str], *, seed: int) -> None:
    """Findings to `--json`, tables to stdout unless the findings go there, and what is secret."""
    if run.json:
        write_findings(run.json, run.command, findings, seed=seed)
    if run.json != "-":
        typer.echo(tables())
    say(f"SECRET: all of {out.name}; begin with {out.name}/study.html")
