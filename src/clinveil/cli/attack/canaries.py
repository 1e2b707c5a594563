"""`clinveil attack canaries`: plant invented secrets in an audit copy of the training, and look for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, settings_command
from clinveil.cli.progress import say_unless
from clinveil.core.settings import QUIET, SEED, NotesSettings, Settings, flag, group
from clinveil.lm.recipe import ModelSettings

app = typer.Typer(add_completion=False)


class CanarySettings(Settings):
    """Everything that `clinveil attack canaries` can be told."""

    lm: ModelSettings = group(ModelSettings)
    notes: NotesSettings = group(NotesSettings)
    seed: int | None = SEED
    quiet: bool = QUIET

    workers: int = flag(1, "Threads of PyTorch; with one, the same seed gives the same bits.", ge=1, le=1024)
    each: int = flag(5, "Canaries of every family and number of repeats.", ge=1)
    repeats: tuple[int, ...] = flag((1, 2, 4, 8, 16), "How often a canary is planted; repeatable.")
    prepared: bool = flag(False, "NOTES are in MedText's form already.")


@settings_command(app, CanarySettings, name="canaries")
def canaries(
    settings: CanarySettings,
    notes: Annotated[Path, typer.Argument(help="The training notes; the copy with canaries is never written.")],
    json: JsonOut = None,
) -> None:
    """Train on a copy with canaries in it; how far the model, and its synthetic notes alone, give them away."""
    import secrets

    import numpy as np

    from clinveil.attacks.attack import Context
    from clinveil.attacks.models.canaries import Canaries
    from clinveil.cli.findings import say_findings
    from clinveil.core.errors import UsageError
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes

    if not settings.repeats or min(settings.repeats) < 1:
        raise UsageError("--repeats takes whole numbers from 1")
    if settings.lm.neural:
        from clinveil.core.neural import need_torch

        need_torch()
    seed = secrets.randbelow(2**31) if settings.seed is None else settings.seed
    read = read_notes(open_corpus(notes, settings.notes), prepared=settings.prepared)
    attack = Canaries(lm=settings.lm, seed=seed, each=settings.each, repeats=settings.repeats)
    context = Context(training=read, workers=settings.workers, say=say_unless(settings.quiet))
    found = attack(context, np.random.default_rng([seed, 0xCA]))
    title = f"canaries in {notes.name}, {settings.lm.model} {settings.lm.size} (seed {seed}; bits)"
    say_findings("attack canaries", found, seed=seed, json_out=json, title=title)
