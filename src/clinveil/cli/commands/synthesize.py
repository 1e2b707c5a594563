"""`clinveil synthesize`: Train a language model on notes and write synthetic ones, searched for copies first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.command import Run, command
from clinveil.cli.options import Out, Vault
from clinveil.cli.progress import say
from clinveil.releases.settings import SynthesisSettings
from clinveil.releases.synthesize import synthesize as write_synthetic

From = Annotated[Path | None, typer.Option("--from", help="Write with this model (OUT.vault/model of an earlier run).")]


@command("synthesize", SynthesisSettings, findings=True)
def synthesize(
    run: Run[SynthesisSettings],
    notes: Annotated[Path, typer.Argument(help="Real notes to train on; with --from, those that the model saw.")],
    out: Out,
    source: From = None,
    vault: Vault = None,
) -> None:
    """Train a language model on notes and write synthetic ones; copies, rare words and names are looked for first.

    A killed run goes on where it stopped. The model stays in the vault: it remembers the notes.
    """
    how = run.settings
    done = write_synthetic(notes, out, how, source=source, vault=vault, say=run.say)
    run.show(done.findings, f"synthetic notes in {out.name}", seed=how.seed or 0)
    if done.mark:
        say(done.mark)
