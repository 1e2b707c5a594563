"""`clinveil reidentify`: Put back what deidentify --crosswalk replaced; needs the key, and a reason for the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out
from clinveil.cli.progress import say
from clinveil.phi.reidentify import ReidentifySettings
from clinveil.phi.reidentify import reidentify as put_back

VaultGiven = Annotated[Path, typer.Option("--vault", help="The vault of the run that wrote NOTES.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it goes into the audit log.", show_default=False)]


@command("reidentify", ReidentifySettings, flags="key force")
def reidentify(run: Run[ReidentifySettings], notes: Notes, out: Out, vault: VaultGiven, reason: Reason) -> None:
    """Put back what deidentify --crosswalk replaced; needs the key, and a reason for the log."""
    done = put_back(notes, out, vault, reason, run.settings)
    say(f"{done.notes} notes put back, with {done.places} identifiers; the audit log says so")
    if done.left_out:
        say(f"{done.left_out} notes left out: the crosswalk does not know them, or they were changed since")
    say("SECRET: these are the notes as they were")
