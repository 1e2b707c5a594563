"""`clinveil generate`: Write an invented corpus of consultation notes with its truth."""

from __future__ import annotations

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Out
from clinveil.core.settings import FORCE, QUIET, WORKERS, Settings, flag
from clinveil.corpus.demo import write_demo


class GenerateSettings(Settings):
    """Everything that `clinveil generate` can be told."""

    workers: int = WORKERS
    quiet: bool = QUIET
    force: bool = FORCE
    patients: int = flag(500, "How many invented patients; each has several notes.", ge=1, le=9_000_000)
    unlisted: bool = flag(
        False, "Names that stand in no list of this package, in other wordings: what finding is worth on new ones."
    )
    seed: int = flag(1, "An ordinary seed: the same seed makes the same corpus.", ge=0)


@command("generate", GenerateSettings)
def generate(run: Run[GenerateSettings], out: Out) -> None:
    """Write an invented corpus of consultation notes: notes, patients, codes and gold PHI spans."""
    how = run.settings
    run.say(f"seed {how.seed}, {how.patients} patients; all of it is invented")
    with run.say.count("patients", how.patients) as show:
        more = {"unlisted": how.unlisted, "force": how.force}
        made = write_demo(out, how.patients, how.seed, workers=how.workers, progress=show, **more)
    run.say(f"{made.notes} notes of {made.patients} patients, {made.spans} PHI spans")
    for file in made.files:
        typer.echo(str(file))
