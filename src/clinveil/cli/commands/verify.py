"""`clinveil verify`: Check a release's hashes, schema and manifest, or the audit log of a vault."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core import KEY, Settings, setting
from clinveil.phi import audit_checks, logs
from clinveil.releases import NAME
from clinveil.releases import verify as checks

Folder = Annotated[Path, typer.Argument(help="OUT/release, or a vault with an audit log.")]

PublicKey = Annotated[
    str | None,
    typer.Option(
        help="Custodian's public key: PEM file, or its fingerprint SHA256:…", show_default=False
    ),
]


class VerifySettings(Settings):
    """Settings of `clinveil verify`."""

    quiet: bool = setting(False, "Print failed checks only.", affects="call", short="-q")


@command("verify", VerifySettings)
def verify(run: Run[VerifySettings], folder: Folder, public_key: PublicKey = None) -> None:
    """Check a release's files, hashes, signature and manifest (no secret needed), or the audit log
    of a vault.
    """
    if (folder / "vault" / NAME).is_file():
        folder = folder / "release"
    is_vault = folder.is_dir() and ((folder / KEY).exists() or not (folder / NAME).exists())
    is_logged = public_key is None and is_vault and logs(folder)
    results = audit_checks(folder) if is_logged else checks(folder, public_key)
    for check in results:
        if check.passed and run.settings.quiet:
            continue
        detail = f" ({check.detail})" if check.detail else ""
        typer.echo(f"{'ok     ' if check.passed else 'FAILED '} {check.name}{detail}")
    if not all(check.passed for check in results):
        raise typer.Exit(4)
