"""`clinveil withdraw`: Delete a release that is not handed over, and say so in the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core import QUIET, Settings, setting
from clinveil.releases import withdraw as withdraw_release

Reason = Annotated[
    str,
    typer.Option("--reason", help="Reason, for audit log and ledger.", show_default=False),
]


class WithdrawSettings(Settings):
    """Settings of `clinveil withdraw`."""

    ledger: Path | None = setting(
        None, "Ledger folder of released notes (default: that of the release).", secret="path"
    )
    quiet: bool = QUIET


@command("withdraw", WithdrawSettings, flags="quiet")
def withdraw(
    run: Run[WithdrawSettings],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of a release.")],
    reason: Reason,
) -> None:
    """Delete OUT/release, keep OUT/vault, and record in the ledger that the release was withdrawn.

    Its notes can then be released again under another key. Copies at recipients are not
    affected.
    """
    done = withdraw_release(out, reason, run.settings.ledger)
    run.say(f"ledger {done.ledger}")
    already = "already " if done.before else ""
    typer.echo(f"{already}withdrawn: release {done.run}, on {done.withdrawal.date}")
    typer.echo(f"vault    {out / 'vault'} (kept, must not leave)")
    if done.others:
        typer.echo(f"{done.others} other releases under its key are not withdrawn and still count")
    if done.is_private:
        typer.echo("the privacy budget that it spent stays spent")
