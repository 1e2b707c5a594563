"""`clinveil evaluate agreement`: Measure the agreement of two reviewers (clinveil review --reviewer)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.core.settings import QUIET, Settings, flag
from clinveil.phi.review.queue import past_run

Reviewed = Annotated[Path, typer.Argument(help="Output of clinveil deidentify that both reviewed.", metavar="OUT")]
NotesNow = Annotated[Path | None, typer.Option("--notes", help="The notes, if they were moved.")]
VaultOf = Annotated[Path | None, typer.Option("--vault", help="Vault of the run (default: OUT.vault).")]


class EvaluateAgreementSettings(Settings):
    """Settings of `clinveil evaluate agreement`."""

    reviewer: tuple[str, ...] = flag((), "Name of a reviewer; pass two if there are more.")
    quiet: bool = QUIET


@command("evaluate agreement", EvaluateAgreementSettings, flags="", findings=True)
def agreement(
    run: Run[EvaluateAgreementSettings], out: Reviewed, notes: NotesNow = None, vault: VaultOf = None
) -> None:
    """Measure the agreement of two reviewers: kappa over words and F1 of spans, with intervals over notes."""
    from clinveil.utility.agreement import agreement as measure
    from clinveil.utility.agreement import two_files

    past = past_run(out, vault=vault, notes=notes)
    one, other = two_files(past, run.settings.reviewer)
    findings = measure(past, one, other)
    run.show(findings, f"{out.name}: reviewers {one.reviewer} and {other.reviewer}")
