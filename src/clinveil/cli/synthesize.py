"""`clinveil synthesize`: synthetic notes from a language model trained on real ones (paper C)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from clinveil.cli.options import JsonOut, Out, Vault, settings_command
from clinveil.cli.progress import say, say_unless
from clinveil.release.producers.synthesis.settings import SynthesisSettings

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
    from clinveil.core.files import default_vault, refuse_existing, refuse_nested
    from clinveil.corpus.open import open_corpus
    from clinveil.lm.notes import read_notes
    from clinveil.release.producers.synthesis.run import Synthesis
    from clinveil.release.producers.synthesis.write import MAKER

    safe = vault or default_vault(out)
    for role, place in (("NOTES", notes), ("--from", source), ("--patients", settings.patients)):
        refuse_nested(OUT=out, the_vault=safe, **{role: place})
    refuse_existing(out, force=settings.force, maker=MAKER)
    if settings.lm.neural and source is None:
        from clinveil.core.neural import need_torch

        need_torch()
    os.umask(0o077)
    read = read_notes(open_corpus(notes, settings.notes), prepared=settings.prepared)
    synthesis = Synthesis(settings, read, out, safe, source, say_unless(settings.quiet))
    found = synthesis.run()
    say_findings("synthesize", found, seed=settings.seed or 0, json_out=json, title=f"synthetic notes in {out.name}")
    if synthesis.mark:
        say(synthesis.mark)
