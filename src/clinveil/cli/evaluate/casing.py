"""`clinveil evaluate casing`: letter-case restoration with a character model of the notes (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.utility.casing import CasingSettings

app = typer.Typer(add_completion=False)
Train = Annotated[Path, typer.Argument(help="Cased text to learn from: a sentence a line (.txt, .txt.gz), or notes.")]
Dev = Annotated[Path | None, typer.Option("--dev", help="Text that says which weights to keep; split off without it.")]
Test = Annotated[Path | None, typer.Option("--test", help="Real cased text to restore; split off TRAIN without it.")]


class EvaluateCasingSettings(Settings):
    """Everything that `clinveil evaluate casing` can be told."""

    model: CasingSettings = group(CasingSettings)
    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET

    workers: int = flag(1, "Threads of PyTorch; with one, the same seed gives the same bits.", ge=1, le=1024)


@settings_command(app, EvaluateCasingSettings, name="casing")
def casing(
    settings: EvaluateCasingSettings, train: Train, dev: Dev = None, test: Test = None, json: JsonOut = None
) -> None:
    """Train a character model and let it restore the case of text in lower case; F1 beside each word's usual casing."""
    import secrets

    import numpy as np

    from clinveil.cli.findings import say_findings
    from clinveil.core.neural import device_named
    from clinveil.utility.casing import measure
    from clinveil.utility.casing.lines import read_lines, split_lines

    device_named(settings.model.device)
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    rng, how = np.random.default_rng(seed), settings.model
    others = (read_lines(path, settings.notes) if path else None for path in (dev, test))
    parts = split_lines(read_lines(train, settings.notes), next(others), next(others), rng)
    on_look = None if settings.quiet else _say_look
    findings = measure.casing(parts, rng, how, threads=settings.workers, on_look=on_look)
    title = f"{train.name}, {how.size}, beam {how.beam}, state by {how.state} (seed {seed})"
    say_findings("evaluate casing", findings, seed=seed, json_out=json, title=title)


def _say_look(step: int, epochs: float, loss: float) -> None:
    typer.echo(f"step {step:,}, pass {epochs:.2f}: dev loss {loss:.4f} nats a character", err=True)
