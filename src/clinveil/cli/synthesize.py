"""`clinveil synthesize`: synthetic notes from a language model trained on real ones (paper C)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, Out, Vault, settings_command
from clinveil.cli.progress import say, say_unless
from clinveil.releases.producers.synthesis.settings import SynthesisSettings

app = typer.Typer(add_completion=False)
From = Annotated[Path | None, typer.Option("--from", help="Write with this model (OUT.vault/model of an earlier run).")]


@settings_command(app, SynthesisSettings, name="synthesize")
def synthesize(
    settings: SynthesisSettings,
    notes: Annotated[Path, typer.Argument(help="Real notes to train on; with --from, those that the model saw.")],
    out: Out,
    source: From = None,
    vault: Vault = None,
    json: JsonOut = None,
) -> None:
    """Train a language model on notes and write synthetic ones; copies, rare words and names are looked for first.

    A killed run goes on where it stopped. The model stays in the vault: it remembers the notes.
    """
    from clinveil.cli.findings import say_findings
    from clinveil.releases.pipeline import synthesize as run

    done = run(notes, out, settings, source=source, vault=vault, say=say_unless(settings.quiet))
    title = f"synthetic notes in {out.name}"
    say_findings("synthesize", done.findings, seed=settings.seed or 0, json_out=json, title=title)
    if done.mark:
        say(done.mark)
