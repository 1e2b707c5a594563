"""`clinveil review`: Review and correct detected identifiers in a local browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core.progress import track
from clinveil.core.settings import QUIET, Settings, flag
from clinveil.phi.review.desk import Order, decisions_of, open_desk, past_run, review_queue

_OUT = "Output of clinveil deidentify: notes with residues, or all with --spans."
Reviewed = Annotated[Path, typer.Argument(help=_OUT, metavar="OUT")]
NotesNow = Annotated[Path | None, typer.Option("--notes", help="The notes, if they were moved.")]
VaultOf = Annotated[
    Path | None, typer.Option("--vault", help="Vault of the run (default: OUT.vault).")
]


class ReviewSettings(Settings):
    """Settings of `clinveil review`."""

    reviewer: str = flag(
        "first",
        "Name of the reviewer; reviewers do not see each other's work.",
        pattern=r"^[\w-]{1,40}$",
    )
    order: Order = flag(
        "worst", "Show the most doubtful notes first, or keep the order of the file."
    )
    most: int = flag(1000, "Maximum number of notes.", ge=1, le=100_000)
    port: int = flag(0, "Local port of the page (0: any free port).", ge=0, le=65535)
    quiet: bool = QUIET


@command("review", ReviewSettings, flags="reviewer port")
def review(
    run: Run[ReviewSettings], out: Reviewed, notes: NotesNow = None, vault: VaultOf = None
) -> None:
    """Review and correct detected identifiers in a local browser."""
    how = run.settings
    past = past_run(out, vault=vault, notes=notes)
    run.say("sorting the notes by doubt" if how.order == "worst" else "reading the notes")
    entries = review_queue(track(past.entries(), "notes", run.say), how.most, how.order)
    with open_desk(past, entries, how.reviewer) as work:
        try:
            from clinveil.phi.review.server import ReviewServer  # imports the network only now

            with ReviewServer(work, how.port) as server:
                typer.echo(f"open {server.address}")
                say("the address works once, on this machine; end with Ctrl-C or Stop on the page")
                server.serve_forever()
        finally:
            done, all = work.progress()
            decided = decisions_of(past.vault, how.reviewer)
            say(
                f"{done} of {all} notes are reviewed; each decision is saved in"
                f" {'/'.join(decided.parts[-3:])}"
            )
            say(
                f"to apply them: clinveil deidentify {past.notes.name} -o NEW --decisions {decided}"
            )
