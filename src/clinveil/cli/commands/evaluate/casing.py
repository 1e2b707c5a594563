"""`clinveil evaluate casing`: Restore letter case with a character model of the notes (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core.neural import device_named
from clinveil.core.settings import flag, group
from clinveil.utility.casing import CasingSettings

Train = Annotated[
    Path, typer.Argument(help="Training text with case: one sentence per line (.txt, .txt.gz), or notes.")
]
Dev = Annotated[Path | None, typer.Option("--dev", help="Validation text (default: split off TRAIN).")]
Test = Annotated[Path | None, typer.Option("--test", help="Test text with case (default: split off TRAIN).")]


class EvaluateCasingSettings(MeasureSettings):
    """Settings of `clinveil evaluate casing`."""

    model: CasingSettings = group(CasingSettings)
    workers: int = flag(1, "Threads of PyTorch; one makes results repeatable.", ge=1, le=1024)


@command("evaluate casing", EvaluateCasingSettings, flags="seed", findings=True)
def casing(run: Run[EvaluateCasingSettings], train: Train, dev: Dev = None, test: Test = None) -> None:
    """Train a character model, restore the case of lower-case text, and compare F1 with each word's usual case."""
    how, rng = run.settings.model, run.rng()
    device_named(how.device)  # before what imports PyTorch
    from clinveil.utility.casing import casing as measure
    from clinveil.utility.casing.lines import read_lines, split_lines

    reading = run.settings.notes
    others = (read_lines(path, reading) if path else None for path in (dev, test))
    parts = split_lines(read_lines(train, reading), next(others), next(others), rng)

    def report(step: int, epochs: float, loss: float) -> None:
        run.say(f"step {step:,}, pass {epochs:.2f}: dev loss {loss:.4f} nats per character")

    findings = measure(parts, rng, how, threads=run.settings.workers, on_look=report)
    run.show(findings, f"{train.name}, {how.size}, beam {how.beam}, state by {how.state} (seed {run.seed})")
