"""`clinveil study jamia-2020`: paper A's study on notes of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, Out, settings_command
from clinveil.cli.progress import say_unless
from clinveil.core.errors import UsageError
from clinveil.study.jamia_2020.settings import StudySettings

app = typer.Typer(add_completion=False)
Pairs = Annotated[list[Path] | None, typer.Option("--pairs", help="Word pairs with people's scores; repeatable.")]
References = Annotated[
    list[str] | None, typer.Option("--reference-vectors", help="NAME=FILE: vectors of other text; repeatable.")
]


@settings_command(app, StudySettings, name="jamia-2020")
def jamia_2020(
    settings: StudySettings,
    notes: Annotated[Path, typer.Argument(help="Original notes: a file or a folder.")],
    out: Out,
    pairs: Pairs = None,
    reference_vectors: References = None,
    json_out: JsonOut = None,
) -> None:
    """Obfuscate by every N, retrain vectors and classifiers, print the paper's tables with what was lost.

    The same command goes on where an earlier run stopped. All of DIR is secret.
    """
    from clinveil.core.finding import write_findings
    from clinveil.study.jamia_2020.study import run_study
    from clinveil.study.tables import terminal

    references = dict(map(_named, reference_vectors or ()))
    say = say_unless(settings.quiet)
    results = run_study(notes, out, settings, pairs=tuple(pairs or ()), references=references, say=say)
    if json_out:
        write_findings(json_out, "study jamia-2020", results.findings, seed=settings.seed)
    if json_out != "-":
        typer.echo(terminal(results.tables))
    typer.echo(f"SECRET: all of {out.name}; begin with {out.name}/study.html", err=True)


def _named(said: str) -> tuple[str, Path]:
    name, equals, path = said.partition("=")
    if not (name and equals and path):
        raise UsageError("--reference-vectors takes NAME=FILE")
    return name, Path(path)
