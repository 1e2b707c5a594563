"""`clinveil attack canaries`: Plant invented secrets in a copy of the training notes and measure
exposure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from numpy.random import default_rng

from clinveil.attacks import Canaries, Context
from clinveil.cli.command import Run, command
from clinveil.cli.options import MeasureSettings
from clinveil.core import UsageError, group, need_torch, setting
from clinveil.corpus import open_corpus
from clinveil.lm import ModelSettings, read_notes


class CanarySettings(MeasureSettings):
    """Settings of `clinveil attack canaries`."""

    lm: ModelSettings = group(ModelSettings)
    workers: int = setting(1, "Threads of PyTorch; one makes results repeatable.", ge=1, le=1024)
    each: int = setting(5, "Canaries per family and number of repeats.", ge=1)
    repeats: tuple[int, ...] = setting(
        (1, 2, 4, 8, 16), "Times that a canary is planted; repeatable."
    )
    prepared: bool = setting(False, "NOTES are in MedText form already.")


@command("attack canaries", CanarySettings, flags="seed", findings=True)
def canaries(
    run: Run[CanarySettings],
    notes: Annotated[
        Path, typer.Argument(help="Training notes; the copy with canaries is not written.")
    ],
) -> None:
    """Train on a copy with canaries; measure how far the model and its synthetic notes disclose
    them.
    """
    how = run.settings
    if not how.repeats or min(how.repeats) < 1:
        raise UsageError("repeats must be 1 or more")
    if how.lm.neural:
        need_torch()
    read = read_notes(open_corpus(notes, how.notes).without_markup(), prepared=how.prepared)
    attack = Canaries(lm=how.lm, seed=run.seed, each=how.each, repeats=how.repeats)
    found = attack(
        Context(training=read, workers=how.workers, say=run.say), default_rng([run.seed, 0xCA])
    )
    run.show(
        found, f"canaries in {notes.name}, {how.lm.model} {how.lm.size} (seed {run.seed}; bits)"
    )
