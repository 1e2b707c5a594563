"""`clinveil attack leaveout`: S-PDTP, what a language model's predictions owe to one patient (paper C)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinveil.attacks.models.leaveout.settings import LeaveOutSettings
from clinveil.cli.options import JsonOut, settings_command
from clinveil.cli.progress import say_unless

if TYPE_CHECKING:
    from clinveil.core.finding import Finding
    from clinveil.lm.notes import PlainNotes

app = typer.Typer(add_completion=False)
Say = Callable[[str], None]
DIR = Annotated[Path | None, typer.Option("-o", "--out", help="Folder of the models, secret; the same one goes on.")]


@settings_command(app, LeaveOutSettings, name="leaveout")
def leaveout(
    settings: LeaveOutSettings,
    notes: Annotated[Path, typer.Argument(help="The training notes: a file or a folder.")],
    out: DIR = None,
    json: JsonOut = None,
) -> None:
    """Train with and without each of some patients, and compare; beside it what any other change does to the score."""
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
    read = read_notes(open_corpus(notes, settings.notes), prepared=settings.prepared)
    say: Say = say_unless(settings.quiet)
    if settings.mode == "unigram":
        found = _unigram(read, settings, seed)
    else:
        assert out is not None
        found = _models(read, settings, seed, out, say)
    title = f"S-PDTP on {notes.name}, natural logs; no epsilon, and nothing without its floors (seed {seed})"
    say_findings("attack leaveout", found, seed=seed, json_out=json, title=title)


def _seed_there(settings: LeaveOutSettings, out: Path | None) -> int:
    """That of the folder's earlier run, which this one goes on with; or a fresh one."""
    import secrets

    from clinveil.attacks.models.leaveout.folder import seed_of

    found = None if out is None or settings.mode == "unigram" or settings.force else seed_of(out)
    return secrets.randbelow(2**31) if found is None else found


def _unigram(notes: PlainNotes, settings: LeaveOutSettings, seed: int) -> list[Finding]:
    import numpy as np

    from clinveil.attacks.models.leaveout.closed_form import closed_form

    return closed_form(notes, np.random.default_rng(seed), by_note=settings.unit == "note")


def _models(notes: PlainNotes, settings: LeaveOutSettings, seed: int, out: Path, say: Say) -> list[Finding]:
    from clinveil.attacks.models.leaveout.audit import audit_notes
    from clinveil.attacks.models.leaveout.folder import FINDINGS, Given, audit_folder
    from clinveil.core.finding import write_findings
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes

    public = read_notes(open_corpus(settings.pretrain)) if settings.pretrain else None
    given = Given.of(notes, settings, seed, public)
    with audit_folder(out, given, force=settings.force) as store:
        found = audit_notes(notes, settings, seed, store, out, say, public=public)
        write_findings(out / FINDINGS, "attack leaveout", found, seed=seed)
    say(f"SECRET: all of {out.name}; {out.name}/units-*.csv has a row a unit")
    return found
