"""`clinveil attack inference`: Predict an attribute of patients from their released notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks import Context, Inference
from clinveil.cli.command import EITHER, Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core import UsageError, group
from clinveil.corpus import open_corpus

Released = Annotated[
    Path, typer.Argument(help="Released notes with the attribute in a column."), EITHER
]
Known = Annotated[
    Path | None,
    typer.Argument(help="Original notes of other patients, with the same column."),
    EITHER,
]


class InferenceSettings(MeasureSettings):
    """Settings of `clinveil attack inference`."""

    attack: Inference = group(Inference)


@command("attack inference", InferenceSettings, flags="seed", findings=True)
def inference(run: Run[InferenceSettings], released: Released, known: Known = None) -> None:
    """Predict an attribute of patients from released notes; train on released or original notes of
    others.
    """
    how = run.settings
    label = run.settings.notes.label
    if not label:
        raise UsageError("no attribute to predict", hint="pass --label COLUMN")
    notes, others = (open_corpus(path, how.notes) if path else None for path in (released, known))
    context = Context(released=notes, reference=others, keep=label, say=run.say)
    run.show(
        how.attack(context, run.rng()),
        f"attributes in {released.name} (seed {run.seed}; lower is safer)",
    )
