"""`clinveil review`: Correct detected identifiers, or judge a sample, in a local browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.progress import say
from clinveil.core import QUIET, Settings, setting, track
from clinveil.phi import Order, SampledRun, decisions_of, open_desk, review_of, review_queue

_OUT = "Output of clinveil deidentify (notes with residues, or all with --spans) or of validate."
Reviewed = Annotated[Path, typer.Argument(help=_OUT, metavar="OUT")]
NotesNow = Annotated[Path | None, typer.Option("--notes", help="The notes, if they were moved.")]
VaultOf = Annotated[
    Path | None, typer.Option("--vault", help="Vault of the run (default: OUT.vault).")
]


class ReviewSettings(Settings):
    """Settings of `clinveil review`."""

    reviewer: str = setting(
        "first",
        "Name of the reviewer; reviewers do not see each other's work.",
        pattern=r"^[\w-]{1,40}$",
    )
    order: Order = setting(
        "worst", "Show the most doubtful notes first, or keep the order of the file."
    )
    most: int = setting(1000, "Maximum number of notes.", ge=1, le=100_000)
    port: int = setting(0, "Local port of the page (0: any free port).", ge=0, le=65535)
    quiet: bool = QUIET


@command("review", ReviewSettings, flags="reviewer port")
def review(
    run: Run[ReviewSettings], out: Reviewed, notes: NotesNow = None, vault: VaultOf = None
) -> None:
    """Correct detected identifiers, or judge a sample, in a local browser."""
    settings = run.settings
    reviewed = review_of(out, vault=vault, notes=notes)
    order = "given" if isinstance(reviewed, SampledRun) else settings.order
    run.say("sorting the notes by doubt" if order == "worst" else "reading the notes")
    entries = review_queue(track(reviewed.entries(), "notes", run.say), settings.most, order)
    with open_desk(reviewed, entries, settings.reviewer) as desk:
        try:
            from clinveil.phi import ReviewServer

            with ReviewServer(desk, settings.port) as server:
                typer.echo(f"open {server.address}")
                say("the address works once, on this machine; end with Ctrl-C or Stop on the page")
                server.serve_forever()
        finally:
            done, total = desk.progress()
            decided = decisions_of(reviewed.vault, settings.reviewer)
            blind = isinstance(reviewed, SampledRun)
            say(
                f"{done} of {total} {'locations' if blind else 'notes'} are reviewed; each decision"
                f" is saved in {'/'.join(decided.parts[-3:])}"
            )
            if blind:
                say(f"to estimate recall: clinveil validate --marked {decided} {out}")
            else:
                say(
                    f"to apply them: clinveil release {reviewed.notes} -o NEW --as deidentified"
                    f" --reviewed {reviewed.vault}"
                )
