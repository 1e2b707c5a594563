"""`clinveil attack copies`: Find word sequences that synthetic notes copy from training notes."""

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
Training = Annotated[Path, typer.Option("--training", help="Notes that the model was trained on.")]
HeldOut = Annotated[Path, typer.Option("--held-out", help="Control: notes of other patients, not used for training.")]


class CopiesSettings(Settings):
    """Settings of `clinveil attack copies`."""

    attack: Copies = group(Copies)
    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET


@command("attack copies", CopiesSettings, flags="seed", findings=True)
def copies(run: Run[CopiesSettings], synthetic: Synthetic, training: Training, held_out: HeldOut) -> None:
    """Find word sequences that synthetic notes share with training notes; compare with notes of other patients."""
    synthetic_notes, training_notes, others = (
        open_corpus(path, run.settings.notes) for path in (synthetic, training, held_out)
    )
    findings = run.settings.attack(
        Context(released=synthetic_notes, training=training_notes, held_out=others), run.rng()
    )
    run.show(findings, f"{synthetic.name} against {training.name}, control {held_out.name} (seed {run.seed})")
