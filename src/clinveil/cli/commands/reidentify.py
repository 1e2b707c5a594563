"""`clinveil reidentify`: Restore original text from an encrypted crosswalk; the reason is
logged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Notes, Out
from clinveil.cli.progress import say
from clinveil.phi import ReidentifySettings
from clinveil.phi import reidentify as restore

VaultGiven = Annotated[
    Path, typer.Option("--vault", help="Vault of the run that wrote NOTES.", show_default=False)
]
Reason = Annotated[
    str, typer.Option("--reason", help="Reason, for the audit log.", show_default=False)
]


@command("reidentify", ReidentifySettings, flags="key force")
def reidentify(
    run: Run[ReidentifySettings], notes: Notes, out: Out, vault: VaultGiven, reason: Reason
) -> None:
    """Restore original text from the encrypted crosswalk of deidentify. Requires the key; the
    reason is logged.
    """
    done = restore(notes, out, vault, reason, run.settings)
    say(
        f"restored {done.notes} notes with {done.identifiers} identifiers;"
        " recorded in the audit log"
    )
    if done.left_out:
        say(f"{done.left_out} notes left out: not in the crosswalk, or changed since")
    say("SECRET: these are the original notes")
