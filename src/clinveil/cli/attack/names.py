"""`clinveil attack names`: which name tokens of released vectors belong to one person."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.vectors.names import Names
from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import Settings, flag, group
from clinveil.core.types import Say

app = typer.Typer(add_completion=False)


class NamesAttackSettings(Settings):
    """Everything that `clinveil attack names` can be told."""

    attack: Names = group(Names)
    workers: int = flag(2, "Threads; the result is the same for any number.", ge=1, le=1024)
    seed: int | None = flag(None, "Public seed of re-pairings and bootstrap (default: one is drawn and printed).", ge=0)
    quiet: bool = flag(False, "No messages on stderr.", short="-q")


@settings_command(app, NamesAttackSettings, name="names")
def names(
    settings: NamesAttackSettings,
    vectors: Annotated[list[Path], typer.Argument(help="Word vectors that are to be released; several are compared.")],
    names: Annotated[Path, typer.Option("--names", help="True names: a patients file, or one full name a line.")],
    json_out: JsonOut = None,
) -> None:
    """Pair the name tokens of word vectors into full names, by nearness (paper B, experiment 1)."""
    from numpy.random import default_rng

    from clinveil.attacks.attack import Context
    from clinveil.attacks.vectors.names import read_full_names
    from clinveil.cli.findings import file_names, say_findings
    from clinveil.vectors.files import load_vectors

    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    say: Say = (lambda line: None) if settings.quiet else (lambda line: typer.echo(line, err=True))
    say(f"seed {seed}")
    models, people = [load_vectors(path) for path in vectors], read_full_names(names)
    found = settings.attack(Context(vectors=models, names=people, workers=settings.workers, say=say), default_rng(seed))
    title = f"names in {file_names(vectors)} (seed {seed}; lower is safer)"
    say_findings("attack names", found, seed=seed, json_out=json_out, title=title)
