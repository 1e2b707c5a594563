"""`clinveil attack inference`: Read an attribute of patients off their released notes, learnt from others' notes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.attack import Context
from clinveil.attacks.text.inference import Inference
from clinveil.cli.command import Run, command
from clinveil.core.errors import UsageError
from clinveil.core.settings import LABEL, QUIET, SEED, NotesSettings, Settings, group
from clinveil.corpus.open import open_corpus

Released = Annotated[Path, typer.Argument(help="Released notes with the attribute in a column: a file or a folder.")]
Known = Annotated[Path | None, typer.Option("--known", help="Plain notes of other patients, with the same column.")]


class InferenceSettings(Settings):
    """Settings of `clinveil attack inference`."""

    attack: Inference = group(Inference)
    notes: NotesSettings = group(NotesSettings)
    label: tuple[str, ...] = LABEL
    seed: int | None = SEED
    quiet: bool = QUIET


@command("attack inference", InferenceSettings, flags="label seed", findings=True)
def inference(run: Run[InferenceSettings], released: Released, known: Known = None) -> None:
    """Read an attribute of patients off their released notes, learnt from other patients' released or plain notes."""
    how = run.settings
    if not how.label:
        raise UsageError("there is no attribute to read", hint="name a column of the notes with --label")
    made, others = (open_corpus(path, how.notes, keep=how.label) if path else None for path in (released, known))
    context = Context(released=made, reference=others, keep=how.label, say=run.say)
    run.show(how.attack(context, run.rng()), f"attributes in {released.name} (seed {run.seed}; lower is safer)")
