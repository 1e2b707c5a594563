"""`clinveil review`: Go through what was found in notes, in a browser on this machine, and put it right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core.progress import track
from clinveil.core.settings import QUIET, Settings, flag
from clinveil.phi.review.desk import Desk, decisions_of, desk
from clinveil.phi.review.queue import Order, past_run, queue

Reviewed = Annotated[Path, typer.Argument(help="What clinveil deidentify NOTES -o OUT --spans wrote.", metavar="OUT")]
NotesNow = Annotated[Path | None, typer.Option("--notes", help="The notes, if they lie elsewhere now.")]
VaultOf = Annotated[Path | None, typer.Option("--vault", help="The vault of the run (default: OUT.vault).")]


class ReviewSettings(Settings):
    """Settings of `clinveil review`."""

    reviewer: str = flag("first", "Who reviews; each reviewer sees nothing of the others.", pattern=r"^[\w-]{1,40}$")
    order: Order = flag("worst", "The notes with most to doubt first, or as they stand in the file.")
    most: int = flag(1000, "So many notes at most.", ge=1, le=100_000)
    port: int = flag(0, "Port of the page on this machine (0: any that is free).", ge=0, le=65535)
    quiet: bool = QUIET


@command("review", ReviewSettings, flags="reviewer port")
def review(run: Run[ReviewSettings], out: Reviewed, notes: NotesNow = None, vault: VaultOf = None) -> None:
    """Go through what was found in notes, in a browser on this machine, and put it right."""
    how, past = run.settings, past_run(out, vault=vault, notes=notes)
    run.say("looking for the notes with most to doubt" if how.order == "worst" else "reading the notes")
    entries = queue(track(past.entries(), "notes", run.say), how.most, how.order)
    with desk(past, entries, how.reviewer) as work:
        try:
            _serve(work, how.port)
        finally:
            done, all = work.progress()
            decided = decisions_of(past.vault, how.reviewer)
            say(f"{done} of {all} notes are done; each decision is saved in {'/'.join(decided.parts[-3:])}")
            say(f"to apply them: clinveil deidentify {past.notes.name} -o NEW --decisions {decided}")


def _serve(work: Desk, port: int) -> None:
    from clinveil.phi.review.server import ReviewServer  # the network, only now

    with ReviewServer(work, port) as server:
        typer.echo(f"open {server.address}")
        say("for a browser on this machine, once; Ctrl-C or the page's Stop ends it")
        server.serve_forever()
