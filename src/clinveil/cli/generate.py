"""`clinveil generate`: an invented corpus of consultation notes with its truth."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from clinveil.cli.options import Out, settings_command
from clinveil.cli.progress import say_unless
from clinveil.core.settings import FORCE, QUIET, WORKERS, Settings, flag

app = typer.Typer(add_completion=False)


class GenerateSettings(Settings):
    """Everything that `clinveil generate` can be told."""

    workers: int = WORKERS
    quiet: bool = QUIET
    force: bool = FORCE

    patients: int = flag(500, "How many invented patients; each has several notes.", ge=1, le=9_000_000)
    seed: int = flag(1, "An ordinary seed: the same seed makes the same corpus.", ge=0)


@settings_command(app, GenerateSettings, name="generate")
def generate(settings: GenerateSettings, out: Out) -> None:
    """Write an invented corpus of consultation notes: notes, patients, codes and gold PHI spans."""
    from clinveil.corpus.demo import write_demo

    say = say_unless(settings.quiet)
    say(f"seed {settings.seed}, {settings.patients} patients; all of it is invented")
    made = write_demo(
        out,
        settings.patients,
        settings.seed,
        workers=settings.workers,
        force=settings.force,
        progress=_progress(say, settings.patients),
    )
    say(f"{made.notes} notes of {made.patients} patients, {made.spans} PHI spans")
    for file in made.files:
        typer.echo(str(file))


def _progress(say: Callable[[str], None], patients: int) -> Callable[[int], None]:
    if not sys.stderr.isatty():
        return lambda done: None
    return lambda done: say(f"{done} of {patients} patients")
