"""`clinveil attack copies`: what synthetic notes repeat of the notes that their model was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group

app = typer.Typer(add_completion=False)
Synthetic = Annotated[Path, typer.Argument(help="Synthetic notes: a file or a folder.")]
Training = Annotated[Path, typer.Option("--training", help="The notes that the model was trained on.")]
HeldOut = Annotated[Path, typer.Option("--held-out", help="Notes of other patients, kept from training: the control.")]


class CopiesSettings(Settings):
    """Everything that `clinveil attack copies` can be told."""

    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET

    span: tuple[int, ...] = flag((10, 20, 50), "Words in a row that count as copied; repeatable.")


@settings_command(app, CopiesSettings, name="copies")
def copies(
    settings: CopiesSettings, synthetic: Synthetic, training: Training, held_out: HeldOut, json: JsonOut = None
) -> None:
    """Find runs of words that synthetic notes share with training notes, beside those shared with other patients."""
    import secrets

    import numpy as np

    from clinveil.attacks.text import copies as room
    from clinveil.cli.findings import say_findings
    from clinveil.core.errors import UsageError
    from clinveil.corpus.open import open_corpus

    if not settings.span or min(settings.span) < 2:
        raise UsageError("--span takes whole numbers from 2")
    seed = secrets.randbelow(2**32) if settings.seed is None else settings.seed
    made, seen, other = (open_corpus(path, settings.notes) for path in (synthetic, training, held_out))
    findings = room.copies(made, seen, other, np.random.default_rng(seed), spans=settings.span)
    title = f"{synthetic.name} against {training.name}, control {held_out.name} (seed {seed})"
    say_findings("attack copies", findings, seed=seed, json_out=json, title=title)
