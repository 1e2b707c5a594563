"""`clinveil attack leaveout`: S-PDTP, what a language model's predictions owe to one patient (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.cli.options import JsonOut, settings_command
from clinveil.cli.progress import say_unless

app = typer.Typer(add_completion=False)
DIR = Annotated[Path | None, typer.Option("-o", "--out", help="Folder of the models, secret; the same one goes on.")]


@settings_command(app, LeaveOutSettings, name="leaveout")
def leaveout(
    settings: LeaveOutSettings,
    notes: Annotated[Path, typer.Argument(help="The training notes: a file or a folder.")],
    out: DIR = None,
    json: JsonOut = None,
) -> None:
    """Train with and without each of some patients, and compare; beside it what any other change does to the score."""
    import numpy as np

    from clinveil.attacks.attack import Context
    from clinveil.attacks.models.leaveout import LeaveOneOut
    from clinveil.cli.findings import say_findings
    from clinveil.core.errors import UsageError
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes

    seed = settings.seed
    if seed is None:
        seed = _seed_there(settings, out)
    if settings.mode != "unigram" and out is None:
        raise UsageError("the models need a folder", remedy="-o DIR; the same one goes on where a run stopped")
    if settings.lm.neural and settings.mode != "unigram":
        from clinveil.core.neural import need_torch

        need_torch()
    settings = settings.model_copy(update={"seed": seed})
    training = read_notes(open_corpus(notes, settings.notes), prepared=settings.prepared)
    context = Context(training=training, say=say_unless(settings.quiet))
    found = LeaveOneOut(settings=settings, out=out)(context, np.random.default_rng(seed))
    title = f"S-PDTP on {notes.name}, natural logs; no epsilon, and nothing without its floors (seed {seed})"
    say_findings("attack leaveout", found, seed=seed, json_out=json, title=title)


def _seed_there(settings: LeaveOutSettings, out: Path | None) -> int:
    """That of the folder's earlier run, which this one goes on with; or a fresh one."""
    import secrets

    from clinveil.attacks.models.leaveout.folder import seed_of

    found = None if out is None or settings.mode == "unigram" or settings.force else seed_of(out)
    return secrets.randbelow(2**31) if found is None else found
