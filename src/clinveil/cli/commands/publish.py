"""`clinveil publish`: Upload a finished release to an object store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core.locations import place
from clinveil.core.settings import FORCE, QUIET, Settings
from clinveil.releases.outcome import publish_release

Finished = Annotated[
    Path, typer.Argument(metavar="OUT", help="Folder of a release.", show_default=False)
]
Target = Annotated[
    Path, typer.Argument(parser=place, metavar="URL", help="Target: s3://…", show_default=False)
]


class PublishSettings(Settings):
    """Settings of `clinveil publish`."""

    quiet: bool = QUIET
    force: bool = FORCE


@command("publish", PublishSettings, flags="force quiet")
def publish(run: Run[PublishSettings], out: Finished, to: Target) -> None:
    """Upload a finished release to an object store; never the vault, and nothing that failed a
    gate.
    """
    publish_release(out, to, force=run.settings.force)
    run.say(f"published {to}")
