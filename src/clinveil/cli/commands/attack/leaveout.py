"""`clinveil attack leaveout`: Measure how much predictions depend on one patient (S-PDTP, paper
C).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from numpy.random import default_rng

from clinveil.attacks import Context, LeaveOneOut, LeaveOutSettings, seed_of
from clinveil.cli.command import Run, command
from clinveil.core import UsageError, need_torch
from clinveil.corpus import open_corpus
from clinveil.lm import read_notes

Folder = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="Secret folder for models; pass it again to resume."),
]


@command("attack leaveout", LeaveOutSettings, flags="mode seed force", findings=True, resumes=True)
def leaveout(
    run: Run[LeaveOutSettings],
    notes: Annotated[Path, typer.Argument(help="Training notes: a file or a folder.")],
    out: Folder = None,
) -> None:
    """Train with and without each of some patients, and compare; also measure the effect of other
    changes.
    """
    how = run.settings
    closed = how.mode == "unigram"
    before = None if closed or out is None or how.force or how.seed is not None else seed_of(out)
    seed = run.seed if before is None else before
    if not closed and out is None:
        raise UsageError("no folder for the models", hint="pass -o FOLDER, again to resume")
    if not closed and how.lm.neural:
        need_torch()
    corpus = open_corpus(notes, how.notes).without_markup()
    context = Context(training=read_notes(corpus, prepared=how.prepared), say=run.say)
    found = LeaveOneOut(settings=how.but(seed=seed), out=out)(context, default_rng(seed))
    title = (
        f"S-PDTP on {notes.name}, natural logs; not an epsilon; compare with the floors (seed"
        f" {seed})"
    )
    run.show(found, title, seed=seed)
