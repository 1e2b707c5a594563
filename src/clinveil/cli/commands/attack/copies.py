"""`clinveil attack copies`: Find runs of words that synthetic notes share with training notes, beside a control."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.attack import Context
from clinveil.attacks.text.copies import Copies
from clinveil.cli.command import Run, command
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, group
from clinveil.corpus.open import open_corpus

Synthetic = Annotated[Path, typer.Argument(help="Synthetic notes: a file or a folder.")]
Training = Annotated[Path, typer.Option("--training", help="The notes that the model was trained on.")]
HeldOut = Annotated[Path, typer.Option("--held-out", help="Notes of other patients, kept from training: the control.")]


class CopiesSettings(Settings):
    """Settings of `clinveil attack copies`."""

    attack: Copies = group(Copies)
    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET


@command("attack copies", CopiesSettings, flags="seed", findings=True)
def copies(run: Run[CopiesSettings], synthetic: Synthetic, training: Training, held_out: HeldOut) -> None:
    """Find runs of words that synthetic notes share with training notes, beside those shared with other patients."""
    made, seen, other = (open_corpus(path, run.settings.notes) for path in (synthetic, training, held_out))
    findings = run.settings.attack(Context(released=made, training=seen, held_out=other), run.rng())
    run.show(findings, f"{synthetic.name} against {training.name}, control {held_out.name} (seed {run.seed})")
