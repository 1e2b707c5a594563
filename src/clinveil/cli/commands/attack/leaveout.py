"""`clinveil attack leaveout`: Measure S-PDTP: what a language model's predictions owe to one patient (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from numpy.random import default_rng

from clinveil.attacks.models.leaveout.audit import audit_notes
from clinveil.attacks.models.leaveout.closed_form import closed_form
from clinveil.attacks.models.leaveout.folder import FINDINGS, Given, audit_folder, seed_of
from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.cli.command import Run, command
from clinveil.core.errors import UsageError
from clinveil.core.finding import Finding, write_findings
from clinveil.core.neural import need_torch
from clinveil.corpus.open import open_corpus
from clinveil.lm.notes import PlainNotes, read_notes

Folder = Annotated[Path | None, typer.Option("-o", "--out", help="Folder of the models, secret; the same one goes on.")]


@command("attack leaveout", LeaveOutSettings, findings=True)
def leaveout(
    run: Run[LeaveOutSettings],
    notes: Annotated[Path, typer.Argument(help="The training notes: a file or a folder.")],
    out: Folder = None,
) -> None:
    """Train with and without each of some patients, and compare; beside it what any other change does to the score."""
    how = run.settings
    closed = how.mode == "unigram"
    before = None if closed or out is None or how.force or how.seed is not None else seed_of(out)
    seed = run.seed if before is None else before
    if not closed and out is None:
        raise UsageError("the models need a folder", remedy="-o DIR; the same one goes on where a run stopped")
    if how.lm.neural and not closed:
        need_torch()
    read = read_notes(open_corpus(notes, how.notes), prepared=how.prepared)
    if closed or out is None:
        found = closed_form(read, default_rng(seed), by_note=how.unit == "note")
    else:
        found = _models(run, read, seed, out)
    title = f"S-PDTP on {notes.name}, natural logs; no epsilon, and nothing without its floors (seed {seed})"
    run.show(found, title, seed=seed)


def _models(run: Run[LeaveOutSettings], notes: PlainNotes, seed: int, out: Path) -> list[Finding]:
    how = run.settings
    public = read_notes(open_corpus(how.pretrain)) if how.pretrain else None
    with audit_folder(out, Given.of(notes, how, seed, public), force=how.force) as store:
        found = audit_notes(notes, how, seed, store, out, run.say, public=public)
        write_findings(out / FINDINGS, run.command, found, seed=seed)
    run.say(f"SECRET: all of {out.name}; {out.name}/units-*.csv has a row a unit")
    return found
